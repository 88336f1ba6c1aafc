// Channel<T>: a bounded queue between tasks of one reactor, several senders and receivers.
//
// A full channel suspends senders, an empty one receivers, each in the order in which they came. close() lets receivers
// take what is queued; then they get nothing, and senders get Errc::closed. A cancelled send has not sent; a cancelled
// receive has not taken anything.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/runtime/wait.hpp"

namespace weft {

/// See the top of the file. T moves without throwing. Pinned; must outlive those who wait. Thread: the reactor's.
/// Cost: one allocation of room for `capacity` values when it is made, none afterwards.
template <typename T>
class Channel {
  static_assert(std::is_nothrow_move_constructible_v<T>, "a value that gets lost half way would hang its receiver");

 public:
  /// `capacity` 0 is a rendezvous: a send completes when a receiver has taken the value.
  explicit Channel(std::size_t capacity) : ring_(capacity) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  class [[nodiscard]] Send final : public ListHook<Channel>, public Wait {
   public:
    Send(Channel& channel, T value) : channel_(channel), value_(std::move(value)) {}
    [[nodiscard]] bool await_ready() noexcept { return channel_.closed_ || channel_.accept(value_); }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      if (!begin(waiting.promise())) return false;
      channel_.senders_.push_back(*this);
      return true;
    }
    void await_resume() const {
      throw_if_failed(code(), "channel send");
      if (value_.has_value()) throw Error(Errc::closed, "channel send", "the channel is closed");
    }

   private:
    friend class Channel;
    void on_cancel(Errc reason) noexcept override {
      ListHook<Channel>::unlink();
      complete(reason);
    }
    Channel& channel_;
    std::optional<T> value_;  ///< empty once the channel has it
  };

  class [[nodiscard]] Receive final : public ListHook<Channel>, public Wait {
   public:
    explicit Receive(Channel& channel) noexcept : channel_(channel) {}
    [[nodiscard]] bool await_ready() noexcept {
      channel_.take(value_);
      return value_.has_value() || channel_.closed_;
    }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      if (!begin(waiting.promise())) return false;
      channel_.receivers_.push_back(*this);
      return true;
    }
    [[nodiscard]] std::optional<T> await_resume() {
      throw_if_failed(code(), "channel receive");
      return std::move(value_);
    }

   private:
    friend class Channel;
    void on_cancel(Errc reason) noexcept override {
      ListHook<Channel>::unlink();
      complete(reason);
    }
    Channel& channel_;
    std::optional<T> value_;
  };

  /// Completes when the value is queued or taken. Errors: closed, cancelled, timed_out.
  [[nodiscard]] Send send(T value) { return Send(*this, std::move(value)); }
  /// The oldest value, or nothing when the channel is closed and empty. Errors: cancelled, timed_out.
  [[nodiscard]] Receive receive() noexcept { return Receive(*this); }

  /// No more sends. Waiting senders get Errc::closed, waiting receivers nothing. May be called again.
  void close() noexcept {
    closed_ = true;
    while (Send* sender = senders_.pop_front()) sender->complete();
    while (Receive* receiver = receivers_.pop_front()) receiver->complete();
  }

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  /// Hands `value` to a waiting receiver or queues it; false when there is room for neither.
  bool accept(std::optional<T>& value) noexcept {
    if (Receive* receiver = receivers_.pop_front()) {
      move_over(value, receiver->value_);
      receiver->complete();
      return true;
    }
    if (size_ == ring_.size()) return false;
    put(value);
    return true;
  }

  /// Moves `value` to the end of the ring. Precondition: there is room.
  void put(std::optional<T>& value) noexcept {
    const std::size_t end = first_ + size_;
    move_over(value, ring_[end < ring_.size() ? end : end - ring_.size()]);
    ++size_;
  }

  static void move_over(std::optional<T>& from, std::optional<T>& to) noexcept {
    to.emplace(std::move(*from));
    from.reset();
  }

  /// Takes the oldest value, if there is one, and the first waiting sender moves up.
  void take(std::optional<T>& value) noexcept {
    if (size_ != 0) {
      move_over(ring_[first_], value);
      if (++first_ == ring_.size()) first_ = 0;
      --size_;
      if (Send* sender = senders_.pop_front()) {
        put(sender->value_);
        sender->complete();
      }
    } else if (Send* sender = senders_.pop_front()) {
      move_over(sender->value_, value);
      sender->complete();
    }
  }

  bool closed_ = false;
  std::vector<std::optional<T>> ring_;
  std::size_t first_ = 0;  ///< the oldest value
  std::size_t size_ = 0;   ///< values in the ring
  IntrusiveList<Send, Channel> senders_;
  IntrusiveList<Receive, Channel> receivers_;
};

}  // namespace weft
