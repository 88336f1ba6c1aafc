// TcpConnection, inwards. // hot
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/net/tcp/tcp_connection.hpp"

namespace weft::net {
namespace {

// Bytes one connection receives in one poll before it is the next one's turn: a copy of some 50 us.
constexpr std::size_t kReceiveBytesPerPoll = 512 * 1024;

// How much is received into the buffer behind the rest of a bulk payload: the next header and some small packets. More
// would be bulk again, and would have to be copied from there.
constexpr std::size_t kBytesBehindBulk = 4 * 1024;

// How long a connection stays hot without a byte, in recv calls of about 0.3 us: 60 us, several round trips between two
// hosts of a rack, and so longer than any answer takes that was not computed first.
constexpr int kFruitlessPolls = 200;

}  // namespace

bool TcpConnection::receive() noexcept {
  std::size_t total = 0;
  while (total < kReceiveBytesPerPoll) {
    bool full = false;
    const std::size_t got = receive_once(full);
    if (got == 0) break;
    total += got;
    consume(got);
    if (closed()) [[unlikely]]
      return true;
    if (broken_ && input_ended_) [[unlikely]]
      break;
    if (!full) {
      // The socket is empty; whatever comes now is a new edge. Not so the end of the stream, which may have been
      // reported already together with these bytes.
      readable_ = hangup_;
      if (!hangup_) break;
    }
  }
  if (in_begin_ == in_end_ && in_ != nullptr) shared_.buffers.give_back(std::move(in_));
  if (total != 0) {
    fruitless_ = 0;
    make_hot();
  } else if (++fruitless_ >= kFruitlessPolls) {
    make_cold();
  }
  return total != 0;
}

std::size_t TcpConnection::receive_once(bool& full) noexcept {
  if (in_ == nullptr) {
    in_ = shared_.buffers.lease();
    if (in_ == nullptr) [[unlikely]]
      return 0;  // no memory; readable_ stays, the next poll tries again
    in_begin_ = in_end_ = 0;
  }
  ssize_t got;
  std::size_t wanted;
  do {
    if (bulk_left_ == 0) [[likely]] {
      wanted = BufferPool::kBufferBytes - in_end_;
      got = ::recv(fd_.get(), in_.get() + in_end_, wanted, MSG_DONTWAIT);
    } else {
      std::array<iovec, 2> pieces{iovec{.iov_base = bulk_to_, .iov_len = bulk_left_},
                                  iovec{.iov_base = in_.get(), .iov_len = kBytesBehindBulk}};
      wanted = bulk_left_ + kBytesBehindBulk;
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = pieces.size();
      got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    }
  } while (got < 0 && errno == EINTR);
  if (got > 0) [[likely]] {
    full = static_cast<std::size_t>(got) == wanted;
    return static_cast<std::size_t>(got);
  }
  const int error = got < 0 ? errno : 0;
  if (error == EAGAIN || error == EWOULDBLOCK) {
    readable_ = false;
    return 0;
  }
  input_ended_ = true;
  readable_ = false;
  if (error != 0) {
    fail(Errc::peer_lost, error, error == ETIMEDOUT ? "its host does not answer" : "its connection was reset");
  } else if (in_begin_ != in_end_ || bulk_left_ != 0) {
    fail(Errc::peer_lost, 0, "its connection ended in the middle of a packet");
  } else {
    fail(Errc::peer_lost, 0, "its connection ended");
  }
  return 0;
}

void TcpConnection::consume(std::size_t bytes) noexcept {
  if (bulk_left_ != 0) {
    const std::size_t in_place = std::min(bytes, bulk_left_);
    bulk_to_ += in_place;
    bulk_left_ -= in_place;
    bytes -= in_place;
    if (bulk_left_ == 0) shared_.sink.on_bulk_received(peer_, bulk_header_);
    if (closed()) return;
  }
  in_end_ += bytes;
  if (in_begin_ != in_end_) parse();
}

void TcpConnection::parse() noexcept {
  std::size_t packets = 0;
  std::size_t needed = kWireHeaderBytes;  // of the packet that stands at in_begin_
  while (in_end_ - in_begin_ >= kWireHeaderBytes) {
    IncomingPacket& packet = shared_.burst[packets];
    const std::span<const std::byte> rest(in_.get() + in_begin_, in_end_ - in_begin_);
    const bool well_formed = decode(rest, kTcpFrameBytes, packet.header) == Errc::ok &&
                             (packet.header.kind == PacketKind::data || packet.header.length <= kTcpMaxPacketBytes);
    if (!well_formed) [[unlikely]] {
      deliver(packets);
      if (closed()) return;
      input_ended_ = true;
      fail(Errc::protocol, 0, "it sent bytes that are no Weft packet");
      return;
    }
    if (packet.header.kind == PacketKind::data) {
      const WireHeader header = packet.header;  // delivering uses the burst again
      deliver(packets);
      if (closed() || !parse_data(header)) return;
      continue;
    }
    if (rest.size() < kWireHeaderBytes + packet.header.length) {
      needed = kWireHeaderBytes + packet.header.length;
      break;
    }
    packet.payload = rest.subspan(kWireHeaderBytes, packet.header.length);
    in_begin_ += kWireHeaderBytes + packet.header.length;
    if (++packets == shared_.burst.size()) {
      deliver(packets);
      if (closed()) return;
    }
  }
  deliver(packets);
  if (closed()) return;
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
  } else if (in_begin_ + needed > BufferPool::kBufferBytes || in_begin_ > BufferPool::kBufferBytes / 2) {
    std::memmove(in_.get(), in_.get() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
}

bool TcpConnection::parse_data(const WireHeader& header) noexcept {
  std::byte* const place = shared_.sink.bulk_destination(peer_, header);
  if (closed()) return false;
  if (place == nullptr) [[unlikely]] {
    input_ended_ = true;
    fail(Errc::protocol, 0, "it sent data that no transfer expects");
    return false;
  }
  in_begin_ += kWireHeaderBytes;
  const std::size_t here = std::min<std::size_t>(header.length, in_end_ - in_begin_);
  std::memcpy(place, in_.get() + in_begin_, here);
  in_begin_ += here;
  if (here == header.length) {
    shared_.sink.on_bulk_received(peer_, header);
    return !closed();
  }
  bulk_header_ = header;
  bulk_to_ = place + here;
  bulk_left_ = header.length - here;
  in_begin_ = in_end_ = 0;
  return false;
}

void TcpConnection::deliver(std::size_t& packets) noexcept {
  if (packets == 0) return;
  const std::span<const IncomingPacket> burst = std::span(shared_.burst).first(packets);
  packets = 0;
  shared_.sink.on_packets(peer_, burst);
}

void TcpConnection::make_hot() noexcept {
  if (hot_ || shared_.hot == TcpShared::kMaxHot) return;
  hot_ = true;
  ++shared_.hot;
  activate();
}

void TcpConnection::make_cold() noexcept {
  if (!hot_) return;
  hot_ = false;
  --shared_.hot;
}

void TcpConnection::fail(Errc code, int native, std::string_view cause) noexcept {
  activate();
  readable_ = !input_ended_;  // what has arrived is delivered before the loss is reported
  if (broken_) return;
  broken_ = true;
  loss_ = TcpLoss{Outcome{code, peer_, native}, cause};
}

}  // namespace weft::net
