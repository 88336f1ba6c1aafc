// hot: small messages. One packet carries all of it; the send is done when the transport has copied it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/net/protocol/messenger.hpp"

namespace weft::net {
namespace {

/// What an eager message of so many bytes costs its receiver while no receive has taken it: whole lines, header
/// included, so that a flood of empty messages is bounded too.
std::size_t window_cost(std::size_t payload_bytes) noexcept {
  return (kWireHeaderBytes + payload_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

bool Messenger::fits_eager(const Peer& peer, std::size_t bytes) const noexcept {
  return bytes <= peer.transport->capabilities().eager_limit_bytes && window_cost(bytes) <= peer.window_bytes;
}

bool Messenger::try_send_eager(Peer& peer, SendRequest& request) noexcept {
  WireHeader header;
  header.kind = PacketKind::eager;
  header.length = static_cast<std::uint32_t>(request.payload.size());
  header.tag = request.tag;
  header.context = request.context;
  header.aux = request.note;
  if (!peer.transport->try_send(request.peer, header, request.payload)) return false;
  peer.window_bytes -= window_cost(request.payload.size());
  ++counters_.eager_sent;
  finish(request, Outcome());
  return true;
}

void Messenger::on_eager(std::int32_t rank, const IncomingPacket& packet) noexcept {
  const WireHeader& header = packet.header;
  if (PostedReceive* posted = matcher_.match_arrival(header.context, rank, header.tag)) [[likely]] {
    auto& request = static_cast<RecvRequest&>(*posted);
    receive_eager(request, rank, header, packet.payload);
    give_window_back(rank, packet.payload.size());
    request.owner.on_request_done();
    return;
  }
  matcher_.add_unexpected(rank, header, packet.payload);
  if (is_collective(header.context)) connector_.on_early_collective(rank, header, header.aux);
}

void Messenger::receive_eager(RecvRequest& request, std::int32_t source, const WireHeader& header,
                              std::span<const std::byte> payload) noexcept {
  request.source = source;
  request.tag = header.tag;
  request.length = payload.size();
  request.note = header.aux;
  const std::size_t copied = std::min(payload.size(), request.buffer.size());
  if (copied != 0) std::memcpy(request.buffer.data(), payload.data(), copied);
  request.outcome = payload.size() > request.buffer.size() ? Outcome{Errc::truncated, source, 0} : Outcome();
  request.state = RecvRequest::State::done;
  ++counters_.received;
}

void Messenger::give_window_back(std::int32_t rank, std::size_t payload_bytes) noexcept {
  Peer& peer = peers_[index(rank)];
  peer.owed_bytes += window_cost(payload_bytes);
  if (peer.state != PeerState::connected) return;
  if (peer.owed_bytes < peer.transport->capabilities().eager_window_bytes / 2) [[likely]] return;
  WireHeader header;
  header.kind = PacketKind::credit;
  header.tag = std::exchange(peer.owed_bytes, 0);
  ++counters_.credit_packets;
  send_control(rank, header);
}

}  // namespace weft::net
