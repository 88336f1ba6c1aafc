#include "weft/coll/reduce_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "weft/coll/reduce_kernels_simd.hpp"
#include "weft/runtime/assert.hpp"

namespace weft::coll {
namespace {

// Integer averages are divided after their sum, block by block, while the block is still in the first-level cache.
constexpr std::size_t kDivideBlockBytes = 16 * 1024;

ReduceOp without_division(ReduceOp op) noexcept {
  return op == ReduceOp::avg ? ReduceOp::sum : op;
}

// Vector units have no integer division. The quotient is taken in 64 bits, because the number of ranks may exceed what
// the element type can hold.
template <typename T>
void divide_integers(std::byte* data, std::size_t count, std::uint32_t divisor) noexcept {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

void divide_integers(Dtype dtype, std::byte* data, std::size_t count, std::uint32_t divisor) noexcept {
  switch (dtype) {
    case Dtype::i8: return divide_integers<std::int8_t>(data, count, divisor);
    case Dtype::u8: return divide_integers<std::uint8_t>(data, count, divisor);
    case Dtype::i16: return divide_integers<std::int16_t>(data, count, divisor);
    case Dtype::u16: return divide_integers<std::uint16_t>(data, count, divisor);
    case Dtype::i32: return divide_integers<std::int32_t>(data, count, divisor);
    case Dtype::u32: return divide_integers<std::uint32_t>(data, count, divisor);
    case Dtype::i64: return divide_integers<std::int64_t>(data, count, divisor);
    case Dtype::u64: return divide_integers<std::uint64_t>(data, count, divisor);
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32:
    case Dtype::f64: break;
  }
  WEFT_ASSERT(false, "divide_integers: not an integer dtype");
}

}  // namespace

void combine(Dtype dtype, ReduceOp op, std::byte* accumulator, const std::byte* operand, std::size_t count) noexcept {
  combine_into(dtype, op, accumulator, accumulator, operand, count);
}

void combine_into(Dtype dtype, ReduceOp op, std::byte* out, const std::byte* left, const std::byte* right,
                  std::size_t count) noexcept {
  WEFT_ASSERT(is_valid(dtype) && is_valid(op), "combine: unknown dtype or reduction");
  if (count == 0) return;
  detail::simd_combine(dtype, without_division(op), out, left, right, count);
}

void reduce_ranks(Dtype dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs, std::size_t count,
                  std::uint32_t divisor) noexcept {
  WEFT_ASSERT(is_valid(dtype) && is_valid(op), "reduce_ranks: unknown dtype or reduction");
  WEFT_ASSERT(!inputs.empty(), "reduce_ranks: needs at least one input");
  WEFT_ASSERT(op != ReduceOp::avg || divisor > 0, "reduce_ranks: the divisor must be at least 1");
  if (count == 0) return;
  if (op != ReduceOp::avg) {
    detail::simd_fold(dtype, op, out, inputs, 0, count, 0);
  } else if (is_floating(dtype)) {
    detail::simd_fold(dtype, ReduceOp::sum, out, inputs, 0, count, divisor);
  } else {
    const std::size_t element_bytes = size_of(dtype);
    const std::size_t block = kDivideBlockBytes / element_bytes;
    for (std::size_t first = 0; first < count; first += block) {
      const std::size_t now = std::min(block, count - first);
      detail::simd_fold(dtype, ReduceOp::sum, out + first * element_bytes, inputs, first * element_bytes, now, 0);
      divide_integers(dtype, out + first * element_bytes, now, divisor);
    }
  }
}

void finish(Dtype dtype, ReduceOp op, std::byte* data, std::size_t count, std::uint32_t divisor) noexcept {
  WEFT_ASSERT(is_valid(dtype) && is_valid(op), "finish: unknown dtype or reduction");
  if (op != ReduceOp::avg || count == 0) return;
  WEFT_ASSERT(divisor > 0, "finish: the divisor must be at least 1");
  if (is_floating(dtype)) {
    const std::byte* const input = data;
    detail::simd_fold(dtype, ReduceOp::sum, data, std::span(&input, 1), 0, count, divisor);
  } else {
    divide_integers(dtype, data, count, divisor);
  }
}

std::string_view reduce_kernels_target() noexcept {
  return detail::simd_target();
}

}  // namespace weft::coll
