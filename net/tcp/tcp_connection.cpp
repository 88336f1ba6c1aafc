#include "weft/net/tcp/tcp_connection.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace weft::net {
namespace {

// Bulk handed to the kernel by one poll: two frames, a stall of the reactor of some 100 us at 5 GB/s.
constexpr std::size_t kSendBytesPerPoll = 2 * kTcpFrameBytes;

}  // namespace

TcpConnection::TcpConnection(TcpShared& shared, std::int32_t peer, UniqueFd fd, std::string name)
    : shared_(shared), fd_(std::move(fd)), peer_(peer), name_(std::move(name)) {}

TcpConnection::~TcpConnection() {
  if (in_ != nullptr) shared_.buffers.give_back(std::move(in_));
  if (out_ != nullptr) shared_.buffers.give_back(std::move(out_));
}

void TcpConnection::on_io(IoEvents events) noexcept {
  readable_ = readable_ || events.readable;
  writable_ = writable_ || events.writable;
  if (events.hangup) hangup_ = readable_ = true;
  activate();
}

void TcpConnection::activate() noexcept {
  if (active_ || closed()) return;
  active_ = true;
  shared_.active.push_back(this);
}

bool TcpConnection::wants_poll() const noexcept {
  return !closed() && (readable_ || hot_ || must_not_block());
}

bool TcpConnection::must_not_block() const noexcept {
  const bool may_send = writable_ && !broken_ && has_output();
  const bool has_news = bulk_front_ != nullptr && bulk_front_->sent_bytes == bulk_front_->payload.size();
  return broken_ || may_send || has_news || (refused_ && writable_);
}

bool TcpConnection::poll() noexcept {
  bool progress = false;
  if (readable_ || hot_) progress |= receive();
  if (closed()) [[unlikely]]
    return true;
  if (writable_ && !broken_ && has_output()) progress |= pump(kSendBytesPerPoll);
  if (bulk_front_ != nullptr || refused_) [[unlikely]]
    progress |= report_sent();
  return progress;
}

void TcpConnection::declare_silent() noexcept {
  fail(Errc::peer_lost, ETIMEDOUT, "its host does not answer");
}

BulkSend* TcpConnection::take_bulk() noexcept {
  BulkSend* const bulk = bulk_front_;
  if (bulk == nullptr) return nullptr;
  bulk_front_ = bulk->next;
  if (bulk_front_ == nullptr) bulk_tail_ = &bulk_front_;
  bulk->next = nullptr;
  return bulk;
}

void TcpConnection::close() noexcept {
  if (closed()) return;
  make_cold();
  if (!broken_) flush();
  // Closing with unread bytes sends a reset, which may overtake what the peer has not read yet: its last packets from
  // us. So the stream is ended first, and what has arrived is thrown away.
  ::shutdown(fd_.get(), SHUT_WR);
  std::array<std::byte, 4096> scrap;
  for (int reads = 0; reads < 64 && ::recv(fd_.get(), scrap.data(), scrap.size(), MSG_DONTWAIT) > 0; ++reads) {
  }
  fd_.reset();
  bulk_front_ = nullptr;
  bulk_tail_ = &bulk_front_;
  frame_left_ = 0;
  bulk_left_ = 0;
  out_begin_ = out_end_ = 0;
}

}  // namespace weft::net
