#include "weft/net/socket/socket.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/net/socket/socket_address.hpp"
#include "weft/net/socket/watched_fd.hpp"
#include "weft/runtime/current.hpp"

namespace weft::net {

struct Socket::State {
  State(Reactor& reactor, UniqueFd fd, std::string name)
      : watched(reactor, std::move(fd), "socket"), peer(std::move(name)) {}
  WatchedFd watched;
  std::string peer;
};

// The coroutines behind Socket's operations. They share the state, so that moving or closing the socket under them is
// defined; and they are no members of Socket, whose address may change.
class SocketTasks {
 public:
  using State = std::shared_ptr<Socket::State>;

  static Task<void> read_exact(State state, std::span<std::byte> bytes);
  static Task<std::size_t> read_some(State state, std::span<std::byte> bytes);
  static Task<void> write_all(State state, std::span<const std::byte> bytes);
  static Task<void> write_with_fds(State state, std::span<const std::byte> bytes, std::span<const int> fds);
  static Task<void> read_with_fds(State state, std::span<std::byte> bytes, std::vector<UniqueFd>* fds,
                                  std::size_t max_fds);

 private:
  [[noreturn]] static void throw_closed(const char* verb) {
    throw Error(Errc::closed, verb, "the socket was closed on this side");
  }
  [[noreturn]] static void throw_wait(const State& state, const char* verb, Errc code) {
    if (code == Errc::closed) throw_closed(verb);
    throw Error(code, verb, std::string(to_string(code)) + " while waiting for " + state->peer);
  }
  [[noreturn]] static void throw_errno(const State& state, const char* verb, int error) {
    const Errc code = errc_from_errno(error);
    // TCP_USER_TIMEOUT and keepalive end a connection with ETIMEDOUT: that is a dead peer, no deadline of the caller.
    const bool lost = code == Errc::peer_lost || code == Errc::timed_out || code == Errc::unreachable;
    throw Error(lost ? Errc::peer_lost : code, verb, "the connection to " + state->peer + " failed", kNoRank, error);
  }
  [[noreturn]] static void throw_end(const State& state, std::size_t done, std::size_t wanted) {
    if (done == 0) throw Error(Errc::peer_closed, "read", state->peer + " closed the connection");
    throw Error(Errc::peer_lost, "read",
                state->peer + " closed the connection after " + std::to_string(done) + " of " + std::to_string(wanted) +
                    " bytes");
  }
  static void check_open(const State& state, const char* verb) {
    if (state == nullptr || !state->watched.open()) throw_closed(verb);
  }
  /// One recvmsg, whose descriptors go to `fds`. Gives its result and errno.
  static ssize_t receive_with_fds(int fd, std::span<std::byte> bytes, std::vector<UniqueFd>& fds);
};

namespace {

// A wait that the caller's scope has cancelled must also end a transfer that never has to wait.
Errc cancel_requested(const PromiseBase& self) noexcept {
  return self.scope != nullptr ? self.scope->requested() : Errc::ok;
}

// The kernel passes at most SCM_MAX_FD (253) descriptors at once; with room for all of them none can be lost unseen.
constexpr std::size_t kMaxFdsOnTheWire = 253;
constexpr std::size_t kMaxFdsToSend = 8;

}  // namespace

Task<std::size_t> SocketTasks::read_some(State state, std::span<std::byte> bytes) {
  PromiseBase& self = co_await detail::this_coroutine();
  for (;;) {
    check_open(state, "read");
    if (const Errc code = cancel_requested(self); code != Errc::ok) throw_wait(state, "read", code);
    const ssize_t got = ::recv(state->watched.fd(), bytes.data(), bytes.size(), 0);
    if (got >= 0) co_return static_cast<std::size_t>(got);
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) throw_errno(state, "read", error);
    const WatchedFd::Ready ready = co_await state->watched.readable();
    if (ready.code != Errc::ok) throw_wait(state, "read", ready.code);
  }
}

Task<void> SocketTasks::read_exact(State state, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t got = co_await read_some(state, bytes.subspan(done));
    if (got == 0) throw_end(state, done, bytes.size());
    done += got;
  }
}

Task<void> SocketTasks::write_all(State state, std::span<const std::byte> bytes) {
  PromiseBase& self = co_await detail::this_coroutine();
  while (!bytes.empty()) {
    check_open(state, "write");
    if (const Errc code = cancel_requested(self); code != Errc::ok) throw_wait(state, "write", code);
    const ssize_t sent = ::send(state->watched.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) throw_errno(state, "write", error);
    const WatchedFd::Ready ready = co_await state->watched.writable();
    if (ready.code != Errc::ok) throw_wait(state, "write", ready.code);
  }
}

Task<void> SocketTasks::write_with_fds(State state, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (bytes.empty() || fds.size() > kMaxFdsToSend) {
    throw Error(Errc::invalid_argument, "write",
                "descriptors travel with at least one byte, and at most 8 of them at once");
  }
  PromiseBase& self = co_await detail::this_coroutine();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFdsToSend * sizeof(int))> control{};
  for (;;) {
    check_open(state, "write");
    if (const Errc code = cancel_requested(self); code != Errc::ok) throw_wait(state, "write", code);
    iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    const ssize_t sent = ::sendmsg(state->watched.fd(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      break;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) throw_errno(state, "write", error);
    const WatchedFd::Ready ready = co_await state->watched.writable();
    if (ready.code != Errc::ok) throw_wait(state, "write", ready.code);
  }
  co_await write_all(std::move(state), bytes);
}

ssize_t SocketTasks::receive_with_fds(int fd, std::span<std::byte> bytes, std::vector<UniqueFd>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFdsOnTheWire * sizeof(int))> control;
  iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(received);
    }
  }
  return got;
}

Task<void> SocketTasks::read_with_fds(State state, std::span<std::byte> bytes, std::vector<UniqueFd>* fds,
                                      std::size_t max_fds) {
  PromiseBase& self = co_await detail::this_coroutine();
  std::vector<UniqueFd> received;  // closed with this frame when the read fails
  std::size_t done = 0;
  while (done < bytes.size()) {
    check_open(state, "read");
    if (const Errc code = cancel_requested(self); code != Errc::ok) throw_wait(state, "read", code);
    const ssize_t got = receive_with_fds(state->watched.fd(), bytes.subspan(done), received);
    const int error = errno;
    if (received.size() > max_fds) {
      throw Error(Errc::protocol, "read",
                  state->peer + " sent " + std::to_string(received.size()) + " descriptors where at most " +
                      std::to_string(max_fds) + " belong");
    }
    if (got == 0) throw_end(state, done, bytes.size());
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      continue;
    }
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) throw_errno(state, "read", error);
    const WatchedFd::Ready ready = co_await state->watched.readable();
    if (ready.code != Errc::ok) throw_wait(state, "read", ready.code);
  }
  for (UniqueFd& fd : received)
    fds->push_back(std::move(fd));
}

Socket::Socket() noexcept = default;

Socket::Socket(Reactor& reactor, UniqueFd fd, std::string peer)
    : state_(std::make_shared<State>(reactor, std::move(fd), std::move(peer))) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

Socket::~Socket() {
  close();
}

Task<void> Socket::read_exact(std::span<std::byte> bytes) {
  return SocketTasks::read_exact(state_, bytes);
}

Task<std::size_t> Socket::read_some(std::span<std::byte> bytes) {
  return SocketTasks::read_some(state_, bytes);
}

Task<void> Socket::write_all(std::span<const std::byte> bytes) {
  return SocketTasks::write_all(state_, bytes);
}

Task<void> Socket::write_with_fds(std::span<const std::byte> bytes, std::span<const int> fds) {
  return SocketTasks::write_with_fds(state_, bytes, fds);
}

Task<void> Socket::read_with_fds(std::span<std::byte> bytes, std::vector<UniqueFd>& fds, std::size_t max_fds) {
  return SocketTasks::read_with_fds(state_, bytes, &fds, max_fds);
}

const std::string& Socket::peer() const noexcept {
  static const std::string nobody = "nobody";
  return state_ != nullptr ? state_->peer : nobody;
}

int Socket::fd() const noexcept {
  return state_ != nullptr ? state_->watched.fd() : -1;
}

UniqueFd Socket::release() noexcept {
  return state_ != nullptr ? state_->watched.release() : UniqueFd();
}

void Socket::close() noexcept {
  if (state_ != nullptr) state_->watched.close();
}

}  // namespace weft::net
