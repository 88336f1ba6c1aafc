// The reductions of collectives and what each one means for each kind of element. reduce_kernels.hpp computes them.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::coll {

/// How two elements become one. The values travel between ranks, so they never change.
///
/// Integers. `sum` wraps modulo 2^bits of the element type; `avg` is that wrapped sum divided by the number of ranks,
/// truncated toward zero. Wrapping addition is associative, so an integer result does not depend on the algorithm. An
/// average is the true one as long as the sum of all ranks fits the element type.
///
/// Floating point. `sum` rounds to nearest even; where several ranks are summed in one step, f16 and bf16 accumulate in
/// f32 and round once at the end. `avg` is the sum divided (not multiplied by a reciprocal) by the number of ranks.
///
/// `min` and `max` are `minimum` and `maximum` of IEEE 754-2019: a NaN on any rank gives NaN, and -0 < +0.
///
/// A NaN result is always the positive quiet NaN with an empty payload, so `a op b` and `b op a` have the same bits.
enum class ReduceOp : std::uint8_t {
  sum = 0,
  avg = 1,
  min = 2,
  max = 3,
};

inline constexpr ReduceOp sum = ReduceOp::sum;
inline constexpr ReduceOp avg = ReduceOp::avg;
inline constexpr ReduceOp min = ReduceOp::min;
inline constexpr ReduceOp max = ReduceOp::max;

inline constexpr ReduceOp kAllReduceOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max};

/// Whether `op` is one of the enumerators; for values that came from another rank.
[[nodiscard]] constexpr bool is_valid(ReduceOp op) noexcept {
  return static_cast<std::uint8_t>(op) <= static_cast<std::uint8_t>(ReduceOp::max);
}

/// The enumerator's name ("sum"); a literal that lives for ever. Thread: any.
[[nodiscard]] std::string_view to_string(ReduceOp op) noexcept;

}  // namespace weft::coll
