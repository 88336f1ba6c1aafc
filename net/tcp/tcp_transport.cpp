#include "weft/net/tcp/tcp_transport.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "weft/net/bootstrap/handshake.hpp"
#include "weft/net/socket/socket_address.hpp"
#include "weft/net/tcp/tcp_address.hpp"
#include "weft/runtime/log.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

// Connections that have not proven themselves yet: a whole large job at once, and a bound for what strangers can hold.
constexpr std::size_t kMaxUnproven = 256;
constexpr Duration kPauseWhenFull = std::chrono::milliseconds(10);

// The peer has listened since before it published its address, so only the network can be late. Longer than a lost
// SYN and its repetitions after 1 and 3 s.
constexpr Duration kConnectPatience = std::chrono::seconds(5);

}  // namespace

TcpTransport::TcpTransport(Reactor& reactor, TransportSink& sink, const JobToken& token, std::int32_t rank,
                           std::int32_t world_size, const std::string& host)
    : reactor_(reactor),
      sink_(sink),
      token_(token),
      rank_(rank),
      listener_(listen_tcp(host, 0)),
      address_(host_port_text(host, local_port(listener_.get()))),
      shared_(sink),
      by_peer_(static_cast<std::size_t>(world_size)),
      liveness_(reactor) {
  capabilities_.name = "tcp";
  capabilities_.max_packet_bytes = kTcpMaxPacketBytes;
  capabilities_.eager_limit_bytes = kTcpMaxPacketBytes;
  // What a receiver that is busy elsewhere buffers for one sender: 16 of the largest eager messages, and more than
  // what is under way on 10 Gbit/s with 0.5 ms of round trip (625 KB).
  capabilities_.eager_window_bytes = 1024 * 1024;
  capabilities_.can_get = false;
}

TcpTransport::~TcpTransport() {
  for (const auto& connection : connections_) {
    if (!connection->closed()) close(*connection);
  }
}

Task<void> TcpTransport::serve() {
  co_await with_nursery(&TcpTransport::accept_all, this);
}

Task<void> TcpTransport::accept_all(Nursery& nursery, TcpTransport* self) {
  WEFT_ASSERT(bool(self->listener_), "TcpTransport::serve: called twice");
  Acceptor acceptor(self->reactor_, std::move(self->listener_));
  for (;;) {
    while (nursery.running() >= kMaxUnproven)
      co_await sleep_for(kPauseWhenFull);
    Socket socket = co_await acceptor.accept();
    nursery.start(accept_one(self, std::move(socket)));
  }
}

Task<void> TcpTransport::accept_one(TcpTransport* self, Socket socket) {
  try {
    const PeerHello mine{Purpose::tcp, self->rank_};
    const PeerHello theirs = co_await handshake_as_server(socket, self->token_, mine);
    if (theirs.rank < 0 || static_cast<std::size_t>(theirs.rank) >= self->by_peer_.size() ||
        theirs.rank == self->rank_) {
      throw Error(Errc::protocol, "tcp accept",
                  socket.peer() + " knows the job's token but says it is rank " + std::to_string(theirs.rank));
    }
    self->adopt(theirs.rank, std::move(socket));
  } catch (const Error& error) {
    // A stranger, or a peer that died while it connected: nobody here waits for it.
    if (error.code() == Errc::cancelled) co_return;
    log(LogLevel::warning, "rank " + std::to_string(self->rank_) + ": tcp connection refused: " + error.what());
  }
}

Task<void> TcpTransport::connect(std::int32_t peer, std::string address) {
  WEFT_ASSERT(peer >= 0 && static_cast<std::size_t>(peer) < by_peer_.size() && peer != rank_,
              "TcpTransport::connect: no such peer");
  const std::string operation = "tcp connect from rank " + std::to_string(rank_) + " to rank " + std::to_string(peer);
  const std::vector<TcpEndpoint> endpoints = parse_tcp_address(address);
  Socket socket;
  std::optional<Error> failure;
  for (std::size_t i = 0; i < endpoints.size() && !socket.open(); ++i) {
    const Instant limit = saturating_add(reactor_.clock().now(), kConnectPatience);
    try {
      socket = co_await connect_tcp(reactor_, endpoints[i].host, endpoints[i].port, limit);
    } catch (const Error& error) {
      failure = Error(error.code(), operation, error.what(), peer, error.native());
      if (error.code() != Errc::unreachable) throw Error(*failure);
    }
  }
  if (!socket.open()) throw Error(*failure);
  try {
    const PeerHello mine{Purpose::tcp, rank_};
    const PeerHello theirs = co_await handshake_as_client(socket, token_, mine);
    if (theirs.rank != peer) {
      throw Error(Errc::unauthorized, "handshake",
                  address + " belongs to rank " + std::to_string(theirs.rank) + " of this job");
    }
  } catch (const Error& error) {
    throw Error(error.code(), operation, error.what(), peer, error.native());
  }
  adopt(peer, std::move(socket));
}

void TcpTransport::adopt(std::int32_t peer, Socket socket) {
  TcpConnection*& place = by_peer_[static_cast<std::size_t>(peer)];
  if (place != nullptr) {
    throw Error(Errc::address_in_use, "tcp set-up", "rank " + std::to_string(peer) + " is connected already", peer);
  }
  std::string name = socket.peer();
  UniqueFd fd = socket.release();
  const int raw = fd.get();
  const int on = 1;
  ::setsockopt(raw, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A connection that is closed but not reaped yet still has its place on the lists.
  const std::size_t room = connections_.size() + 1;
  if (shared_.active.capacity() < room) shared_.active.reserve(2 * room);
  if (shared_.dirty.capacity() < room) shared_.dirty.reserve(2 * room);
  connections_.push_back(std::make_unique<TcpConnection>(shared_, peer, std::move(fd), std::move(name)));
  TcpConnection& connection = *connections_.back();
  const Outcome added = reactor_.io().add(raw, connection);
  if (!added.ok()) {
    connections_.pop_back();
    throw Error(added.code, "tcp set-up", "cannot watch the connection", peer, added.native);
  }
  place = &connection;
  liveness_.watch(connection);
  connection.activate();
  sink_.on_connected(peer, *this);
}

bool TcpTransport::try_send(std::int32_t peer, const WireHeader& header, std::span<const std::byte> payload) noexcept {
  TcpConnection* const to = connection(peer);
  return to != nullptr && to->try_send(header, payload);
}

void TcpTransport::get(GetRequest& /*request*/) noexcept {
  WEFT_ASSERT(false, "TcpTransport::get: TCP cannot read a peer's memory");
}

void TcpTransport::send_bulk(BulkSend& bulk) noexcept {
  if (TcpConnection* const to = connection(bulk.peer); to != nullptr) [[likely]] {
    to->send_bulk(bulk);
    return;
  }
  bulk.next = orphans_;
  orphans_ = &bulk;
}

void TcpTransport::flush() noexcept {
  for (TcpConnection* connection : shared_.dirty) {
    if (!connection->closed()) connection->flush();
  }
  shared_.dirty.clear();
}

// hot
bool TcpTransport::poll() noexcept {
  WEFT_DEBUG_ASSERT(!polling_, "TcpTransport::poll: called from a callback");
  polling_ = true;
  bool progress = false;
  std::vector<TcpConnection*>& active = shared_.active;
  for (std::size_t i = 0; i < active.size();) {
    TcpConnection& connection = *active[i];
    if (!connection.closed()) progress |= connection.poll();
    if (connection.lost() && !connection.closed()) [[unlikely]] {
      lose(connection);
      progress = true;
    }
    if (connection.wants_poll()) {
      ++i;
      continue;
    }
    connection.active_ = false;
    active[i] = active.back();
    active.pop_back();
  }
  if (!shared_.dirty.empty()) flush();  // what callbacks have sent
  while (orphans_ != nullptr)
    [[unlikely]] {
      BulkSend* const bulk = std::exchange(orphans_, orphans_->next);
      bulk->next = nullptr;
      sink_.on_bulk_sent(*bulk, Outcome{Errc::peer_lost, bulk->peer, 0});
      progress = true;
    }
  polling_ = false;
  if (closed_ != 0) [[unlikely]]
    reap();
  return progress;
}

bool TcpTransport::prepare_to_block() noexcept {
  if (!shared_.dirty.empty()) flush();
  // A last look at the hot connections; with it the reactor learns now what an edge would tell it right after.
  if (poll() || orphans_ != nullptr) return false;
  for (const TcpConnection* connection : shared_.active) {
    if (connection->must_not_block()) return false;
  }
  return true;
}

bool TcpTransport::drained() const noexcept {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->closed() || connection->drained(); });
}

void TcpTransport::lose(TcpConnection& connection) noexcept {
  const std::int32_t peer = connection.peer();
  const TcpLoss loss = connection.loss();
  by_peer_[static_cast<std::size_t>(peer)] = nullptr;  // from here on nothing is accepted for it
  while (BulkSend* bulk = connection.take_bulk())
    sink_.on_bulk_sent(*bulk, loss.outcome);
  close(connection);
  sink_.on_peer_lost(peer, loss.outcome, loss.cause);
}

void TcpTransport::disconnect(std::int32_t peer) noexcept {
  TcpConnection* const found = connection(peer);
  if (found != nullptr) close(*found);
  for (BulkSend** link = &orphans_; *link != nullptr;) {
    if ((*link)->peer == peer) {
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
  if (!polling_ && closed_ != 0) reap();
}

void TcpTransport::close(TcpConnection& connection) noexcept {
  TcpConnection*& place = by_peer_[static_cast<std::size_t>(connection.peer())];
  if (place == &connection) place = nullptr;
  liveness_.forget(connection);
  reactor_.io().remove(connection.fd());
  connection.close();
  ++closed_;
}

void TcpTransport::reap() noexcept {
  std::erase_if(shared_.active, [](const TcpConnection* connection) { return connection->closed(); });
  std::erase_if(shared_.dirty, [](const TcpConnection* connection) { return connection->closed(); });
  std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
  closed_ = 0;
}

}  // namespace weft::net
