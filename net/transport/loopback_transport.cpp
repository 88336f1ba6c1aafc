#include "weft/net/transport/loopback_transport.hpp"

#include <cstring>
#include <utility>

#include "weft/runtime/event.hpp"

namespace weft::net {
namespace {

// A copy through the queue costs two passes, a get one; a rendezvous with oneself costs three packets and a turn.
// Messages up to 8 KiB stay in the first-level cache either way.
constexpr std::size_t kMaxPacketBytes = 8 * 1024;
constexpr std::size_t kQueueBytes = 64 * 1024;
constexpr TransportCapabilities kCapabilities{"self", kMaxPacketBytes, kMaxPacketBytes, kQueueBytes, true};

}  // namespace

LoopbackTransport::LoopbackTransport(std::int32_t self, TransportSink& sink) : self_(self), sink_(sink) {
  sending_.reserve(kQueueBytes + kMaxPacketBytes);
  delivering_.reserve(kQueueBytes + kMaxPacketBytes);
}

const TransportCapabilities& LoopbackTransport::capabilities() const noexcept { return kCapabilities; }

Task<void> LoopbackTransport::serve() {
  Event never;  // nobody else can come: there is only the cancel to wait for
  co_await never.wait();
}

Task<void> LoopbackTransport::connect(std::int32_t peer, std::string /*address*/) {
  sink_.on_connected(peer, *this);
  co_return;
}

bool LoopbackTransport::try_send(std::int32_t /*peer*/, const WireHeader& header,
                                 std::span<const std::byte> payload) noexcept {
  if (sending_.size() >= kQueueBytes) {
    refused_ = true;
    return false;
  }
  const std::size_t at = sending_.size();
  sending_.resize(at + kWireHeaderBytes + payload.size());
  encode(header, sending_.data() + at);
  if (!payload.empty()) std::memcpy(sending_.data() + at + kWireHeaderBytes, payload.data(), payload.size());
  return true;
}

bool LoopbackTransport::can_get(std::int32_t /*peer*/) const noexcept { return true; }

void LoopbackTransport::get(GetRequest& request) noexcept {
  request.next = std::exchange(gets_, &request);
}

void LoopbackTransport::send_bulk(BulkSend& bulk) noexcept {
  // Nobody asks: a receiver that can get never says CTS.
  sink_.on_bulk_sent(bulk, Outcome{Errc::unsupported, self_, 0});
}

bool LoopbackTransport::poll() noexcept {
  if (sending_.empty() && gets_ == nullptr) return false;
  while (GetRequest* get = gets_) {
    gets_ = get->next;
    std::memcpy(get->local.data(), reinterpret_cast<const void*>(get->remote_address), get->local.size());
    get->done_bytes = get->local.size();
    sink_.on_get_done(*get, Outcome());
  }
  std::swap(sending_, delivering_);
  std::span<const std::byte> rest(delivering_);
  while (!rest.empty()) {
    IncomingPacket packet;
    const Errc decoded = decode(rest, kMaxPacketBytes, packet.header);
    WEFT_ASSERT(decoded == Errc::ok, "the loopback transport was given a malformed packet");
    packet.payload = rest.subspan(kWireHeaderBytes, packet.header.length);
    rest = rest.subspan(kWireHeaderBytes + packet.header.length);
    sink_.on_packets(self_, std::span(&packet, 1));
  }
  delivering_.clear();
  if (std::exchange(refused_, false)) sink_.on_writable(self_);
  return true;
}

}  // namespace weft::net
