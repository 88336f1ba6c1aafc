// What a BucketScheduler may be told.
#pragma once

#include <cstddef>

#include "weft/coll/reduce_op.hpp"
#include "weft/runtime/clock.hpp"

namespace weft::gpu {

/// All but in_flight and ready_timeout must be the same on all ranks; the first step checks it.
/// Source of the caps: PyTorch DDP sends 1 MiB first and buckets of 25 MiB at most; a bucket of 4 MiB already moves ten
/// times longer than the latency of its reduction on shared memory and on 10 Gbit/s, and starts earlier.
struct BucketOptions {
  std::size_t bucket_bytes = std::size_t{4} << 20;        ///< cap of a bucket; a larger gradient goes alone
  std::size_t first_bucket_bytes = std::size_t{1} << 20;  ///< cap of the first, where it is below bucket_bytes
  std::size_t in_flight = 2;                              ///< buckets that are reduced at the same time, at most
  coll::ReduceOp op = coll::avg;
  /// How long a step waits for its next gradient; zero: the communicator's default timeout.
  Duration ready_timeout{};
};

}  // namespace weft::gpu
