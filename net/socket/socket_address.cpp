#include "weft/net/socket/socket_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "weft/runtime/error.hpp"

namespace weft::net {

std::vector<SocketAddress> resolve_tcp(const std::string& host, std::uint16_t port, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  // No AI_ADDRCONFIG: it hides ::1 and 127.0.0.1 on machines that have no other address of the family.
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int status = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (status != 0) {
    const int error = status == EAI_SYSTEM ? errno : 0;
    const Errc code = status == EAI_MEMORY ? Errc::exhausted : Errc::unreachable;
    throw Error(code, "resolve", "the host name '" + host + "' cannot be resolved: " + ::gai_strerror(status), kNoRank,
                error);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

SocketAddress abstract_unix_address(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) {
    throw Error(Errc::invalid_argument, "unix socket", "the name '" + std::string(name) + "' is longer than 107 bytes");
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

std::string to_text(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  switch (address.length == 0 ? AF_UNSPEC : address.family()) {
    case AF_INET: {
      sockaddr_in v4{};
      std::memcpy(&v4, &address.storage, sizeof v4);
      ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
      return std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port));
    }
    case AF_INET6: {
      sockaddr_in6 v6{};
      std::memcpy(&v6, &address.storage, sizeof v6);
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
      std::string scope = v6.sin6_scope_id != 0 ? "%" + std::to_string(v6.sin6_scope_id) : std::string();
      return "[" + std::string(text.data()) + scope + "]:" + std::to_string(ntohs(v6.sin6_port));
    }
    case AF_UNIX: {
      sockaddr_un local{};
      std::memcpy(&local, &address.storage, sizeof local);
      constexpr std::size_t kPath = offsetof(sockaddr_un, sun_path);
      if (address.length <= kPath + 1) return "a local process";
      const std::size_t length = address.length - kPath;
      if (local.sun_path[0] == '\0') return "@" + std::string(local.sun_path + 1, length - 1);
      return std::string(local.sun_path, ::strnlen(local.sun_path, length));
    }
    default: return "an unknown address";
  }
}

std::string host_port_text(std::string_view host, std::uint16_t port) {
  const bool needs_brackets = host.find(':') != std::string_view::npos && host.front() != '[';
  std::string text = needs_brackets ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::to_string(port);
}

SocketAddress local_address(int fd) noexcept {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (::getsockname(fd, address.get(), &address.length) != 0) address.length = 0;
  return address;
}

SocketAddress peer_address(int fd) noexcept {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (::getpeername(fd, address.get(), &address.length) != 0) address.length = 0;
  return address;
}

}  // namespace weft::net
