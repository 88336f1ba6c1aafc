// Where a rank's shared-memory transport is found, and whether another rank can possibly get there.
//
// `weft-shm:1;boot=<boot id>;net=<namespace>;name=<socket>`: the boot id names the running kernel, the network
// namespace the space in which abstract socket names mean something. Ranks that agree in both can connect.
#pragma once

#include <string>
#include <string_view>

namespace weft::net {

/// An address, taken apart.
struct ShmAddress {
  std::string boot_id;
  std::string network_namespace;
  std::string socket_name;  ///< in the abstract namespace, without the leading zero byte
};

/// The address of this process with a fresh socket name that nobody can guess.
/// Errors: throws Error(unsupported) where the kernel does not say which one it is.
[[nodiscard]] ShmAddress make_shm_address();

/// At most 200 printable characters.
[[nodiscard]] std::string to_string(const ShmAddress& address);

/// False for any text that to_string() does not make.
[[nodiscard]] bool parse_shm_address(std::string_view text, ShmAddress& address);

/// Why the transport at `own` cannot reach the one at `peer`: a clause for a message. Empty when it can.
/// Either may be empty text, for a rank that has no shared-memory transport.
[[nodiscard]] std::string shm_unreachable_reason(std::string_view own, std::string_view peer);

}  // namespace weft::net
