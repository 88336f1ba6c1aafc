// Large messages, and small ones for which there is no window: nothing moves before the receiver has a place for it.
#include <algorithm>
#include <cstring>

#include "weft/net/protocol/messenger.hpp"

namespace weft::net {

// ---- sender ---------------------------------------------------------------------------------------------------------

bool Messenger::try_send_rts(Peer& peer, SendRequest& request) noexcept {
  request.slot = sends_.add(request);
  RtsPayload offer;
  offer.length = request.payload.size();
  offer.note = request.note;
  offer.address = reinterpret_cast<std::uintptr_t>(request.payload.data());
  WireHeader header;
  header.kind = PacketKind::rts;
  header.length = sizeof offer;
  header.tag = request.tag;
  header.context = request.context;
  header.aux = request.slot;
  if (!peer.transport->try_send(request.peer, header, std::as_bytes(std::span(&offer, 1)))) {
    sends_.remove(request.slot);
    return false;
  }
  request.state = SendRequest::State::offered;
  ++counters_.rendezvous_sent;
  return true;
}

SendRequest* Messenger::offered(std::int32_t rank, std::uint32_t slot) noexcept {
  SendRequest* request = sends_.find(slot);
  if (request == nullptr || request->peer != rank) return nullptr;
  const bool open = request->state == SendRequest::State::offered || request->state == SendRequest::State::withdrawing;
  return open ? request : nullptr;
}

void Messenger::on_cts(std::int32_t rank, const IncomingPacket& packet) noexcept {
  SendRequest* request = offered(rank, packet.header.aux);
  if (request == nullptr) return;  // its send has ended: the peer is late, or wrong
  CtsPayload cts;
  std::memcpy(&cts, packet.payload.data(), sizeof cts);
  request->state = SendRequest::State::streaming;
  request->bulk.peer = rank;
  request->bulk.receiver_slot = cts.slot;
  request->bulk.payload = request->payload.first(std::min<std::uint64_t>(cts.length, request->payload.size()));
  request->bulk.sent_bytes = 0;
  request->bulk.context = request;
  peers_[index(rank)].transport->send_bulk(request->bulk);
}

void Messenger::on_bulk_sent(BulkSend& bulk, Outcome outcome) noexcept {
  auto& request = *static_cast<SendRequest*>(bulk.context);
  sends_.remove(request.slot);
  finish(request, outcome);
}

void Messenger::on_fin(std::int32_t rank, const WireHeader& header) noexcept {
  SendRequest* request = offered(rank, header.aux);
  if (request == nullptr) return;
  sends_.remove(request->slot);
  finish(*request, outcome_of_fin(rank, header.tag));
}

Outcome Messenger::outcome_of_fin(std::int32_t rank, std::uint64_t verdict) const noexcept {
  const auto code = static_cast<Errc>(verdict & 0xff);
  const auto at_fault = static_cast<std::int32_t>(verdict >> 8 & 0xffffffff) - 1;
  const bool names_a_rank = at_fault >= 0 && at_fault < world_size();
  switch (code) {
    case Errc::closed: return Outcome{Errc::peer_closed, rank, 0};  // no receive: its communicator is gone
    case Errc::peer_lost:
    case Errc::peer_closed:
    case Errc::mismatch: return Outcome{code, names_a_rank ? at_fault : rank, 0};
    default: return Outcome();  // a receive that was too short is the receiver's failure, not the sender's
  }
}

void Messenger::on_rts_gone(std::int32_t rank, const WireHeader& header) noexcept {
  SendRequest* request = offered(rank, header.aux);
  if (request == nullptr || request->state != SendRequest::State::withdrawing) return;
  sends_.remove(request->slot);
  finish(*request, request->withdraw_outcome);
}

// ---- receiver -------------------------------------------------------------------------------------------------------

void Messenger::on_rts(std::int32_t rank, const IncomingPacket& packet) noexcept {
  const WireHeader& header = packet.header;
  if (PostedReceive* posted = matcher_.match_arrival(header.context, rank, header.tag)) {
    accept_rts(static_cast<RecvRequest&>(*posted), rank, header, packet.payload);
    return;
  }
  const UnexpectedMessage& message = matcher_.add_unexpected(rank, header, packet.payload);
  if (is_collective(header.context)) connector_.on_early_collective(rank, header, note_of(message));
}

std::uint32_t note_of(const UnexpectedMessage& message) noexcept {
  if (message.header().kind == PacketKind::eager) return message.header().aux;
  RtsPayload offer;
  std::memcpy(&offer, message.payload().data(), sizeof offer);
  return offer.note;
}

void Messenger::accept_rts(RecvRequest& request, std::int32_t source, const WireHeader& header,
                           std::span<const std::byte> payload) noexcept {
  RtsPayload offer;
  std::memcpy(&offer, payload.data(), sizeof offer);
  request.source = source;
  request.tag = header.tag;
  request.length = offer.length;
  request.note = offer.note;
  request.sender_slot = header.aux;
  Peer& peer = peers_[index(source)];
  if (peer.state != PeerState::connected) {  // it offered and then died: the message is out of reach
    finish(request, peer.end);
    return;
  }
  if (offer.length > request.buffer.size()) {
    finish_transfer(request, Outcome{Errc::truncated, source, 0});
    return;
  }
  if (offer.length == 0) {
    finish_transfer(request, Outcome());
    return;
  }
  const std::span<std::byte> place = request.buffer.first(offer.length);
  if (peer.transport->can_get(source)) {
    request.state = RecvRequest::State::reading;
    request.slot = reads_.add(request);
    request.get.peer = source;
    request.get.remote_address = offer.address;
    request.get.remote_key = offer.key;
    request.get.local = place;
    request.get.done_bytes = 0;
    request.get.context = &request;
    peer.transport->get(request.get);
    return;
  }
  request.state = RecvRequest::State::receiving;
  request.slot = receives_.add(request);
  request.received_bytes = 0;
  WireHeader answer;
  answer.kind = PacketKind::cts;
  answer.aux = request.sender_slot;
  CtsPayload cts;
  cts.length = offer.length;
  cts.slot = request.slot;
  send_control(source, answer, &cts);
}

/// Tells the sender that its buffer is free, then ends the receive.
void Messenger::finish_transfer(RecvRequest& request, Outcome outcome) noexcept {
  WireHeader fin;
  fin.kind = PacketKind::fin;
  fin.aux = request.sender_slot;
  fin.tag = fin_verdict(outcome);
  send_control(request.source, fin);
  ++counters_.received;
  finish(request, outcome);
}

void Messenger::on_get_done(GetRequest& get, Outcome outcome) noexcept {
  auto& request = *static_cast<RecvRequest*>(get.context);
  reads_.remove(request.slot);
  if (!outcome.ok()) outcome.peer = request.source;
  finish_transfer(request, outcome);
}

RecvRequest* Messenger::receiving(std::int32_t rank, const WireHeader& header) noexcept {
  RecvRequest* request = receives_.find(header.aux);
  if (request == nullptr || request->source != rank) return nullptr;
  // Data comes in order; anything else is not from a sender of ours.
  if (header.tag != request->received_bytes || header.length > request->length - request->received_bytes)
    return nullptr;
  return request;
}

std::byte* Messenger::bulk_destination(std::int32_t peer, const WireHeader& header) noexcept {
  RecvRequest* request = receiving(peer, header);
  return request == nullptr ? nullptr : request->buffer.data() + request->received_bytes;
}

void Messenger::on_bulk_received(std::int32_t peer, const WireHeader& header) noexcept {
  RecvRequest* request = receiving(peer, header);
  if (request == nullptr) return;
  request->received_bytes += header.length;
  if (request->received_bytes < request->length) return;
  receives_.remove(request->slot);
  ++counters_.received;
  finish(*request, Outcome());
}

void Messenger::on_data(std::int32_t rank, const IncomingPacket& packet) noexcept {
  std::byte* place = bulk_destination(rank, packet.header);
  if (place == nullptr) return;
  std::memcpy(place, packet.payload.data(), packet.payload.size());
  on_bulk_received(rank, packet.header);
}

void Messenger::on_rts_cancel(std::int32_t rank, const WireHeader& header) noexcept {
  UnexpectedMessage* message = matcher_.find_unexpected_rts(rank, header.aux);
  if (message == nullptr) return;  // matched meanwhile: the transfer goes on, and its end is the answer
  matcher_.release(*message);
  WireHeader answer;
  answer.kind = PacketKind::rts_gone;
  answer.aux = header.aux;
  send_control(rank, answer);
}

}  // namespace weft::net
