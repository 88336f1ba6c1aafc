// Elementwise reduction of buffers in this machine's memory: what collectives do between two messages. The element type
// is a run-time value, the best vector instructions of the CPU are chosen at run time, and every choice gives the same
// bits (reduce_op.hpp says which).
//
// Common to all functions here. Pointers need no alignment at all. Exactly the elements [0, count) are read and
// written. An output may be the very same buffer as an input; any other overlap is a bug of the caller. Nothing is
// allocated. Bits are promised under the default floating-point environment (round to nearest, no flushing of
// subnormals). Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/coll/datatype.hpp"
#include "weft/coll/reduce_op.hpp"

namespace weft::coll {

/// accumulator[i] = accumulator[i] op operand[i].
///
/// One step of an algorithm that combines two ranks at a time: `avg` adds, and `finish` divides after the last step;
/// f16 and bf16 round at every step. Swapping the two operands gives the same bits.
void combine(Dtype dtype, ReduceOp op, std::byte* accumulator, const std::byte* operand, std::size_t count) noexcept;

/// out[i] = left[i] op right[i], as `combine` does it. `out` may be `left` or `right`.
void combine_into(Dtype dtype, ReduceOp op, std::byte* out, const std::byte* left, const std::byte* right,
                  std::size_t count) noexcept;

/// out[i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) ..., strictly from left to right.
///
/// This is the definition of the canonical result. f16 and bf16 sums accumulate in f32; `avg` divides the accumulated
/// value by `divisor`; the result is rounded to the element type once. At least one input; `out` may be one of them.
/// `divisor` (at least 1) matters for `avg` only. Cost: every input is read once, `out` is written once.
void reduce_ranks(Dtype dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs, std::size_t count,
                  std::uint32_t divisor) noexcept;

/// data[i] = data[i] / divisor where `op` is `avg`; nothing otherwise. Comes once, after all `combine` steps.
///
/// `divisor` is at least 1. Integers truncate toward zero; f16 and bf16 divide in f32 and round once.
void finish(Dtype dtype, ReduceOp op, std::byte* data, std::size_t count, std::uint32_t divisor) noexcept;

/// The instruction set that the functions above use on this CPU ("AVX2"); a literal that lives for ever.
[[nodiscard]] std::string_view reduce_kernels_target() noexcept;

}  // namespace weft::coll
