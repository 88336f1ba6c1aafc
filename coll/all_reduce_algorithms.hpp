// The algorithms behind all_reduce, in place on `data`. Not for users: all_reduce() checks and chooses.
//
// n: bytes, p: ranks, alpha: a message, beta: a byte moved, gamma: a byte reduced.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/coll/datatype.hpp"
#include "weft/coll/reduce_op.hpp"
#include "weft/net/collective_channel.hpp"

namespace weft::coll::detail {

/// What is to be reduced. Trivial, so that coroutines take it by value.
struct Reduction {
  std::byte* data;
  std::size_t count;
  Dtype dtype;
  ReduceOp op;

  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(dtype); }
  [[nodiscard]] std::size_t bytes() const noexcept { return count * element_bytes(); }
};

/// ceil(log2 p) (alpha + n beta + n gamma); ranks beyond the largest power of two fold into a neighbour first, which
/// costs 2 (alpha + n beta) more. Partners combine the same two operands, so all ranks get the same bits.
Task<void> recursive_doubling(net::CollectiveChannel& channel, Reduction reduction);

/// 2 log2 p alpha + 2 n beta (p-1)/p + n gamma (p-1)/p. p is a power of two.
/// Source: Rabenseifner, "Optimization of collective reduction operations", 2004.
Task<void> halving_doubling(net::CollectiveChannel& channel, Reduction reduction);

/// 2 (p-1) alpha + 2 n beta (p-1)/p + n gamma (p-1)/p, neighbours only.
Task<void> ring(net::CollectiveChannel& channel, Reduction reduction);

/// ceil(log2 p) alpha + (p-1) n (beta + gamma): Bruck's all-gather, then a local reduction in rank order.
Task<void> gather_local(net::CollectiveChannel& channel, Reduction reduction);

/// 2 (p-1) alpha + 2 n beta (p-1)/p + n gamma: part i of every rank goes to rank i, which reduces in rank order.
Task<void> direct(net::CollectiveChannel& channel, Reduction reduction);

}  // namespace weft::coll::detail
