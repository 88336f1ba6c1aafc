// How a rank's TCP transport is found: which address of this machine it listens on, and the text it publishes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::net {

/// One place to connect to.
struct TcpEndpoint {
  std::string host;
  std::uint16_t port = 0;
};

/// The numeric address of this machine that peers reach it by: `WEFT_TCP_HOST` where it is set, loopback when
/// `master_host` is loopback (then the whole job is on this machine), else the local end of the route to `master_host`.
/// Errors: throws Error(unreachable) when the name does not resolve or no route leads there.
[[nodiscard]] std::string tcp_local_host(const std::string& master_host);

/// "host:port", several separated by commas; a numeric IPv6 address stands in brackets.
/// Errors: throws Error(protocol) for anything else.
[[nodiscard]] std::vector<TcpEndpoint> parse_tcp_address(std::string_view text);

}  // namespace weft::net
