// The socket on which rank 0 listens for the other ranks: inherited from weftrun, or opened here.
#pragma once

#include "weft/net/bootstrap/environment.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft::net {

/// Takes over the descriptor that WEFT_STORE_FD names. It is made close-on-exec.
/// Errors: throws Error(bad_environment) unless it is an open, listening TCP socket.
[[nodiscard]] UniqueFd adopt_store_listener(int fd);

/// The listening socket of rank 0: adopted where the environment names one, else opened at MASTER_ADDR:MASTER_PORT.
/// A process may call it once for one environment: adopting takes the descriptor over.
/// Errors: throws Error(bad_environment | address_in_use | unreachable | io) that names address and port.
[[nodiscard]] UniqueFd open_store_listener(const JobEnvironment& job);

}  // namespace weft::net
