// The listening socket of a job's key-value store. The launcher opens it and rank 0 inherits it, so that the port is
// known to all ranks before any of them runs and nobody else can take it in between.
#pragma once

#include <cstdint>

#include "weft/net/launch/descriptor.hpp"
#include "weft/runtime/result.hpp"

namespace weft::net::launch {

struct StoreSocket {
  Descriptor listener;  ///< bound to 127.0.0.1, listening, closed on exec
  std::uint16_t port = 0;
};

/// `port` 0 lets the system choose. Errors: Errc::address_in_use, the port is taken, and others; what() names the port.
[[nodiscard]] Result<StoreSocket> open_store_socket(std::uint16_t port);

}  // namespace weft::net::launch
