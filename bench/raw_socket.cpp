#include "raw_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "spin.hpp"
#include "weft/coll/all_reduce.hpp"
#include "weft/coll/broadcast.hpp"

namespace bench {
namespace {

using weft::Errc;
using weft::Error;
using weft::UniqueFd;

constexpr int kConnectLimitMs = 5000;

struct Appointment {
  std::array<std::byte, 16> nonce{};
  std::uint16_t port = 0;  ///< network order; 0: rank 0 cannot listen
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = port;
  return address;
}

UniqueFd listen_on_loopback(Appointment& appointment) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (!fd || ::bind(fd.get(), any, length) != 0 || ::listen(fd.get(), 4) != 0) return {};
  if (::getsockname(fd.get(), any, &length) != 0) return {};
  if (::getrandom(appointment.nonce.data(), appointment.nonce.size(), 0) != 16) return {};
  appointment.port = address.sin_port;
  return fd;
}

bool knows_nonce(int fd, const Appointment& appointment) {
  std::array<std::byte, 16> answer{};
  const timeval limit{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const ssize_t got = ::recv(fd, answer.data(), answer.size(), MSG_WAITALL);
  return got == static_cast<ssize_t>(answer.size()) && answer == appointment.nonce;
}

UniqueFd accept_peer(int listener, const Appointment& appointment) {
  pollfd ready{listener, POLLIN, 0};
  for (int strangers = 0; strangers < 8 && ::poll(&ready, 1, kConnectLimitMs) == 1; ++strangers) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd && knows_nonce(fd.get(), appointment)) return fd;
  }
  return {};
}

UniqueFd connect_to_peer(const Appointment& appointment) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(appointment.port);
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  if (::send(fd.get(), appointment.nonce.data(), 16, MSG_NOSIGNAL) != 16) return {};
  return fd;
}

/// Bytes moved by one call; 0 where the kernel would wait.
std::size_t moved(ssize_t result, const char* what) {
  if (result > 0) return static_cast<std::size_t>(result);
  if (result == 0) throw Error(Errc::peer_lost, "floor", "the other rank has closed its socket");
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Error(weft::errc_from_errno(errno), "floor", std::string(what) + ": " + std::strerror(errno), weft::kNoRank,
              errno);
}

}  // namespace

weft::Task<RawSocket> RawSocket::open(weft::Communicator& world) {
  Appointment appointment;
  UniqueFd listener;
  UniqueFd fd;
  if (world.rank() == 0) listener = listen_on_loopback(appointment);
  co_await weft::coll::broadcast(world, std::span(&appointment, 1), 0);
  if (world.rank() == 1 && appointment.port != 0) fd = connect_to_peer(appointment);
  std::int32_t ready = world.rank() == 0   ? static_cast<std::int32_t>(static_cast<bool>(listener))
                       : world.rank() == 1 ? static_cast<std::int32_t>(static_cast<bool>(fd))
                                           : 1;
  co_await weft::coll::all_reduce(world, std::span(&ready, 1), weft::coll::min);
  if (ready == 0) co_return RawSocket();
  if (world.rank() == 0) fd = accept_peer(listener.get(), appointment);
  ready = world.rank() != 0 || fd ? 1 : 0;
  co_await weft::coll::all_reduce(world, std::span(&ready, 1), weft::coll::min);
  if (ready == 0) co_return RawSocket();
  const int on = 1;
  if (fd) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  co_return RawSocket(std::move(fd));
}

void RawSocket::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    spin_until([&] {
      count = moved(::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL), "send");
      return count > 0;
    });
    bytes = bytes.subspan(count);
  }
}

void RawSocket::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    spin_until([&] {
      count = moved(::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), "recv");
      return count > 0;
    });
    bytes = bytes.subspan(count);
  }
}

void RawSocket::exchange(std::span<const std::byte> out, std::span<std::byte> in) {
  spin_until([&] {
    if (!out.empty()) {
      out = out.subspan(moved(::send(fd_.get(), out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL), "send"));
    }
    if (!in.empty()) in = in.subspan(moved(::recv(fd_.get(), in.data(), in.size(), MSG_DONTWAIT), "recv"));
    return out.empty() && in.empty();
  });
}

}  // namespace bench
