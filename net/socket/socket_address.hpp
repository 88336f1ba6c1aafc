// Addresses of stream sockets: from names to sockaddr, and back to text for messages.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::net {

/// One address a socket can be bound or connected to.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

/// All TCP addresses of a name or numeric address, in the order in which they should be tried. `to_listen`: an empty
/// host stands for all addresses of this machine; else for loopback. Blocks as long as the resolver does.
/// Errors: throws Error(unreachable) that names the host; exhausted.
[[nodiscard]] std::vector<SocketAddress> resolve_tcp(const std::string& host, std::uint16_t port, bool to_listen);

/// An address in the abstract AF_UNIX namespace. Errors: throws Error(invalid_argument) for a name over 107 bytes.
[[nodiscard]] SocketAddress abstract_unix_address(std::string_view name);

/// "10.0.0.1:80", "[::1]:80", "@name", "a local process" for an AF_UNIX socket without a name.
[[nodiscard]] std::string to_text(const SocketAddress& address);

/// "host:port", with brackets around a numeric IPv6 address.
[[nodiscard]] std::string host_port_text(std::string_view host, std::uint16_t port);

/// The two ends of a connected socket; length 0 when the kernel does not tell.
[[nodiscard]] SocketAddress local_address(int fd) noexcept;
[[nodiscard]] SocketAddress peer_address(int fd) noexcept;

}  // namespace weft::net
