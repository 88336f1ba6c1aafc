#include "weft/net/shm/shm_transport.hpp"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "weft/runtime/deadline.hpp"
#include "weft/runtime/log.hpp"

namespace weft::net {
namespace {

// A set-up is four small messages between processes of one host; 10 s are for a peer that is stopped or starved.
constexpr Duration kAcceptTimeout = std::chrono::seconds(10);

}  // namespace

ShmOptions ShmOptions::from_environment() {
  ShmOptions options;
  const char* const text = std::getenv("WEFT_SHM_CMA");
  if (text == nullptr || std::string_view(text) == "auto") return options;
  if (std::string_view(text) != "off") {
    throw Error(Errc::bad_environment, "shm transport",
                "WEFT_SHM_CMA is '" + std::string(text) + "'; it must be auto or off");
  }
  options.read_other_process = false;
  return options;
}

ShmTransport::ShmTransport(Reactor& reactor, TransportSink& sink, const JobToken& token, std::int32_t rank,
                           std::int32_t world_size, const ShmOptions& options)
    : reactor_(reactor),
      sink_(sink),
      token_(token),
      address_(make_shm_address()),
      listener_(listen_unix(address_.socket_name)),
      doorbell_(SharedMemory::create("weft-doorbell", sizeof(Doorbell), SharedMemory::Access::owner_only)),
      event_fd_(make_event_fd()),
      event_handler_(event_fd_.get()),
      by_peer_(static_cast<std::size_t>(world_size)),
      self_{reactor,
            token_,
            rank,
            doorbell_,
            event_fd_.get(),
            probe_word_.probe(),
            options.read_same_process,
            options.read_other_process,
            by_peer_} {
  capabilities_.name = "shm";
  capabilities_.max_packet_bytes = kRingMaxPayload;
  // Two copies of 8 KiB cost less than the two more crossings and the system call of a read; above it they do not.
  capabilities_.eager_limit_bytes = kRingMaxPayload;
  // What a receiver that is busy elsewhere buffers for one sender: 32 of the largest eager messages.
  capabilities_.eager_window_bytes = 256 * 1024;
  capabilities_.can_get = options.read_same_process || options.read_other_process;
  connections_.reserve(by_peer_.size());
  dirty_.reserve(by_peer_.size());
  const Outcome added = reactor_.io().add(event_fd_.get(), event_handler_);
  if (!added.ok()) throw Error(added.code, "shm transport", "cannot watch its eventfd", kNoRank, added.native);
}

ShmTransport::~ShmTransport() {
  for (const auto& connection : connections_) {
    if (!connection->closed) close(*connection);
  }
  connections_.clear();
  reactor_.io().remove(event_fd_.get());
}

Task<void> ShmTransport::serve() {
  co_await with_nursery(&ShmTransport::accept_all, this);
}

Task<void> ShmTransport::accept_all(Nursery& nursery, ShmTransport* self) {
  WEFT_ASSERT(bool(self->listener_), "ShmTransport::serve: called twice");
  Acceptor acceptor(self->reactor_, std::move(self->listener_));
  for (;;) {
    Socket socket = co_await acceptor.accept();
    nursery.start(accept_one(self, std::move(socket)));
  }
}

Task<void> ShmTransport::accept_one(ShmTransport* self, Socket socket) {
  try {
    Task<ShmLink> accepting = shm_accept(&self->self_, std::move(socket));
    Task<ShmLink> limited = with_deadline(kAcceptTimeout, std::move(accepting));
    ShmLink link = co_await std::move(limited);
    self->adopt(std::move(link));
  } catch (const Error& error) {
    // A stranger, or a peer that died while it connected: nobody here waits for it.
    self->turned_away(error);
  }
}

Task<void> ShmTransport::connect(std::int32_t peer, std::string address) {
  WEFT_ASSERT(peer >= 0 && static_cast<std::size_t>(peer) < by_peer_.size() && peer != self_.rank,
              "ShmTransport::connect: no such peer");
  const std::string operation = "shm connect to rank " + std::to_string(peer);
  if (const std::string reason = shm_unreachable_reason(to_string(address_), address); !reason.empty()) {
    throw Error(Errc::unsupported, operation, reason, peer);
  }
  ShmAddress there;
  (void)parse_shm_address(address, there);  // shm_unreachable_reason() has done it before
  ShmLink link = co_await shm_connect(&self_, peer, std::move(there.socket_name));
  adopt(std::move(link));
}

void ShmTransport::turned_away(const Error& error) const noexcept {
  if (error.code() == Errc::cancelled) return;
  log(LogLevel::warning, "rank " + std::to_string(self_.rank) + ": shared-memory connection refused: " + error.what());
}

void ShmTransport::adopt(ShmLink link) {
  const std::int32_t peer = link.peer;
  ShmConnection*& place = by_peer_[static_cast<std::size_t>(peer)];
  if (place != nullptr) {
    throw Error(Errc::address_in_use, "shm set-up", "rank " + std::to_string(peer) + " is connected already", peer);
  }
  auto connection = std::make_unique<ShmConnection>(std::move(link), attention_);
  const Outcome added = reactor_.io().add(connection->socket_fd(), *connection);
  if (!added.ok()) throw Error(added.code, "shm set-up", "cannot watch the peer's socket", peer, added.native);
  place = connection.get();
  connections_.push_back(std::move(connection));
  sink_.on_connected(peer, *this);
}

void ShmTransport::disconnect(std::int32_t peer) noexcept {
  ShmConnection* const found = connection(peer);
  if (found == nullptr) return;
  close(*found);
  while (gets_.pop_of(peer) != nullptr) {
  }
  if (!polling_) reap();
}

void ShmTransport::close(ShmConnection& connection) noexcept {
  by_peer_[static_cast<std::size_t>(connection.peer())] = nullptr;
  reactor_.io().remove(connection.socket_fd());
  if (connection.dirty) std::erase(dirty_, &connection);
  if (connection.blocked || !connection.bulks.empty()) --waiting_for_room_;
  connection.closed = true;
  ++closed_;
}

void ShmTransport::reap() noexcept {
  if (closed_ == 0) return;
  std::erase_if(connections_, [](const auto& connection) { return connection->closed; });
  closed_ = 0;
}

}  // namespace weft::net
