// ShmTransport where messages flow. // hot
#include <cerrno>

#include "weft/net/shm/shm_transport.hpp"

namespace weft::net {
namespace {

// Bytes that get() moves in one poll: a stall of the reactor of 15 to 30 us at 10 to 20 GB/s, while the fixed cost of a
// piece (a system call and the pinning of its first page, about 1 us between processes) stays under a tenth of it.
constexpr std::size_t kGetBytesPerPoll = 256 * 1024;

// Bulk payload of one packet: with its header exactly a quarter of the ring, so that bulk alone never skips.
constexpr std::size_t kBulkPayload = kRingLines / 4 * kLineBytes - kWireHeaderBytes;
static_assert(kBulkPayload <= kRingMaxPayload);
// A ring's worth and a half in one poll, if the peer takes that fast: the others' turn comes after 50 KiB.
constexpr std::size_t kBulkPacketsPerPoll = 6;
// Bulk leaves so many lines to small packets, which would otherwise find the ring full as long as it lasts.
constexpr std::size_t kLinesBesideBulk = kRingLines / 8;

std::size_t next_bulk_bytes(const BulkSend& bulk) noexcept {
  return std::min(kBulkPayload, bulk.payload.size() - bulk.sent_bytes);
}

bool bulk_fits(RingProducer& out, std::size_t bytes) noexcept {
  return out.has_room(ring_lines_of(kBulkPayload) + kLinesBesideBulk) && out.has_room_for(bytes);
}

}  // namespace

bool ShmTransport::try_send(std::int32_t peer, const WireHeader& header, std::span<const std::byte> payload) noexcept {
  ShmConnection* const to = connection(peer);
  if (to == nullptr) [[unlikely]]
    return false;
  if (!to->out.try_push(header, payload)) [[unlikely]] {
    if (!to->blocked && to->bulks.empty()) ++waiting_for_room_;
    to->blocked = true;
    return false;
  }
  mark_dirty(*to);
  return true;
}

void ShmTransport::mark_dirty(ShmConnection& connection) noexcept {
  if (connection.dirty) return;
  connection.dirty = true;
  dirty_.push_back(&connection);
}

void ShmTransport::flush() noexcept {
  if (dirty_.empty()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with go_to_sleep(); one fence for all peers
  for (ShmConnection* connection : dirty_) {
    connection->dirty = false;
    connection->wake_after_fence();
  }
  dirty_.clear();
}

bool ShmTransport::poll() noexcept {
  WEFT_DEBUG_ASSERT(!polling_, "ShmTransport::poll: called from a callback");
  polling_ = true;
  bool progress = false;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    ShmConnection& connection = *connections_[i];
    if (connection.closed || !connection.in.ready()) continue;
    progress = true;
    std::size_t packets = 0;
    if (receive(connection, packets) == RingTake::corrupt && !connection.closed) [[unlikely]] {
      lose(connection, Outcome{Errc::protocol, connection.peer(), 0}, "it wrote a malformed packet into shared memory");
    }
  }
  if (!gets_.empty()) progress |= move_gets();
  if (waiting_for_room_ != 0) [[unlikely]] {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (!connections_[i]->closed) progress |= move_out(*connections_[i]);
    }
  }
  if (!orphan_bulks_.empty()) [[unlikely]]
    progress |= finish_orphans();
  if (attention_) [[unlikely]] {
    look_at_sockets();
    progress = true;
  }
  flush();
  polling_ = false;
  reap();
  return progress;
}

/// One burst. `packets` gives how many were delivered.
RingTake ShmTransport::receive(ShmConnection& connection, std::size_t& packets) noexcept {
  RingTake taken = RingTake::record;
  packets = 0;
  while (packets < burst_.size()) {
    IncomingPacket& packet = burst_[packets];
    taken = connection.in.take(packet.header, packet.payload);
    if (taken != RingTake::record) break;
    ++packets;
  }
  if (packets != 0) {
    sink_.on_packets(connection.peer(), std::span(burst_).first(packets));
    if (!connection.closed) connection.release();
  }
  return taken;
}

bool ShmTransport::can_get(std::int32_t peer) const noexcept {
  const ShmConnection* const from = connection(peer);
  return from != nullptr && from->memory().way() != PeerMemory::Way::none;
}

void ShmTransport::get(GetRequest& request) noexcept {
  request.done_bytes = 0;
  gets_.push(request);
}

bool ShmTransport::move_gets() noexcept {
  std::size_t budget = kGetBytesPerPoll;
  while (budget != 0 && !gets_.empty()) {
    GetRequest& request = *gets_.front();
    Outcome outcome{Errc::ok, request.peer, 0};
    ShmConnection* const from = connection(request.peer);
    const std::size_t left = request.local.size() - request.done_bytes;
    if (from == nullptr) {
      outcome.code = Errc::peer_lost;
    } else if (from->memory().way() == PeerMemory::Way::none) {
      outcome = Outcome{Errc::unsupported, request.peer, from->memory().refusal()};
    } else if (left != 0) {
      const std::span<std::byte> to = request.local.subspan(request.done_bytes, std::min(left, budget));
      const ssize_t got = from->read_memory(request.remote_address + request.done_bytes, to);
      if (got > 0) {
        request.done_bytes += static_cast<std::size_t>(got);
        budget -= static_cast<std::size_t>(got);
        if (request.done_bytes != request.local.size()) continue;
        // What was read came from that process only if it still lives: its id could have gone to another one. The
        // socket ends before the id is free.
        if (from->memory().way() == PeerMemory::Way::other_process &&
            from->check_socket() == ShmConnection::SocketState::ended) {
          from->socket_event = attention_ = true;
          outcome.code = Errc::peer_lost;
        }
      } else {
        outcome.native = static_cast<std::int32_t>(-got);
        // EFAULT: the peer has named memory that it does not have.
        outcome.code = got == -EFAULT || got == 0 ? Errc::invalid_argument : errc_from_errno(outcome.native);
      }
    }
    gets_.pop();
    sink_.on_get_done(request, outcome);
  }
  return true;
}

void ShmTransport::send_bulk(BulkSend& bulk) noexcept {
  bulk.sent_bytes = 0;
  ShmConnection* const to = connection(bulk.peer);
  if (to == nullptr) {
    orphan_bulks_.push(bulk);
    return;
  }
  if (!to->blocked && to->bulks.empty()) ++waiting_for_room_;
  to->bulks.push(bulk);
}

/// Whether move_out() would do something.
bool ShmTransport::can_move_out(ShmConnection& connection) noexcept {
  if (connection.out.broken()) return true;
  if (connection.blocked && connection.out.has_room(kRingLinesForAny)) return true;
  const BulkSend* const bulk = connection.bulks.front();
  return bulk != nullptr && bulk_fits(connection.out, next_bulk_bytes(*bulk));
}

/// on_writable() and bulk of one peer.
bool ShmTransport::move_out(ShmConnection& connection) noexcept {
  if (!connection.blocked && connection.bulks.empty()) return false;
  bool progress = false;
  if (connection.blocked && connection.out.has_room(kRingLinesForAny)) {
    connection.blocked = false;
    if (connection.bulks.empty()) --waiting_for_room_;
    progress = true;
    sink_.on_writable(connection.peer());
  }
  for (std::size_t packets = 0; packets < kBulkPacketsPerPoll && !connection.closed; ++packets) {
    BulkSend* const bulk = connection.bulks.front();
    if (bulk == nullptr) break;
    const std::size_t bytes = next_bulk_bytes(*bulk);
    if (bytes != 0) {
      if (!bulk_fits(connection.out, bytes)) break;
      WireHeader header;
      header.kind = PacketKind::data;
      header.length = static_cast<std::uint32_t>(bytes);
      header.tag = bulk->sent_bytes;
      header.aux = bulk->receiver_slot;
      if (!connection.out.try_push(header, bulk->payload.subspan(bulk->sent_bytes, bytes))) break;
      mark_dirty(connection);
      bulk->sent_bytes += bytes;
      progress = true;
    }
    if (bulk->sent_bytes != bulk->payload.size()) continue;
    connection.bulks.pop();
    if (connection.bulks.empty() && !connection.blocked) --waiting_for_room_;
    progress = true;
    sink_.on_bulk_sent(*bulk, Outcome{Errc::ok, connection.peer(), 0});
  }
  if (connection.out.broken() && !connection.closed) [[unlikely]] {
    lose(connection, Outcome{Errc::protocol, connection.peer(), 0}, "it wrote an impossible ring position");
    progress = true;
  }
  return progress;
}

bool ShmTransport::finish_orphans() noexcept {
  while (BulkSend* bulk = orphan_bulks_.pop())
    sink_.on_bulk_sent(*bulk, Outcome{Errc::peer_lost, bulk->peer, 0});
  return true;
}

bool ShmTransport::prepare_to_block() noexcept {
  flush();
  go_to_sleep(doorbell().sleep);
  // From here on a peer that publishes or releases rings the eventfd; what it did before is seen below.
  bool idle = gets_.empty() && orphan_bulks_.empty() && !attention_;
  for (std::size_t i = 0; idle && i < connections_.size(); ++i) {
    ShmConnection& connection = *connections_[i];
    idle = !connection.in.ready();
    if (idle && (connection.blocked || !connection.bulks.empty())) idle = !can_move_out(connection);
  }
  if (!idle) stay_awake(doorbell().sleep);
  return idle;
}

void ShmTransport::after_block() noexcept {
  stay_awake(doorbell().sleep);
}

[[gnu::cold]] void ShmTransport::look_at_sockets() noexcept {
  attention_ = false;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    ShmConnection& connection = *connections_[i];
    if (connection.closed || !connection.socket_event) continue;
    connection.socket_event = false;
    switch (connection.check_socket()) {
      case ShmConnection::SocketState::open: break;
      case ShmConnection::SocketState::ended:
        // It can publish nothing any more: what is in the ring now is all.
        drain(connection);
        if (connection.closed) break;
        lose(connection, Outcome{Errc::peer_lost, connection.peer(), 0},
             "its end of the shared-memory connection closed: the process has ended or was killed");
        break;
      case ShmConnection::SocketState::garbage:
        lose(connection, Outcome{Errc::protocol, connection.peer(), 0}, "it sent bytes on the set-up socket");
        break;
    }
  }
}

/// Delivers what is left in the ring of a dead peer: at most one ring's worth, whatever it says.
[[gnu::cold]] void ShmTransport::drain(ShmConnection& connection) noexcept {
  std::size_t delivered = 0;
  while (delivered < kRingLines && !connection.closed) {
    std::size_t packets = 0;
    const RingTake taken = receive(connection, packets);
    delivered += packets;
    if (packets == 0 || taken == RingTake::corrupt) return;
  }
}

[[gnu::cold]] void ShmTransport::lose(ShmConnection& connection, Outcome outcome, std::string_view cause) noexcept {
  const std::int32_t peer = connection.peer();
  close(connection);
  while (GetRequest* request = gets_.pop_of(peer))
    sink_.on_get_done(*request, outcome);
  while (BulkSend* bulk = connection.bulks.pop())
    sink_.on_bulk_sent(*bulk, outcome);
  sink_.on_peer_lost(peer, outcome, cause);
}

}  // namespace weft::net
