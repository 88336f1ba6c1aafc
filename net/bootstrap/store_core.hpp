// The store without sockets: what rank 0 knows about the job, and what it answers to whom.
//
// Frames go in with the rank they came from, frames come out through StoreOutput. It keeps keys and values, the
// requests that wait for a key, the barriers that are not full, and which ranks have joined, left or been lost.
//
// Thread: the reactor of rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/net/bootstrap/store_frame.hpp"

namespace weft::net::store {

/// A frame on its way out. A value goes to many readers without a copy for each.
struct OutFrame {
  std::vector<std::byte> head;
  std::shared_ptr<const std::vector<std::byte>> tail;

  [[nodiscard]] std::size_t size() const noexcept { return head.size() + (tail ? tail->size() : 0); }
};

/// Where StoreCore's frames go. Frames to a rank without a connection are dropped.
class StoreOutput {
 public:
  virtual void send(std::int32_t rank, OutFrame frame) = 0;

 protected:
  ~StoreOutput() = default;
};

/// Why a rank may not join.
struct Refusal {
  Errc code = Errc::mismatch;
  std::string text;
  bool fails_job = false;  ///< the ranks that have joined cannot go on either
};

class StoreCore {
 public:
  StoreCore(std::int32_t world_size, StoreOutput& output);

  /// Whether the rank at `address` may join. Duplicates, ranks out of range and another idea of the world's size are
  /// refused. They fail the whole job as long as it is not complete: it never would be. Later they change nothing.
  [[nodiscard]] std::optional<Refusal> check_join(const Join& join, std::string_view address) const;

  /// The rank is in: it gets Welcome, all losses so far, and the connection requests that waited for it.
  /// Precondition: check_join() had nothing against it.
  void join(std::int32_t rank, std::string_view address);

  /// False when no client of this version sends such a frame here; the connection is to be closed then.
  [[nodiscard]] bool handle(std::int32_t rank, const Frame& frame);

  /// The connection of a rank that has joined has ended. A rank that has said goodbye is not lost by that.
  void gone(std::int32_t rank, std::string_view cause);

  /// Tells every rank that the job cannot start. Only the first call counts.
  void fail_job(Errc code, std::string_view text);

  /// Every rank of the world has joined.
  [[nodiscard]] bool complete() const noexcept { return joined_ == members_.size(); }
  /// Every rank of the world has joined and has left or been lost since.
  [[nodiscard]] bool finished() const noexcept { return gone_.size() == members_.size(); }
  /// Ranks that have never joined.
  [[nodiscard]] std::vector<std::int32_t> absent() const;

 private:
  enum class State : std::uint8_t { absent, present, left, lost };
  struct Member {
    State state = State::absent;
    std::string address;
    std::string cause;                       ///< when lost
    Goodbye goodbye{};                       ///< when left
    std::vector<std::int32_t> connect_from;  ///< requests that wait for it to join
  };
  using RequestId = std::pair<std::int32_t, std::uint32_t>;  ///< rank, id
  struct PendingWait {
    RequestId request;
    std::vector<std::string> keys;  ///< as the client listed them
    std::size_t missing = 0;        ///< distinct keys that do not exist yet
    bool wants_value = false;       ///< a Get
  };
  using Arrivals = std::map<std::int32_t, std::uint32_t>;  ///< rank -> id

  bool on(std::int32_t rank, const Set& frame);
  bool on(std::int32_t rank, const Get& frame);
  bool on(std::int32_t rank, const WaitAll& frame);
  bool on(std::int32_t rank, const Add& frame);
  bool on(std::int32_t rank, const Barrier& frame);
  bool on(std::int32_t rank, const Withdraw& frame);
  bool on(std::int32_t rank, const Goodbye& frame);
  bool on(std::int32_t rank, const ConnectTo& frame);
  template <typename T>
  bool on(std::int32_t /*rank*/, const T& /*frame*/) {
    return false;
  }

  [[nodiscard]] bool in_use(RequestId request) const;
  void put(const std::string& key, std::vector<std::byte> value);
  bool await_keys(RequestId request, std::vector<std::string> keys, bool wants_value);
  void answer(const PendingWait& wait);
  void forget(const std::shared_ptr<PendingWait>& wait);
  void drop_requests(std::int32_t rank);
  void fail_barriers_without(std::int32_t rank);
  void fail_for_gone(RequestId request, std::int32_t gone_rank, std::string_view barrier);
  [[nodiscard]] Frame loss_frame(std::int32_t rank) const;
  void send(std::int32_t rank, Frame frame);
  void broadcast(const Frame& frame, std::int32_t except);

  StoreOutput& output_;
  std::vector<Member> members_;
  std::size_t joined_ = 0;
  std::vector<std::int32_t> gone_;  ///< left or lost, in that order of time
  std::optional<std::pair<Errc, std::string>> failure_;
  std::unordered_map<std::string, std::shared_ptr<const std::vector<std::byte>>> values_;
  std::map<RequestId, std::shared_ptr<PendingWait>> waits_;
  std::unordered_map<std::string, std::vector<std::shared_ptr<PendingWait>>> waits_of_key_;
  std::unordered_map<std::string, Arrivals> barriers_;
  std::map<RequestId, std::string> barrier_of_;
};

}  // namespace weft::net::store
