// Connecting: every address of the name in turn, patiently, and with an error that tells what each of them said.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "weft/net/socket/socket.hpp"
#include "weft/net/socket/socket_address.hpp"
#include "weft/net/socket/watched_fd.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);
// How long one address may keep silent while others have not been asked: a lost SYN is sent again after 1 s.
constexpr Duration kSilence = std::chrono::milliseconds(2500);

// One address, and what became of the last attempt.
struct Candidate {
  SocketAddress address;
  int error = 0;
  bool silent = false;  ///< no answer at all within the time it had
};

// The other side may still be starting, or its network: worth another attempt.
bool may_pass(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EAGAIN: return true;
    default: return false;
  }
}

std::string describe(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& candidate : candidates) {
    if (!text.empty()) text += "; ";
    text += to_text(candidate.address) + ": ";
    text += candidate.silent ? "no answer" : candidate.error != 0 ? std::strerror(candidate.error) : "not tried";
  }
  return text;
}

// On loopback a connect to a free port of the ephemeral range can meet itself (TCP simultaneous open).
bool connected_to_itself(int fd) noexcept {
  const SocketAddress local = local_address(fd);
  const SocketAddress peer = peer_address(fd);
  return local.length != 0 && local.length == peer.length &&
         std::memcmp(&local.storage, &peer.storage, local.length) == 0;
}

// One attempt. Gives the descriptor, or an empty one with the reason in `candidate`.
Task<UniqueFd> attempt(Reactor& reactor, Candidate* candidate, Instant limit) {
  candidate->silent = false;
  UniqueFd fd(::socket(candidate->address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    candidate->error = errno;
    co_return UniqueFd();
  }
  const int raw = fd.get();
  const int on = 1;
  ::setsockopt(raw, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  candidate->error = ::connect(raw, candidate->address.get(), candidate->address.length) == 0 ? 0 : errno;
  if (candidate->error == EINPROGRESS || candidate->error == EINTR) {
    WatchedFd watched(reactor, std::move(fd), "connect");
    for (;;) {
      // Connected once the peer's name is known; SO_ERROR tells a failure. Neither: still on its way.
      const bool connected = peer_address(raw).length != 0;
      socklen_t length = sizeof candidate->error;
      ::getsockopt(raw, SOL_SOCKET, SO_ERROR, &candidate->error, &length);
      if (connected || candidate->error != 0) break;
      const WatchedFd::Ready ready = co_await watched.writable(limit);
      if (ready.at_limit) {
        candidate->silent = true;
        candidate->error = ETIMEDOUT;
        co_return UniqueFd();
      }
      if (ready.code != Errc::ok) throw Error(Outcome{ready.code, kNoRank, 0}, "connect");
    }
    fd = watched.release();
  }
  if (candidate->error == 0 && connected_to_itself(raw)) candidate->error = ECONNREFUSED;
  if (candidate->error != 0) fd.reset();
  co_return std::move(fd);
}

}  // namespace

Task<Socket> connect_tcp(Reactor& reactor, std::string host, std::uint16_t port, Instant deadline) {
  const std::vector<SocketAddress> addresses = resolve_tcp(host, port, false);
  std::vector<Candidate> candidates;
  for (const SocketAddress& address : addresses)
    candidates.push_back(Candidate{address, 0, false});
  Duration pause = kFirstPause;
  int rounds = 0;
  for (;;) {
    ++rounds;
    bool may_retry = false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Instant now = reactor.clock().now();
      const bool last = i + 1 == candidates.size();
      const Instant limit = last ? deadline : std::min(deadline, saturating_add(now, kSilence));
      UniqueFd fd = co_await attempt(reactor, &candidates[i], limit);
      if (fd) co_return Socket(reactor, std::move(fd), to_text(candidates[i].address));
      may_retry = may_retry || may_pass(candidates[i].error);
      if (candidates[i].error == EMFILE || candidates[i].error == ENFILE) {
        throw Error(Errc::exhausted, "connect",
                    "no descriptor is left for a connection to " + host_port_text(host, port), kNoRank,
                    candidates[i].error);
      }
    }
    const Instant now = reactor.clock().now();
    if (!may_retry || now >= deadline) break;
    const Instant again = std::min(deadline, saturating_add(now, pause));
    co_await sleep_until(again);
    pause = std::min(2 * pause, kLongestPause);
  }
  std::string reason = "cannot reach " + host_port_text(host, port) + " (" + describe(candidates) + ")";
  if (rounds > 1) reason += " in " + std::to_string(rounds) + " attempts; is the other side running?";
  throw Error(Errc::unreachable, "connect", reason);
}

Task<Socket> connect_unix(Reactor& reactor, std::string name) {
  const SocketAddress address = abstract_unix_address(name);
  Duration pause = kFirstPause;
  for (;;) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) throw Error(errc_from_errno(errno), "connect", "no descriptor for a local socket", kNoRank, errno);
    if (::connect(fd.get(), address.get(), address.length) == 0) {
      co_return Socket(reactor, std::move(fd), to_text(address));
    }
    const int error = errno;
    if (error != EAGAIN && error != EINTR) {
      throw Error(error == ECONNREFUSED ? Errc::unreachable : errc_from_errno(error), "connect",
                  "nobody listens on the local name " + to_text(address), kNoRank, error);
    }
    co_await sleep_for(pause);  // the listener's queue is full
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace weft::net
