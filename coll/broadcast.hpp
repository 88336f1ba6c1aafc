// broadcast: every rank gets what the root has.
#pragma once

#include <span>

#include "weft/net/communicator.hpp"

namespace weft::coll {

/// Copies the root's `bytes` into everybody's; the length is the same on all ranks.
///
/// A binomial tree; long buffers go down it in segments, so that a rank hands on one while the next is on its way.
/// Lifetime: `bytes` until the task ends.
/// Errors: invalid_argument (no such root), mismatch, peer_lost, peer_closed, cancelled, timed_out.
[[nodiscard]] Task<void> broadcast(Communicator& communicator, std::span<std::byte> bytes, Rank root);

template <Sendable T>
[[nodiscard]] Task<void> broadcast(Communicator& communicator, std::span<T> values, Rank root) {
  return broadcast(communicator, std::span<std::byte>(std::as_writable_bytes(values)), root);
}

}  // namespace weft::coll
