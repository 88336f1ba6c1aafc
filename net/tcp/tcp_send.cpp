// TcpConnection, outwards. // hot
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/net/tcp/tcp_connection.hpp"

namespace weft::net {
namespace {

// A packet of so many bytes leaves at once and straight from the caller's memory: the copy into the buffer (1.6 us at
// 10 GB/s) would cost more than the system call that sending it later, together with others, could save.
constexpr std::size_t kDirectBytes = 16 * 1024;

iovec piece_of(const std::byte* data, std::size_t size) noexcept {
  return iovec{.iov_base = const_cast<std::byte*>(data), .iov_len = size};
}

}  // namespace

bool TcpConnection::bulk_waits() const noexcept {
  for (const BulkSend* bulk = bulk_front_; bulk != nullptr; bulk = bulk->next) {
    if (bulk->sent_bytes < bulk->payload.size()) return true;
  }
  return false;
}

bool TcpConnection::make_room(std::size_t bytes) noexcept {
  if (out_ == nullptr) {
    out_ = shared_.buffers.lease();
    out_begin_ = out_end_ = 0;
    return out_ != nullptr;
  }
  if (BufferPool::kBufferBytes - out_end_ >= bytes) [[likely]]
    return true;
  if (writable_) {
    std::size_t sent = 0;
    send_once({}, false, sent);
    if (broken_) return false;
    if (out_ == nullptr) return make_room(bytes);
  }
  if (BufferPool::kBufferBytes - (out_end_ - out_begin_) < bytes) return false;
  std::memmove(out_.get(), out_.get() + out_begin_, out_end_ - out_begin_);
  out_end_ -= out_begin_;
  out_begin_ = 0;
  return true;
}

bool TcpConnection::try_send(const WireHeader& header, std::span<const std::byte> payload) noexcept {
  WEFT_DEBUG_ASSERT(payload.size() == header.length && payload.size() <= kTcpMaxPacketBytes, "tcp: a wrong length");
  // What leaves directly needs the room as well: the kernel may take a part of it.
  if (broken_ || !make_room(kWireHeaderBytes + payload.size())) [[unlikely]] {
    refused_ = true;
    activate();
    return false;
  }
  if (payload.size() >= kDirectBytes && writable_) {
    std::array<std::byte, kWireHeaderBytes> head;
    encode(header, head.data());
    const std::array<iovec, 2> extra{piece_of(head.data(), head.size()), piece_of(payload.data(), payload.size())};
    std::size_t sent = 0;
    const std::size_t unsent = send_once(extra, false, sent);
    if (unsent == 0) return true;
    if (broken_) {
      activate();
      return true;  // the loss is reported by poll()
    }
    if (out_ == nullptr) out_ = shared_.buffers.lease();
    if (out_ == nullptr) [[unlikely]] {
      fail(Errc::exhausted, ENOMEM, "there is no memory for its packets");
      return true;
    }
    const std::size_t unsent_payload = std::min(unsent, payload.size());
    const std::size_t unsent_head = unsent - unsent_payload;
    std::memcpy(out_.get() + out_end_, head.data() + head.size() - unsent_head, unsent_head);
    std::memcpy(out_.get() + out_end_ + unsent_head, payload.data() + payload.size() - unsent_payload, unsent_payload);
    out_end_ += unsent;
  } else {
    encode(header, out_.get() + out_end_);
    if (!payload.empty()) std::memcpy(out_.get() + out_end_ + kWireHeaderBytes, payload.data(), payload.size());
    out_end_ += kWireHeaderBytes + payload.size();
  }
  if (!dirty_) {
    dirty_ = true;
    shared_.dirty.push_back(this);
  }
  return true;
}

void TcpConnection::send_bulk(BulkSend& bulk) noexcept {
  bulk.sent_bytes = 0;
  bulk.next = nullptr;
  *bulk_tail_ = &bulk;
  bulk_tail_ = &bulk.next;
  activate();
}

void TcpConnection::flush() noexcept {
  dirty_ = false;
  // More than one round only after a part was taken; the rest goes when the engine reports room.
  while (writable_ && !broken_ && out_begin_ != out_end_) {
    std::size_t sent = 0;
    send_once({}, false, sent);
    if (sent == 0) break;
  }
  if (must_not_block()) activate();
}

bool TcpConnection::pump(std::size_t budget) noexcept {
  std::size_t total = 0;
  while (writable_ && !broken_ && has_output() && total < budget) {
    std::size_t sent = 0;
    send_once({}, true, sent);
    if (sent == 0) break;
    total += sent;
  }
  return total != 0;
}

void TcpConnection::open_frame() noexcept {
  BulkSend* bulk = bulk_front_;
  while (bulk != nullptr && bulk->sent_bytes == bulk->payload.size())
    bulk = bulk->next;
  if (bulk == nullptr) return;
  frame_bulk_ = bulk;
  frame_payload_ = std::min(kTcpFrameBytes, bulk->payload.size() - bulk->sent_bytes);
  WireHeader header;
  header.kind = PacketKind::data;
  header.length = static_cast<std::uint32_t>(frame_payload_);
  header.tag = bulk->sent_bytes;
  header.aux = bulk->receiver_slot;
  encode(header, frame_header_.data());
  frame_left_ = kWireHeaderBytes + frame_payload_;
}

std::size_t TcpConnection::send_once(std::span<const iovec> extra, bool with_bulk, std::size_t& sent_bytes) noexcept {
  // In the order in which the bytes stand on the wire: an open frame must end before anything else begins.
  std::array<iovec, 6> pieces;
  std::size_t count = 0;
  const auto add_frame = [&]() noexcept {
    const std::size_t payload_left = std::min(frame_left_, frame_payload_);
    const std::size_t head_left = frame_left_ - payload_left;
    if (head_left != 0) {
      pieces[count++] = piece_of(frame_header_.data() + kWireHeaderBytes - head_left, head_left);
    }
    // sent_bytes counts what has left: the unsent part of the frame begins there.
    pieces[count++] = piece_of(frame_bulk_->payload.data() + frame_bulk_->sent_bytes, payload_left);
  };
  const bool frame_first = frame_left_ != 0;
  if (frame_first) add_frame();
  if (out_begin_ != out_end_) pieces[count++] = piece_of(out_.get() + out_begin_, out_end_ - out_begin_);
  std::size_t extra_left = 0;
  for (const iovec& piece : extra) {
    pieces[count++] = piece;
    extra_left += piece.iov_len;
  }
  if (with_bulk && !frame_first) {
    open_frame();
    if (frame_left_ != 0) add_frame();
  }
  sent_bytes = 0;
  if (count == 0) return 0;

  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t result;
  do {
    result = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (result < 0 && errno == EINTR);
  if (result < 0) [[unlikely]] {
    output_failed(errno);
    if (!frame_first) frame_left_ = 0;
    return extra_left;
  }
  sent_bytes = static_cast<std::size_t>(result);

  std::size_t left = sent_bytes;
  const auto take_frame = [&]() noexcept {
    const std::size_t taken = std::min(left, frame_left_);
    const std::size_t payload_before = std::min(frame_left_, frame_payload_);
    frame_left_ -= taken;
    left -= taken;
    frame_bulk_->sent_bytes += payload_before - std::min(frame_left_, frame_payload_);
  };
  if (frame_first) take_frame();
  const std::size_t staged = std::min(left, out_end_ - out_begin_);
  out_begin_ += staged;
  left -= staged;
  if (out_begin_ == out_end_ && out_ != nullptr) {
    out_begin_ = out_end_ = 0;
    shared_.buffers.give_back(std::move(out_));
  }
  const std::size_t extra_sent = std::min(left, extra_left);
  left -= extra_sent;
  if (!frame_first && frame_left_ != 0) {
    // A frame of which nothing has left is not open: the next small packet goes before it.
    if (left == 0) {
      frame_left_ = 0;
    } else {
      take_frame();
    }
  }
  return extra_left - extra_sent;
}

bool TcpConnection::report_sent() noexcept {
  bool reported = false;
  // A callback may queue more, or close the connection.
  while (bulk_front_ != nullptr && bulk_front_->sent_bytes == bulk_front_->payload.size()) {
    BulkSend* const bulk = take_bulk();
    shared_.sink.on_bulk_sent(*bulk, Outcome{Errc::ok, peer_, 0});
    reported = true;
    if (closed()) return true;
  }
  // Half the buffer free: with less the protocol would be called for every few packets.
  if (refused_ && !broken_ && out_end_ - out_begin_ <= BufferPool::kBufferBytes / 2) {
    refused_ = false;
    shared_.sink.on_writable(peer_);
    reported = true;
  }
  return reported;
}

void TcpConnection::output_failed(int error) noexcept {
  if (error == EAGAIN || error == EWOULDBLOCK) {
    writable_ = false;
    return;
  }
  if (error == ENOBUFS || error == ENOMEM) return;  // no edge will tell when that is over: poll() tries again
  fail(Errc::peer_lost, error, error == ETIMEDOUT ? "its host does not answer" : "its connection was reset");
}

}  // namespace weft::net
