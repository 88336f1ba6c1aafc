// StoreServer: rank 0's half of the bootstrap. It listens, lets in who proves the job's token, and runs StoreCore for
// them. The connection of a rank stays open as long as the rank lives: its end is how the others learn of a death.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "weft/net/bootstrap/frame_stream.hpp"
#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/bootstrap/store_core.hpp"
#include "weft/net/bootstrap/stranger_log.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"

namespace weft::net {

/// Pinned; must outlive serve(). Thread: the reactor's. Several servers may live in one process.
class StoreServer final : private store::StoreOutput {
 public:
  /// Connections that have not proven anything yet, at most. A stranger costs a descriptor, a frame and a few hundred
  /// bytes; 64 of them are nothing, and ranks that start together need no more: a proof takes two round trips.
  static constexpr std::size_t kMaxUnproven = 64;
  /// What such a connection may count on when all places are taken. Then the oldest goes, so that strangers who say
  /// nothing cannot keep ranks out. Longer than a handshake takes on a machine that is busy starting many ranks.
  static constexpr Duration kUnprovenGrace = std::chrono::milliseconds(250);
  /// When the ranks do not add up, rank 0 hears of it after everybody else, or after this time: with rank 0 goes the
  /// store, and ranks that are a little late would never learn why.
  static constexpr Duration kFailureLinger = std::chrono::seconds(5);
  /// Answers that a rank may leave unread before its next request waits: two values of the largest size.
  static constexpr std::size_t kMaxUnreadBytes = 2 * store::kMaxFrameBytes;

  /// `listener` is a listening TCP socket (open_store_listener).
  StoreServer(Reactor& reactor, UniqueFd listener, std::int32_t world_size, const JobToken& token);
  ~StoreServer();

  /// Serves until every rank of the world has joined and has then left or been lost. To stop earlier, cancel it.
  /// Run it in a nursery that outlives what this process does with its ranks.
  /// Errors: cancelled, timed_out, io (the listening socket fails).
  [[nodiscard]] Task<void> serve();

  [[nodiscard]] std::uint16_t port() const;
  /// Connections turned away so far.
  [[nodiscard]] std::size_t strangers() const noexcept { return strangers_.count(); }
  /// Ranks that have not joined so far.
  [[nodiscard]] std::vector<std::int32_t> absent() const { return core_.absent(); }

 private:
  struct Connection;
  struct Unproven {
    Instant since{};
    Socket* socket = nullptr;  ///< once its coroutine runs
    bool displaced = false;
  };
  using Place = std::list<Unproven>::iterator;

  static Task<void> accept_connections(Nursery& nursery, StoreServer* self);
  Task<void> make_room();
  Task<void> serve_connection(Socket socket, Place place);
  Task<bool> prove(Socket& socket, Place place);
  static Task<void> serve_rank(Nursery& nursery, StoreServer* self, Connection* connection);
  Task<void> read_requests(Connection* connection);
  Task<bool> let_in(Connection* connection);
  void refuse(Connection& connection, const store::Refusal& refusal);
  void fail_job(const store::Refusal& refusal);
  Task<void> until_all_are_told();
  Task<void> tell_rank_zero();
  void send(std::int32_t rank, store::OutFrame frame) override;

  Reactor& reactor_;
  Acceptor acceptor_;
  JobToken token_;
  store::StoreCore core_;
  StrangerLog strangers_;
  std::vector<Connection*> by_rank_;
  std::list<Unproven> unproven_;  ///< oldest first
  Event room_;                    ///< a place among the unproven has become free
  Nursery* nursery_ = nullptr;    ///< while serve() runs
  std::size_t joins_ = 0;         ///< first frames that have come, accepted or not
  bool failing_ = false;          ///< the job has failed, and frames to rank 0 are held back
  bool rank_zero_told_ = false;
  Event all_told_;  ///< as many processes as the world has ranks know why
  std::vector<store::OutFrame> held_;
};

}  // namespace weft::net
