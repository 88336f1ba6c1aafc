#include "weft/net/bootstrap/store_server.hpp"

#include <utility>

#include "weft/net/bootstrap/handshake.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/current.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/log.hpp"

namespace weft::net {

/// A client that has proven the token.
struct StoreServer::Connection {
  Connection(StoreServer& owner, Socket connected) : server(owner), socket(std::move(connected)), writer(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { leave(); }

  /// From here on nothing is sent to it.
  void leave() noexcept {
    if (rank != kNoRank) server.by_rank_[static_cast<std::size_t>(rank)] = nullptr;
  }

  StoreServer& server;
  Socket socket;
  store::FrameWriter writer;
  std::int32_t rank = kNoRank;  ///< set when it has joined
};

namespace {

Task<void> wait_for(Event& event) {
  co_await event.wait();
}

}  // namespace

StoreServer::StoreServer(Reactor& reactor, UniqueFd listener, std::int32_t world_size, const JobToken& token)
    : reactor_(reactor),
      acceptor_(reactor, std::move(listener)),
      token_(token),
      core_(world_size, *this),
      by_rank_(static_cast<std::size_t>(world_size)) {}

StoreServer::~StoreServer() {
  WEFT_ASSERT(nursery_ == nullptr, "a store server was destroyed while it serves");
}

std::uint16_t StoreServer::port() const {
  return local_port(acceptor_.fd());
}

Task<void> StoreServer::serve() {
  try {
    co_await with_nursery(&StoreServer::accept_connections, this);
  } catch (...) {
    nursery_ = nullptr;
    throw;
  }
  nursery_ = nullptr;
}

Task<void> StoreServer::accept_connections(Nursery& nursery, StoreServer* self) {
  self->nursery_ = &nursery;
  while (true) {
    co_await self->make_room();
    Socket socket = co_await self->acceptor_.accept();
    // The place is taken here and not by the child, which runs only when this loop waits.
    Unproven unproven;
    unproven.since = self->reactor_.clock().now();
    const Place place = self->unproven_.insert(self->unproven_.end(), unproven);
    nursery.start(self->serve_connection(std::move(socket), place));
  }
}

Task<void> StoreServer::make_room() {
  PromiseBase& self = co_await detail::this_coroutine();
  while (unproven_.size() >= kMaxUnproven) {
    room_.reset();
    Unproven& oldest = unproven_.front();
    const Instant grace = saturating_add(oldest.since, kUnprovenGrace);
    if (reactor_.clock().now() >= grace) {
      // Its handshake ends with Errc::closed and takes it off the list.
      oldest.displaced = true;
      if (oldest.socket != nullptr) oldest.socket->close();
      co_await room_.wait();
      continue;
    }
    Task<void> room = wait_for(room_);
    Task<void> limited = with_deadline(grace, std::move(room));
    Result<void> freed = co_await as_result(std::move(limited));
    // Time over is the signal to look again, unless it is the server's own time.
    if (!freed && self.scope->requested() != Errc::ok) throw Error(freed.error());
  }
}

Task<void> StoreServer::serve_connection(Socket socket, Place place) {
  store::prepare_connection(socket);
  const bool proven = co_await prove(socket, place);
  if (!proven) co_return;
  const auto connection = std::make_unique<Connection>(*this, std::move(socket));
  co_await with_nursery(&StoreServer::serve_rank, this, connection.get());
}

Task<bool> StoreServer::prove(Socket& socket, Place place) {
  place->socket = &socket;
  if (place->displaced) socket.close();
  PeerHello mine{Purpose::store, 0};
  Task<PeerHello> handshake = handshake_as_server(socket, token_, mine);
  Result<PeerHello> peer = co_await as_result(std::move(handshake));
  const bool displaced = place->displaced;
  unproven_.erase(place);
  room_.set();
  if (peer) co_return true;
  if (peer.code() == Errc::cancelled) throw Error(peer.error());
  std::string reason = peer.error().what();
  if (displaced) reason = "handshake with " + socket.peer() + ": it held a place that others waited for";
  strangers_.turned_away(reason, reactor_.clock().now());
  co_return false;
}

Task<void> StoreServer::serve_rank(Nursery& nursery, StoreServer* self, Connection* connection) {
  nursery.start(connection->writer.run());
  std::string cause = "its connection to the store ended";
  try {
    const bool joined = co_await self->let_in(connection);
    if (joined) {
      co_await self->read_requests(connection);
    }
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    cause = connection->writer.broken() ? connection->writer.failure() : std::string(error.what());
  }
  const std::int32_t rank = connection->rank;
  if (rank == kNoRank) {
    // A refusal may still be on its way; the other end closes when it has read it.
    connection->writer.finish();
    co_return;
  }
  connection->leave();
  self->core_.gone(rank, cause);
  nursery.cancel();
  if (self->core_.finished()) self->nursery_->cancel();
}

Task<bool> StoreServer::let_in(Connection* connection) {
  std::optional<std::vector<std::byte>> bytes = co_await store::read_frame(connection->socket, store::kMaxJoinBytes);
  if (!bytes.has_value()) co_return false;
  const std::optional<store::Frame> frame = store::decode(*bytes);
  const store::Join* const join = frame.has_value() ? std::get_if<store::Join>(&*frame) : nullptr;
  if (join == nullptr) {
    store::Refusal refusal;
    refusal.code = Errc::protocol;
    refusal.text = connection->socket.peer() + " sent something else than the first frame of a rank";
    refuse(*connection, refusal);
    co_return false;
  }
  ++joins_;
  const std::optional<store::Refusal> refusal = core_.check_join(*join, connection->socket.peer());
  if (refusal.has_value()) {
    if (refusal->fails_job) fail_job(*refusal);
    if (join->rank == 0) {
      co_await until_all_are_told();
    }
    refuse(*connection, *refusal);
    if (joins_ >= by_rank_.size()) all_told_.set();
    co_return false;
  }
  connection->rank = join->rank;
  by_rank_[static_cast<std::size_t>(join->rank)] = connection;
  core_.join(join->rank, connection->socket.peer());
  co_return true;
}

Task<void> StoreServer::read_requests(Connection* connection) {
  while (true) {
    std::optional<std::vector<std::byte>> bytes = co_await store::read_frame(connection->socket, store::kMaxFrameBytes);
    if (!bytes.has_value()) co_return;
    const std::optional<store::Frame> frame = store::decode(*bytes);
    if (!frame.has_value() || !core_.handle(connection->rank, *frame)) {
      throw Error(Errc::protocol, "store", "it sent a frame that no rank sends");
    }
    co_await connection->writer.below(kMaxUnreadBytes);
  }
}

void StoreServer::refuse(Connection& connection, const store::Refusal& refusal) {
  // What fails the job is an error in every rank; what does not is known to the refused process alone.
  if (!refusal.fails_job) log(LogLevel::warning, "store: refused a rank: " + refusal.text);
  store::Refused frame;
  frame.code = refusal.code;
  frame.text = refusal.text;
  store::OutFrame out;
  out.head = store::encode(frame);
  connection.writer.push(std::move(out));
}

void StoreServer::fail_job(const store::Refusal& refusal) {
  if (failing_ || rank_zero_told_ || nursery_ == nullptr) return;
  failing_ = true;
  core_.fail_job(refusal.code, refusal.text);
  nursery_->start(tell_rank_zero());
}

Task<void> StoreServer::until_all_are_told() {
  if (joins_ >= by_rank_.size()) co_return;
  Task<void> told = wait_for(all_told_);
  Task<void> limited = with_deadline(kFailureLinger, std::move(told));
  Result<void> outcome = co_await as_result(std::move(limited));
  if (!outcome && outcome.code() == Errc::cancelled) throw Error(outcome.error());
}

Task<void> StoreServer::tell_rank_zero() {
  co_await until_all_are_told();
  failing_ = false;
  rank_zero_told_ = true;
  for (store::OutFrame& frame : held_)
    send(0, std::move(frame));
  held_.clear();
}

void StoreServer::send(std::int32_t rank, store::OutFrame frame) {
  if (failing_ && rank == 0) {
    held_.push_back(std::move(frame));
    return;
  }
  Connection* const connection = by_rank_[static_cast<std::size_t>(rank)];
  if (connection != nullptr) connection->writer.push(std::move(frame));
}

}  // namespace weft::net
