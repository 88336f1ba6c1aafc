// barrier: nobody leaves before everybody has come.
#pragma once

#include "weft/net/communicator.hpp"

namespace weft::coll {

/// Dissemination: ceil(log2 p) steps (Hensgen, Finkel and Manber, 1988).
/// Errors: mismatch, peer_lost, peer_closed, cancelled, timed_out.
[[nodiscard]] Task<void> barrier(Communicator& communicator);

}  // namespace weft::coll
