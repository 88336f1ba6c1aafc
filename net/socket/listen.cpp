// Listening sockets: how they are made, and the task that accepts.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "weft/net/socket/socket.hpp"
#include "weft/net/socket/socket_address.hpp"
#include "weft/net/socket/watched_fd.hpp"
#include "weft/runtime/log.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

// Pause when descriptors have run out: they come back when somebody closes one, which nobody announces. Long enough to
// cost nothing, short enough that a caller, who waits in the queue of the kernel meanwhile, does not give up.
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(50);

// What accept(2) reports about the connection it would have returned, and not about the listening socket.
bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:  // a firewall rule
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH: return true;
    default: return false;
  }
}

bool out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

std::string name_of_peer(int fd) {
  const SocketAddress address = peer_address(fd);
  if (address.length == 0 || address.family() != AF_UNIX) return to_text(address);
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return "a local process";
  return "local process " + std::to_string(credentials.pid);
}

/// A bound and listening socket, or the errno.
UniqueFd try_listen(const SocketAddress& address, bool accept_ipv4_too, int& error) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  bool ok = bool(fd);
  if (ok && address.family() != AF_UNIX) {
    ok = ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  }
  if (ok && address.family() == AF_INET6) {
    ok = ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, accept_ipv4_too ? &off : &on, sizeof on) == 0;
  }
  ok = ok && ::bind(fd.get(), address.get(), address.length) == 0 && ::listen(fd.get(), SOMAXCONN) == 0;
  error = ok ? 0 : errno;
  return ok ? std::move(fd) : UniqueFd();
}

}  // namespace

UniqueFd listen_tcp(const std::string& host, std::uint16_t port) {
  std::vector<SocketAddress> addresses = resolve_tcp(host, port, true);
  if (host.empty()) {
    // One IPv6 socket serves both families; IPv4 alone where there is no IPv6.
    std::partition(addresses.begin(), addresses.end(),
                   [](const SocketAddress& address) { return address.family() == AF_INET6; });
  }
  int error = EADDRNOTAVAIL;
  for (const SocketAddress& address : addresses) {
    UniqueFd fd = try_listen(address, host.empty(), error);
    if (fd) return fd;
    if (error == EADDRINUSE) break;  // a second family would hide that the port is taken
  }
  const std::string where = host_port_text(host.empty() ? "*" : host, port);
  switch (error) {
    case EADDRINUSE:
      throw Error(Errc::address_in_use, "listen",
                  "port " + std::to_string(port) + " is taken: " + where + "; choose another port, or 0 for a free one",
                  kNoRank, error);
    case EADDRNOTAVAIL:
      throw Error(Errc::unreachable, "listen", where + " is no address of this machine", kNoRank, error);
    case EACCES:
      throw Error(Errc::io, "listen", "no permission for " + where + "; ports under 1024 need root", kNoRank, error);
    default: throw Error(errc_from_errno(error), "listen", "cannot listen on " + where, kNoRank, error);
  }
}

UniqueFd listen_unix(std::string_view name) {
  const SocketAddress address = abstract_unix_address(name);
  int error = 0;
  UniqueFd fd = try_listen(address, false, error);
  if (fd) return fd;
  throw Error(errc_from_errno(error), "listen", "cannot listen on the local name " + to_text(address), kNoRank, error);
}

std::uint16_t local_port(int fd) {
  const SocketAddress address = local_address(fd);
  if (address.length != 0 && address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohs(v4.sin_port);
  }
  if (address.length != 0 && address.family() == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    return ntohs(v6.sin6_port);
  }
  throw Error(Errc::invalid_argument, "local_port", "the descriptor is no TCP socket");
}

struct Acceptor::State {
  State(Reactor& reactor, UniqueFd fd) : watched(reactor, std::move(fd), "listen") {}
  static Task<Socket> accept(std::shared_ptr<State> state);
  WatchedFd watched;
  bool exhaustion_reported = false;
};

Task<Socket> Acceptor::State::accept(std::shared_ptr<State> state) {
  for (;;) {
    if (state == nullptr || !state->watched.open()) throw Error(Errc::closed, "accept", "the listener was closed");
    Reactor& reactor = state->watched.reactor();
    UniqueFd fd(::accept4(state->watched.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    int error = fd ? 0 : errno;
    if (fd) {
      try {
        std::string peer = name_of_peer(fd.get());
        co_return Socket(reactor, std::move(fd), std::move(peer));
      } catch (const Error& failure) {
        error = failure.native();
        if (!out_of_resources(error) && error != ENOSPC) throw;
        error = ENOMEM;  // the io engine has no room: the connection is dropped, the listener goes on
      }
    }
    if (concerns_one_connection(error)) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      const WatchedFd::Ready ready = co_await state->watched.readable();
      if (ready.code != Errc::ok) throw Error(Outcome{ready.code, kNoRank, 0}, "accept");
    } else if (out_of_resources(error)) {
      if (!std::exchange(state->exhaustion_reported, true)) {
        log(LogLevel::warning,
            std::string("accept: ") + std::strerror(error) + "; connections wait until that changes");
      }
      co_await sleep_for(kPauseWithoutDescriptors);
    } else {
      throw Error(errc_from_errno(error), "accept", "the listening socket failed", kNoRank, error);
    }
  }
}

Acceptor::Acceptor(Reactor& reactor, UniqueFd fd) : state_(std::make_shared<State>(reactor, std::move(fd))) {}

Acceptor& Acceptor::operator=(Acceptor&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) state_->watched.close();
    state_ = std::move(other.state_);
  }
  return *this;
}

Acceptor::~Acceptor() {
  if (state_ != nullptr) state_->watched.close();
}

Task<Socket> Acceptor::accept() {
  return State::accept(state_);
}

int Acceptor::fd() const noexcept {
  return state_ != nullptr ? state_->watched.fd() : -1;
}

}  // namespace weft::net
