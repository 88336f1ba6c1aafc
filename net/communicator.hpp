// Communicator: a group of ranks that talk to each other. The face of net.
//
// Ranks are numbered 0..size()-1 within it. Messages on one communicator never match receives on another.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "weft/net/group.hpp"
#include "weft/net/message.hpp"
#include "weft/net/operation.hpp"
#include "weft/runtime/task.hpp"

namespace weft {

using net::Order;

/// What may be sent as it lies in memory.
template <typename T>
concept Sendable = std::is_trivially_copyable_v<T>;

/// See the top of the file. Movable while no operation on it is in flight. Thread: its rank's reactor.
class Communicator {
 public:
  /// Made by the fabric (the world), split() and dup().
  explicit Communicator(std::unique_ptr<net::Group> group) noexcept : group_(std::move(group)) {}

  [[nodiscard]] Rank rank() const noexcept { return group_->rank(); }
  [[nodiscard]] Rank size() const noexcept { return group_->size(); }
  /// "world", or what split() and dup() made of it; stands in messages.
  [[nodiscard]] const std::string& name() const noexcept { return group_->name(); }

  // send, recv and sendrecv describe an operation; it starts when the result is awaited, there or later, also through
  // with_deadline, as_result and as_task.

  /// Sends `bytes` to rank `to`. Completes when the buffer may be reused, which for a large message is when it has been
  /// received.
  /// Lifetime: `bytes` until the await ends.
  /// Errors: peer_lost, peer_closed, cancelled, timed_out; invalid_argument is thrown by the call itself.
  /// Cost: no allocation; up to the transport's eager limit one copy into it.
  [[nodiscard]] net::SendCall send(Rank to, Tag tag, std::span<const std::byte> bytes) {
    net::check_rank(*group_, "send", to, false);
    return {group_.get(), to, tag, bytes};
  }
  template <Sendable T, std::size_t N>
  [[nodiscard]] net::SendCall send(Rank to, Tag tag, std::span<T, N> values) {
    return send(to, tag, std::span<const std::byte>(std::as_bytes(values)));
  }

  /// Receives the oldest message from `from` (or any_rank) that `tag` accepts, at most bytes.size() of it.
  /// Lifetime: `bytes` until the await ends.
  /// Errors: as send; truncated when the message is longer (its beginning is in `bytes`, nothing behind it is written).
  /// A receive that has matched ends with its value, whatever is cancelled.
  [[nodiscard]] net::RecvCall recv(Rank from, TagPattern tag, std::span<std::byte> bytes) {
    net::check_rank(*group_, "recv", from, true);
    return {group_.get(), from, tag, bytes};
  }
  template <Sendable T, std::size_t N>
    requires(!std::is_const_v<T>)
  [[nodiscard]] net::RecvCall recv(Rank from, TagPattern tag, std::span<T, N> values) {
    return recv(from, tag, std::span<std::byte>(std::as_writable_bytes(values)));
  }

  /// Sends and receives at once, so that two ranks can exchange without waiting for each other. Gives what recv gives.
  /// The buffers must not overlap.
  [[nodiscard]] net::SendRecvCall sendrecv(Rank to, Tag send_tag, std::span<const std::byte> out, Rank from,
                                           TagPattern recv_tag, std::span<std::byte> in) {
    net::check_rank(*group_, "sendrecv", to, false);
    net::check_rank(*group_, "sendrecv", from, true);
    return {group_.get(), to, send_tag, out, from, recv_tag, in};
  }

  /// Collective: makes a communicator of the ranks that give the same `color` (0 and up), numbered by `key`, then by
  /// rank here.
  /// Errors: invalid_argument for a negative color; those of messages; mismatch.
  [[nodiscard]] Task<Communicator> split(std::int32_t color, std::int32_t key);

  /// Collective: the same ranks with messages of their own.
  [[nodiscard]] Task<Communicator> dup();

  /// Limit of every operation on this communicator that is not under a shorter deadline; zero: none. Starts as the
  /// job's WEFT_TIMEOUT.
  [[nodiscard]] Duration default_timeout() const noexcept { return group_->default_timeout(); }
  void set_default_timeout(Duration timeout) noexcept { group_->set_default_timeout(timeout); }

  /// In which order reductions combine. Must be the same on all ranks. Starts as the job's WEFT_ORDER.
  [[nodiscard]] Order order() const noexcept { return group_->order(); }
  void set_order(Order order) noexcept { group_->set_order(order); }

  /// For the layers above that build on messages.
  [[nodiscard]] net::Group& group() const noexcept { return *group_; }

 private:
  std::unique_ptr<net::Group> group_;
};

}  // namespace weft
