#include "weft/net/protocol/messenger.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::net {

Messenger::Messenger(std::int32_t self, std::int32_t world_size, Connector& connector)
    : self_(self), connector_(connector) {
  for (std::int32_t rank = 0; rank < world_size; ++rank) peers_.emplace_back();
}

Messenger::~Messenger() = default;

// hot
void Messenger::start_send(SendRequest& request) noexcept {
  Peer& peer = peers_[index(request.peer)];
  if (peer.state == PeerState::connected && peer.queue.empty()) [[likely]] {
    if (try_start(peer, request)) return;
  } else if (peer.state == PeerState::left || peer.state == PeerState::lost) {
    finish(request, peer.end);
    return;
  } else if (peer.state == PeerState::unknown) {
    peer.state = PeerState::connecting;
    request.state = SendRequest::State::queued;
    peer.queue.push_back(request);
    connector_.request_connection(request.peer);
    return;
  }
  request.state = SendRequest::State::queued;
  peer.queue.push_back(request);
}

// hot
void Messenger::start_recv(RecvRequest& request) noexcept {
  const MatchPattern& pattern = request.pattern();
  if (UnexpectedMessage* message = matcher_.match_post(pattern)) {
    const WireHeader header = message->header();
    const std::int32_t source = message->source();
    if (header.kind == PacketKind::eager) {
      receive_eager(request, source, header, message->payload());
      matcher_.release(*message);
      give_window_back(source, header.length);
      request.owner.on_request_done();
    } else {
      RtsPayload offer;
      std::memcpy(&offer, message->payload().data(), sizeof offer);
      matcher_.release(*message);
      accept_rts(request, source, header, std::as_bytes(std::span(&offer, 1)));
    }
    return;
  }
  if (pattern.source != kAnySource) {
    const Peer& peer = peers_[index(pattern.source)];
    if (peer.state == PeerState::left || peer.state == PeerState::lost) {
      finish(request, peer.end);
      return;
    }
  }
  request.state = RecvRequest::State::posted;
  matcher_.post(request);
  if (pattern.source == kAnySource) fail_orphaned_wildcards();
}

void Messenger::cancel_recv(RecvRequest& request, Outcome outcome) noexcept {
  if (request.state != RecvRequest::State::posted) return;  // matched: it will end with its value
  matcher_.cancel(request);
  finish(request, outcome);
}

void Messenger::cancel_send(SendRequest& request, Outcome outcome) noexcept {
  if (request.state == SendRequest::State::queued) {
    request.ListHook<SendQueueTag>::unlink();
    finish(request, outcome);
  } else if (request.state == SendRequest::State::offered) {
    // The receiver may be reading the buffer already: only its answer can release us.
    request.state = SendRequest::State::withdrawing;
    request.withdraw_outcome = outcome;
    WireHeader header;
    header.kind = PacketKind::rts_cancel;
    header.aux = request.slot;
    send_control(request.peer, header);
    connector_.on_withdrawing(request.peer, request.slot);
  }
}

bool Messenger::still_withdrawing(std::uint32_t slot) const noexcept {
  const SendRequest* request = sends_.find(slot);
  return request != nullptr && request->state == SendRequest::State::withdrawing;
}

bool Messenger::idle() const noexcept {
  for (const Peer& peer : peers_) {
    if (peer.state != PeerState::connected && peer.state != PeerState::connecting) continue;
    if (!peer.queue.empty() || !peer.control.empty()) return false;
  }
  return true;
}

void Messenger::on_connected(std::int32_t rank, Transport& via) noexcept {
  Peer& peer = peers_[index(rank)];
  if (peer.state == PeerState::left || peer.state == PeerState::lost) return;
  peer.transport = &via;
  peer.state = PeerState::connected;
  peer.window_bytes = peer.transport->capabilities().eager_window_bytes;
  drain(rank);
  if (goodbye_.has_value() && rank != self_) send_control(rank, *goodbye_);
}

void Messenger::on_writable(std::int32_t rank) noexcept { drain(rank); }

// hot
void Messenger::on_packets(std::int32_t rank, std::span<const IncomingPacket> packets) noexcept {
  for (const IncomingPacket& packet : packets) dispatch(rank, packet);
}

void Messenger::dispatch(std::int32_t rank, const IncomingPacket& packet) noexcept {
  switch (packet.header.kind) {
    case PacketKind::eager: on_eager(rank, packet); return;
    case PacketKind::rts: on_rts(rank, packet); return;
    case PacketKind::cts: on_cts(rank, packet); return;
    case PacketKind::data: on_data(rank, packet); return;
    case PacketKind::fin: on_fin(rank, packet.header); return;
    case PacketKind::credit: {
      Peer& peer = peers_[index(rank)];
      const std::size_t limit = peer.transport->capabilities().eager_window_bytes;
      // A peer cannot give more than it holds.
      peer.window_bytes += std::min<std::uint64_t>(packet.header.tag, limit - peer.window_bytes);
      return;
    }
    case PacketKind::rts_cancel: on_rts_cancel(rank, packet.header); return;
    case PacketKind::rts_gone: on_rts_gone(rank, packet.header); return;
    case PacketKind::goodbye: on_goodbye(rank, packet.header); return;
  }
}

bool Messenger::try_start(Peer& peer, SendRequest& request) noexcept {
  if (fits_eager(peer, request.payload.size())) return try_send_eager(peer, request);
  return try_send_rts(peer, request);
}

void Messenger::drain(std::int32_t rank) noexcept {
  Peer& peer = peers_[index(rank)];
  while (peer.control_sent < peer.control.size()) {
    const ControlPacket& packet = peer.control[peer.control_sent];
    const std::span<const std::byte> payload = std::as_bytes(std::span(&packet.cts, 1)).first(packet.header.length);
    if (peer.state != PeerState::connected || !peer.transport->try_send(rank, packet.header, payload)) return;
    ++peer.control_sent;
  }
  peer.control.clear();
  peer.control_sent = 0;
  while (peer.state == PeerState::connected && !peer.queue.empty()) {
    SendRequest& request = peer.queue.front();
    request.ListHook<SendQueueTag>::unlink();
    if (!try_start(peer, request)) {
      request.state = SendRequest::State::queued;
      peer.queue.push_front(request);
      return;
    }
  }
}

void Messenger::send_control(std::int32_t rank, const WireHeader& header, const CtsPayload* cts) noexcept {
  Peer& peer = peers_[index(rank)];
  if (peer.state != PeerState::connected) return;  // nobody is left to be told
  ControlPacket packet{header, cts != nullptr ? *cts : CtsPayload()};
  packet.header.length = cts != nullptr ? static_cast<std::uint32_t>(sizeof(CtsPayload)) : 0;
  const std::span<const std::byte> payload = std::as_bytes(std::span(&packet.cts, 1)).first(packet.header.length);
  if (peer.control.empty() && peer.transport->try_send(rank, packet.header, payload)) [[likely]] return;
  peer.control.push_back(packet);
}

void Messenger::finish(SendRequest& request, Outcome outcome) noexcept {
  request.outcome = outcome;
  request.state = SendRequest::State::done;
  request.owner.on_request_done();
}

void Messenger::finish(RecvRequest& request, Outcome outcome) noexcept {
  request.outcome = outcome;
  request.state = RecvRequest::State::done;
  request.owner.on_request_done();
}

}  // namespace weft::net
