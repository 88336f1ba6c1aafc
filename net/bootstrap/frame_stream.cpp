#include "weft/net/bootstrap/frame_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace weft::net::store {
namespace {

// 5 s of silence, then five probes 2 s apart: one lost probe, or a network that is away for a few seconds, ends no job.
constexpr int kQuietSeconds = 5;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 5;

void set_option(int fd, int level, int option, int value) noexcept {
  // Refused only where the socket is no TCP socket; then there is nothing to tune.
  static_cast<void>(::setsockopt(fd, level, option, &value, sizeof value));
}

}  // namespace

void prepare_connection(const Socket& socket) noexcept {
  const int fd = socket.fd();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kQuietSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Task<std::optional<std::vector<std::byte>>> read_frame(Socket& socket, std::size_t limit) {
  std::array<std::byte, kLengthBytes> head;
  try {
    co_await socket.read_exact(head);
  } catch (const Error& error) {
    if (error.code() != Errc::peer_closed) throw;
    co_return std::nullopt;
  }
  const std::optional<std::size_t> length = decode_length(head, limit);
  if (!length.has_value()) {
    throw Error(Errc::protocol, "store", socket.peer() + " sent a frame of a forbidden length");
  }
  std::vector<std::byte> bytes(*length);
  try {
    co_await socket.read_exact(bytes);
  } catch (const Error& error) {
    if (error.code() != Errc::peer_closed) throw;
    throw Error(Errc::peer_lost, "store", "the connection to " + socket.peer() + " ended in the middle of a frame");
  }
  co_return bytes;
}

void FrameWriter::push(OutFrame frame) {
  if (broken() || finished_) return;
  std::size_t sent = 0;
  if (queue_.empty()) sent = send_now(frame);
  if (sent == frame.size()) return;
  if (queue_.empty()) front_sent_ = sent;
  queued_bytes_ += frame.size() - sent;
  queue_.push_back(std::move(frame));
  drained_.reset();
  work_.set();
}

std::size_t FrameWriter::send_now(const OutFrame& frame) noexcept {
  if (!socket_.open()) return 0;
  std::array<iovec, 2> parts{};
  parts[0].iov_base = const_cast<std::byte*>(frame.head.data());
  parts[0].iov_len = frame.head.size();
  if (frame.tail) {
    parts[1].iov_base = const_cast<std::byte*>(frame.tail->data());
    parts[1].iov_len = frame.tail->size();
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = frame.tail ? 2 : 1;
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // A failure is left to run(), which meets it again.
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

Task<void> FrameWriter::run() {
  while (true) {
    if (queue_.empty()) {
      if (finished_) co_return;
      work_.reset();
      co_await work_.wait();
      continue;
    }
    // The deque keeps its elements in place while others are pushed behind them.
    const OutFrame& frame = queue_.front();
    try {
      if (front_sent_ < frame.head.size()) co_await socket_.write_all(Bytes(frame.head).subspan(front_sent_));
      if (frame.tail) {
        const std::size_t sent = front_sent_ > frame.head.size() ? front_sent_ - frame.head.size() : 0;
        co_await socket_.write_all(Bytes(*frame.tail).subspan(sent));
      }
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled || error.code() == Errc::timed_out) throw;
      failure_ = error.what();
    }
    if (broken()) {
      queue_.clear();
      queued_bytes_ = 0;
      drained_.set();
      socket_.close();
      co_return;
    }
    queued_bytes_ -= frame.size() - front_sent_;
    front_sent_ = 0;
    queue_.pop_front();
    drained_.set();
  }
}

void FrameWriter::finish() noexcept {
  finished_ = true;
  work_.set();
}

Task<void> FrameWriter::below(std::size_t limit) {
  while (queued_bytes_ >= limit) {
    drained_.reset();
    co_await drained_.wait();
  }
}

}  // namespace weft::net::store
