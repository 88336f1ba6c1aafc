// all_reduce: every rank gets the reduction of what all ranks bring.
//
// The bits are the same on all ranks, and in every run of one configuration (size, type, operation, number of ranks,
// algorithm). Under Order::canonical each element is the left-to-right reduction over ranks 0..p-1, whatever the
// transport, the algorithm or the buffer it stands in. f16 and bf16 always accumulate in f32 and round once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/coll/datatype.hpp"
#include "weft/coll/reduce_op.hpp"
#include "weft/net/communicator.hpp"

namespace weft::coll {

/// How an all_reduce moves its data. `automatic` chooses by the rules of choose_all_reduce().
enum class AllReduceAlgorithm : std::uint8_t {
  automatic,
  recursive_doubling,  ///< log2 p exchanges of everything: short vectors
  halving_doubling,    ///< reduce-scatter by halving, all-gather by doubling (Rabenseifner); p a power of two
  ring,                ///< reduce-scatter and all-gather around a ring: long vectors
  gather_local,        ///< everybody gets everything and reduces in rank order: canonical, short vectors
  direct,              ///< each rank reduces its part in rank order, then all-gather: canonical, long vectors
};

[[nodiscard]] std::string_view to_string(AllReduceAlgorithm algorithm) noexcept;

/// The algorithm for a call: a pure function of values that all ranks share, because a choice that differs between
/// ranks is a deadlock.
/// Source of the limits: research of Open MPI's and MPICH's tables and of published curves; recursive doubling wins
/// below 8 KiB, ring from 32 MiB on while p <= 64, halving and doubling between them.
[[nodiscard]] AllReduceAlgorithm choose_all_reduce(std::size_t bytes, Dtype dtype, Order order, Rank ranks) noexcept;

/// Reduces count elements of `dtype` from `in` into `out`.
///
/// Lifetime: both buffers until the task ends. `in` may be `out` (in place); any other overlap is refused.
/// Errors: invalid_argument (overlap; halving_doubling with a number of ranks that is no power of two; an algorithm
/// that is not canonical under Order::canonical), mismatch, peer_lost, peer_closed, cancelled, timed_out. After an
/// error `out` holds nothing of use, and the communicator takes no more collectives if a member was lost.
/// Cost: no allocation in steady state.
[[nodiscard]] Task<void> all_reduce(Communicator& communicator, const std::byte* in, std::byte* out, std::size_t count,
                                    Dtype dtype, ReduceOp op,
                                    AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic);

/// In place.
template <Reducible T>
[[nodiscard]] Task<void> all_reduce(Communicator& communicator, std::span<T> values, ReduceOp op,
                                    AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic) {
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  return all_reduce(communicator, bytes, bytes, values.size(), dtype_of<T>, op, algorithm);
}

/// `in` stays as it is. The spans have the same length on all ranks.
/// Errors: invalid_argument is thrown by the call itself when the lengths differ.
template <Reducible T>
[[nodiscard]] Task<void> all_reduce(Communicator& communicator, std::span<const T> in, std::span<T> out, ReduceOp op,
                                    AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic) {
  if (in.size() != out.size()) throw Error(Errc::invalid_argument, "all_reduce", "in and out differ in length");
  return all_reduce(communicator, reinterpret_cast<const std::byte*>(in.data()),
                    reinterpret_cast<std::byte*>(out.data()), in.size(), dtype_of<T>, op, algorithm);
}

}  // namespace weft::coll
