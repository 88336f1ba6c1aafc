#include "weft/net/tcp/tcp_liveness.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>

#include "weft/net/socket/socket_address.hpp"

namespace weft::net {
namespace {

// The bound is 2 s in all. A second is the finest a keepalive can be (its unit); the answer to a probe then has 0.05 s
// until the first look may count it, and 0.45 s until the second has to. Data that is lost has been sent again two
// times by then (after 0.2 and 0.6 s).
constexpr Duration kPeriod = std::chrono::milliseconds(400);
constexpr std::uint32_t kOverdueMs = 1050;
constexpr int kLooks = 2;
constexpr int kKeepaliveSeconds = 1;
// The kernel's own verdict must come later than ours: it counts probes and knows no cause.
constexpr int kKeepaliveProbes = 20;

bool same_machine(int fd) noexcept {
  const SocketAddress local = local_address(fd);
  const SocketAddress peer = peer_address(fd);
  if (local.length == 0 || local.family() != peer.family()) return false;
  if (local.family() == AF_INET) {
    sockaddr_in a{};
    sockaddr_in b{};
    std::memcpy(&a, &local.storage, sizeof a);
    std::memcpy(&b, &peer.storage, sizeof b);
    return a.sin_addr.s_addr == b.sin_addr.s_addr || ntohl(b.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 a{};
  sockaddr_in6 b{};
  std::memcpy(&a, &local.storage, sizeof a);
  std::memcpy(&b, &peer.storage, sizeof b);
  return std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0 || IN6_IS_ADDR_LOOPBACK(&b.sin6_addr);
}

}  // namespace

void TcpLiveness::watch(TcpConnection& connection) {
  if (same_machine(connection.fd())) return;
  watched_.push_back(Watched{&connection, 0});
  const int on = 1;
  ::setsockopt(connection.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(connection.fd(), IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveSeconds, sizeof kKeepaliveSeconds);
  ::setsockopt(connection.fd(), IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveSeconds, sizeof kKeepaliveSeconds);
  ::setsockopt(connection.fd(), IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof kKeepaliveProbes);
  arm();
}

void TcpLiveness::forget(TcpConnection& connection) noexcept {
  std::erase_if(watched_, [&](const Watched& watched) { return watched.connection == &connection; });
}

bool TcpLiveness::overdue(const Signs& signs) noexcept {
  return signs.silent_ms >= kOverdueMs && (signs.unacknowledged != 0 || signs.probes != 0);
}

void TcpLiveness::arm() noexcept {
  if (!armed() && !watched_.empty()) {
    reactor_.timers().arm(*this, saturating_add(reactor_.clock().now(), kPeriod));
  }
}

void TcpLiveness::on_timer() noexcept {
  for (Watched& watched : watched_) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(watched.connection->fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    const bool late = overdue(Signs{info.tcpi_last_ack_recv, info.tcpi_unacked, info.tcpi_probes});
    watched.overdue_looks = late ? watched.overdue_looks + 1 : 0;
    if (watched.overdue_looks == kLooks) watched.connection->declare_silent();
  }
  arm();
}

}  // namespace weft::net
