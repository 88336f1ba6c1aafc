#include "weft/net/tcp/tcp_address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "weft/net/socket/socket_address.hpp"
#include "weft/runtime/error.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft::net {
namespace {

bool is_loopback(const SocketAddress& address) noexcept {
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  return address.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

// A datagram socket that is connected sends nothing, but the kernel has chosen its route and so its local address.
std::string local_end_of_route(const SocketAddress& towards, int& error) {
  const UniqueFd fd(::socket(towards.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), towards.get(), towards.length) != 0) {
    error = errno;
    return {};
  }
  const SocketAddress local = local_address(fd.get());
  std::array<char, NI_MAXHOST> text{};
  if (local.length == 0 ||
      ::getnameinfo(local.get(), local.length, text.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST) != 0) {
    error = EADDRNOTAVAIL;
    return {};
  }
  return text.data();
}

[[noreturn]] void throw_malformed(std::string_view text) {
  throw Error(Errc::protocol, "tcp address", "'" + std::string(text.substr(0, 64)) + "' is not of the form host:port");
}

TcpEndpoint parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) throw_malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  TcpEndpoint endpoint;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  if (code != std::errc() || end != digits.data() + digits.size() || endpoint.port == 0) throw_malformed(text);
  endpoint.host = host;
  return endpoint;
}

}  // namespace

std::string tcp_local_host(const std::string& master_host) {
  if (const char* chosen = std::getenv("WEFT_TCP_HOST"); chosen != nullptr && *chosen != '\0') return chosen;
  const std::vector<SocketAddress> masters = resolve_tcp(master_host, 1, false);
  for (const SocketAddress& master : masters) {
    if (master.family() == AF_INET && is_loopback(master)) return "127.0.0.1";
  }
  int error = EADDRNOTAVAIL;
  for (const SocketAddress& master : masters) {
    if (is_loopback(master)) return "::1";
    if (std::string host = local_end_of_route(master, error); !host.empty()) return host;
  }
  throw Error(Errc::unreachable, "tcp transport",
              "no route leads to '" + master_host + "'; WEFT_TCP_HOST names the address to use", kNoRank, error);
}

std::vector<TcpEndpoint> parse_tcp_address(std::string_view text) {
  std::vector<TcpEndpoint> endpoints;
  while (true) {
    const std::size_t comma = text.find(',');
    endpoints.push_back(parse_endpoint(text.substr(0, comma)));
    if (comma == std::string_view::npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace weft::net
