// The vector half of reduce_kernels: plain functions behind which the instruction set is chosen at run time. Arguments
// have been checked; `avg` arrives as `sum`, and a `divisor` of 0 says that nothing is to be divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/coll/datatype.hpp"
#include "weft/coll/reduce_op.hpp"

namespace weft::coll::detail {

/// out = left op right.
void simd_combine(Dtype dtype, ReduceOp op, std::byte* out, const std::byte* left, const std::byte* right,
                  std::size_t count) noexcept;

/// out = fold of the inputs, each read from `skip_bytes` on; a non-zero divisor divides floating-point sums at the end.
void simd_fold(Dtype dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs,
               std::size_t skip_bytes, std::size_t count, std::uint32_t divisor) noexcept;

[[nodiscard]] const char* simd_target() noexcept;

}  // namespace weft::coll::detail
