// StoreClient: how a rank, rank 0 too, takes part in the bootstrap: keys and values, barriers over the world, and word
// of ranks that die or leave.
//
//     StoreClient store(reactor, options, token, &events);
//     co_await store.start(nursery);                 // every rank of the world has joined
//     co_await store.set("address/3", bytes);  bytes = co_await store.get("address/1");
//     co_await store.goodbye(0, kNoRank);            // before the rank ends in order
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/net/bootstrap/frame_stream.hpp"
#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/bootstrap/store_frame.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"

namespace weft::net {

/// What a rank learns from the store without asking. Thread: the reactor's. A call must not destroy the client.
class StoreEvents {
 public:
  /// The connection of `rank` ended without goodbye: its process died, or its host is gone. `at_fault` is the rank that
  /// is to blame, `rank` itself unless more is known. `cause` is valid during the call.
  virtual void on_rank_lost(std::int32_t rank, std::int32_t at_fault, std::string_view cause) noexcept = 0;
  /// `rank` has said goodbye with this exit code; `at_fault` is the rank whose failure made it leave, or kNoRank.
  virtual void on_rank_left(std::int32_t rank, std::int32_t code, std::int32_t at_fault) noexcept = 0;
  /// `from` wants a connection to this rank.
  virtual void on_connect_request(std::int32_t from) noexcept = 0;
  /// The connection to the store itself ended before goodbye(): rank 0 is lost. No other call follows.
  virtual void on_store_lost(std::string_view cause) noexcept = 0;

 protected:
  ~StoreEvents() = default;
};

struct StoreClientOptions {
  std::string host;
  std::uint16_t port = 0;
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
  /// For start(). 30 s cover a machine that starts many processes at once, and a host that is some seconds behind.
  Duration start_timeout = std::chrono::seconds(30);
};

/// See the top of the file. Pinned; must outlive the nursery given to start(). Thread: the reactor's.
///
/// Every operation honours the deadline and the cancel scope around it. A deadline asks the server what is still
/// missing, which takes kMissingGrace at most. Once the connection is lost every operation ends with peer_lost, rank 0.
class StoreClient {
 public:
  static constexpr Duration kMissingGrace = std::chrono::seconds(1);
  /// How long goodbye() waits for the server's answer.
  static constexpr Duration kFarewellTimeout = std::chrono::seconds(2);

  /// `events` may be null, and must otherwise outlive the client.
  StoreClient(Reactor& reactor, StoreClientOptions options, const JobToken& token, StoreEvents* events);
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;
  ~StoreClient();

  /// Connects, proves the token, joins, and waits until every rank of the world has done so. Connections that are
  /// refused, reset or not answered are tried again until the deadline, with growing pauses. Reads and writes go on in
  /// `nursery`; they never fail it. Events may come before start() has returned.
  /// Errors: timed_out (names the ranks that are missing, or why the server could not be reached), unreachable,
  /// unauthorized, protocol, mismatch (ranks that do not add up), peer_lost and peer_closed (a rank died or left during
  /// the start), cancelled. After an error only goodbye() and close() are of
  /// use: a connection that has been made stays until then.
  [[nodiscard]] Task<void> start(Nursery& nursery);

  /// Stores a value of at most store::kMaxValueBytes under a key of at most store::kMaxKeyBytes; replaces what is
  /// there. Returns when every later get() of any rank sees it. `value` is copied before the first suspension.
  [[nodiscard]] Task<void> set(std::string key, std::span<const std::byte> value);
  /// The value, as soon as somebody has set it. Errors: timed_out names the key.
  [[nodiscard]] Task<std::vector<std::byte>> get(std::string key);
  /// Returns as soon as all keys exist. Errors: timed_out lists the keys that are missing.
  [[nodiscard]] Task<void> wait_all(std::vector<std::string> keys);
  /// Adds to a counter that starts at 0 and gives its new value; it wraps. Errors: mismatch when `key` has another
  /// value.
  [[nodiscard]] Task<std::int64_t> add(std::string key, std::int64_t delta);
  /// Returns when every rank of the world has called it with this name; the name is free again then.
  /// Errors: timed_out lists the ranks that have not come; peer_lost or peer_closed when one of them no longer can.
  [[nodiscard]] Task<void> barrier(std::string name);

  /// Asks `rank` for a connection; it gets on_connect_request. Nothing happens when it is gone.
  void request_connection(std::int32_t rank);

  /// Leaves the job in order: the other ranks get on_rank_left, and the loss of the connection is no news any more.
  /// `at_fault` is the rank whose failure ended this one, or kNoRank. Never throws but for cancelled.
  [[nodiscard]] Task<void> goodbye(std::int32_t code, std::int32_t at_fault);

  /// Drops the connection without goodbye: to the other ranks this rank is lost.
  void close() noexcept;

  [[nodiscard]] bool connected() const noexcept { return state_ == State::joined; }

 private:
  enum class State : std::uint8_t { fresh, joined, leaving, ended };
  struct Reply;

  Task<void> join(Instant deadline);
  Task<void> join_once(Instant deadline);
  Task<void> be_admitted();
  Task<void> await_everyone(Instant deadline);
  Task<void> run();
  static Task<void> exchange(Nursery& nursery, StoreClient* self);
  Task<void> read_frames();
  Task<void> await_reply(Reply* reply, std::vector<std::byte> request);
  Task<void> ask_what_is_missing(Reply* reply);
  [[noreturn]] void throw_timed_out(const Reply& reply, std::string_view operation, std::string reason) const;
  void end(std::string_view cause);
  void fail_requests(const Error& error);

  void on(const store::Done& frame);
  void on(const store::Value& frame);
  void on(const store::Counter& frame);
  void on(const store::Failed& frame);
  void on(const store::Withdrawn& frame);
  void on(const store::RankLost& frame);
  void on(const store::RankLeft& frame);
  void on(const store::ConnectRequest& frame);
  void on(const store::JobFailed& frame);
  void on(const store::Farewell& frame);
  template <typename T>
  void on(const T& frame);

  [[nodiscard]] Reply* find(std::uint32_t id) noexcept;
  void push(store::Frame frame);

  Reactor& reactor_;
  StoreClientOptions options_;
  JobToken token_;
  StoreEvents* events_;
  State state_ = State::fresh;
  Socket socket_;
  std::optional<store::FrameWriter> writer_;
  std::map<std::uint32_t, Reply*> replies_;
  std::uint32_t next_id_ = 1;
  std::optional<Error> failure_;  ///< why no operation can succeed any more
  std::string cause_;             ///< what ended the reading of frames
  Event farewell_;
};

}  // namespace weft::net
