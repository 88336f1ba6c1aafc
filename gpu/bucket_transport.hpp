// How a bucket is reduced over all ranks: the scheduler's one way out. The usual one is a Communicator's all_reduce;
// others can compress, or reduce within a host first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/coll/reduce_op.hpp"
#include "weft/net/communicator.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/task.hpp"

namespace weft::gpu {

/// All ranks start the same operations in the same order; several may be in flight. Thread: the rank's reactor.
class BucketTransport {
 public:
  virtual ~BucketTransport() = default;

  /// Reduces the values of all ranks in place. Starts its communication before it first suspends: the order in which
  /// reductions start is the same on all ranks. `bucket` says which one it is, for the curious.
  /// Lifetime: `values` until the task ends. Errors: as all_reduce.
  [[nodiscard]] virtual Task<void> reduce(std::span<float> values, std::size_t bucket) = 0;

  /// The largest of each value over all ranks, in place. Errors: as all_reduce.
  [[nodiscard]] virtual Task<void> agree_max(std::span<std::uint64_t> values) = 0;

  /// How long an operation may take that has no limit of its own; zero: for ever.
  [[nodiscard]] virtual Duration default_timeout() const noexcept = 0;
};

/// Reduces with coll::all_reduce on `communicator`, in its order.
/// Lifetime: the communicator must outlive the transport and stay in place.
[[nodiscard]] std::unique_ptr<BucketTransport> make_all_reduce_transport(Communicator& communicator, coll::ReduceOp op);

}  // namespace weft::gpu
