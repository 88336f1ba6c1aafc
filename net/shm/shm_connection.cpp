#include "weft/net/shm/shm_connection.hpp"

#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace weft::net {
namespace {

constexpr std::size_t index_of(PairSide side) noexcept {
  return static_cast<std::size_t>(side);
}
constexpr std::size_t other(PairSide side) noexcept {
  return 1 - index_of(side);
}

}  // namespace

ShmConnection::ShmConnection(ShmLink link, bool& attention) noexcept
    : link_(std::move(link)),
      segment_(reinterpret_cast<PairSegment*>(link_.segment.data())),
      doorbell_(reinterpret_cast<const Doorbell*>(link_.doorbell.data())),
      attention_(attention) {
  const std::size_t mine = index_of(link_.side);
  const std::size_t theirs = other(link_.side);
  out = RingProducer(segment_->lines[mine], segment_->control[mine]);
  in = RingConsumer(segment_->lines[theirs], segment_->control[theirs]);
}

ShmConnection::~ShmConnection() {
  if (link_.memory.way() != PeerMemory::Way::same_process) return;
  ReadGuard& guard = segment_->guard[index_of(link_.side)];
  guard.closing.store(1);
  while (guard.reading.load() != 0)
    ::sched_yield();
}

ssize_t ShmConnection::read_memory(std::uint64_t from, std::span<std::byte> to) noexcept {
  if (link_.memory.way() == PeerMemory::Way::other_process) return link_.memory.read(from, to);
  ReadGuard& guard = segment_->guard[other(link_.side)];
  guard.reading.store(1);
  const ssize_t got = guard.closing.load() != 0 ? -ESRCH : link_.memory.read(from, to);
  guard.reading.store(0);
  return got;
}

ShmConnection::SocketState ShmConnection::check_socket() noexcept {
  char byte = 0;
  const ssize_t got = ::recv(link_.socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got > 0) return SocketState::garbage;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return SocketState::open;
  return SocketState::ended;
}

void ShmConnection::on_io(IoEvents events) noexcept {
  if (!events.readable && !events.hangup) return;  // writable once at the start: of no interest
  socket_event = true;
  attention_ = true;
}

}  // namespace weft::net
