#include "weft/net/fabric.hpp"

#include <utility>

#include "weft/net/shm/shm_transport.hpp"
#include "weft/net/tcp/tcp_address.hpp"
#include "weft/net/tcp/tcp_transport.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

// How long a rank that gives up tries to tell the others. They would find out by the end of its connections anyway,
// but not why.
constexpr Duration kAbandonTimeout = std::chrono::milliseconds(200);

StoreClientOptions store_options(const JobEnvironment& job, std::int32_t rank, std::uint16_t port) {
  StoreClientOptions options;
  options.host = job.master_address;
  options.port = port;
  options.rank = rank;
  options.world_size = job.world_size;
  return options;
}

}  // namespace

Fabric::Fabric(Reactor& reactor, const JobEnvironment& job, std::int32_t rank, std::uint16_t store_port)
    : reactor_(reactor),
      job_(job),
      rank_(rank),
      store_(reactor, store_options(job, rank, store_port), job.token, this),
      messenger_(rank, job.world_size, *this),
      loopback_(rank, messenger_),
      connecting_(static_cast<std::size_t>(job.world_size)) {}

Fabric::~Fabric() {
  WEFT_ASSERT(groups_.empty(), "a communicator outlives the fabric that it was made on");
  if (nursery_ != nullptr) reactor_.remove_poller(*this);
}

void Fabric::open_transports() {
  if (job_.world_size > 1 && job_.transport != TransportChoice::tcp) {
    links_.push_back(Link{"shm", std::make_unique<ShmTransport>(reactor_, messenger_, job_.token, rank_,
                                                                job_.world_size, ShmOptions::from_environment())});
  }
  if (job_.world_size > 1 && job_.transport != TransportChoice::shm) {
    links_.push_back(Link{"tcp", std::make_unique<TcpTransport>(reactor_, messenger_, job_.token, rank_,
                                                                job_.world_size, tcp_local_host(job_.master_address))});
  }
}

Task<void> Fabric::open(Nursery& nursery) {
  open_transports();
  messenger_.on_connected(rank_, loopback_);
  nursery_ = &nursery;
  reactor_.add_poller(*this);
  if (job_.world_size == 1) co_return;  // nobody to be found by
  for (const Link& link : links_) nursery.start(link.transport->serve());
  co_await store_.start(nursery);
  const std::string addresses = own_addresses();
  co_await store_.set("address/" + std::to_string(rank_), std::as_bytes(std::span(addresses)));
}

Communicator Fabric::make_world() {
  std::vector<std::int32_t> members(static_cast<std::size_t>(job_.world_size));
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = static_cast<std::int32_t>(i);
  auto group = std::make_unique<Group>(*this, messenger_, "world", 0, std::move(members));
  if (job_.timeout != Duration::max()) group->set_default_timeout(job_.timeout);
  group->set_order(job_.canonical_order ? Order::canonical : Order::consistent);
  return Communicator(std::move(group));
}

Task<void> Fabric::drain_sends() {
  // Each turn of the reactor moves them on; a peer that dies takes its own out of the way.
  while (true) {
    bool drained = messenger_.idle() && loopback_.drained();
    for (const Link& link : links_) drained = drained && link.transport->drained();
    if (drained) co_return;
    co_await yield();
  }
}

Task<void> Fabric::finish() {
  co_await drain_sends();
  leaving_ = true;
  if (job_.world_size == 1) co_return;
  messenger_.say_goodbye(Errc::ok, kNoRank);
  co_await drain_sends();
  co_await store_.goodbye(0, kNoRank);
  // What was sent may still be on its way, and the end of a process can take it along: a socket with unread input is
  // reset. So this rank reads on until everybody who is connected to it has ended too.
  while (messenger_.any_connected()) {
    peer_ended_.reset();
    co_await peer_ended_.wait();
  }
}

Task<void> Fabric::abandon(Errc code, std::int32_t at_fault) {
  leaving_ = true;
  messenger_.say_goodbye(code, at_fault);
  flush();
  if (job_.world_size == 1) co_return;
  Task<void> farewell = store_.goodbye(static_cast<std::int32_t>(code), at_fault);
  Task<void> limited = with_deadline(kAbandonTimeout, std::move(farewell));
  const Result<void> told = co_await as_result(std::move(limited));
  (void)told;  // they will see the connections end
}

// hot
bool Fabric::poll() noexcept {
  flush();
  bool progress = loopback_.poll();
  for (const Link& link : links_) progress |= link.transport->poll();
  if (progress) flush();
  return progress;
}

void Fabric::flush() noexcept {
  for (const Link& link : links_) link.transport->flush();
}

bool Fabric::prepare_to_block() noexcept {
  flush();
  if (!loopback_.prepare_to_block()) return false;
  for (prepared_ = 0; prepared_ < links_.size(); ++prepared_) {
    if (links_[prepared_].transport->prepare_to_block()) continue;
    after_block();
    return false;
  }
  return true;
}

void Fabric::after_block() noexcept {
  for (std::size_t i = 0; i < prepared_; ++i) links_[i].transport->after_block();
  prepared_ = 0;
}

const char* Fabric::transport_of(std::int32_t peer) const noexcept {
  const Peer& known = messenger_.peer(peer);
  return known.state == PeerState::connected ? known.transport->capabilities().name : "";
}

}  // namespace weft::net
