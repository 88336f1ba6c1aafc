// The two 16-bit floating-point formats of training: f16 (IEEE 754 binary16) and bf16 (the upper half of a binary32).
// They are storage types: arithmetic happens in float, and a conversion back rounds once, to nearest, ties to even.
// Conversions use integers only, so they are constexpr and do not depend on the floating-point environment.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace weft {

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits; largest finite value 65504, smallest positive 2^-24.
///
/// Converts to float implicitly and exactly, from float explicitly. From float: round to nearest even, overflow gives
/// infinity, a NaN stays a NaN (quiet, sign and upper payload bits kept).
class f16 {
 public:
  f16() = default;
  explicit constexpr f16(float value) noexcept : bits_(round(value)) {}

  [[nodiscard]] static constexpr f16 from_bits(std::uint16_t bits) noexcept { return f16(bits, Raw{}); }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  constexpr operator float() const noexcept { return widen(bits_); }

 private:
  struct Raw {};
  constexpr f16(std::uint16_t bits, Raw) noexcept : bits_(bits) {}
  static constexpr std::uint16_t round(float value) noexcept;
  static constexpr float widen(std::uint16_t half) noexcept;

  std::uint16_t bits_;
};

/// bfloat16: 1 sign, 8 exponent and 7 fraction bits; the range of float with 8 bits of precision.
///
/// Converts like f16.
class bf16 {
 public:
  bf16() = default;
  explicit constexpr bf16(float value) noexcept : bits_(round(value)) {}

  [[nodiscard]] static constexpr bf16 from_bits(std::uint16_t bits) noexcept { return bf16(bits, Raw{}); }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  constexpr operator float() const noexcept { return widen(bits_); }

 private:
  struct Raw {};
  constexpr bf16(std::uint16_t bits, Raw) noexcept : bits_(bits) {}
  static constexpr std::uint16_t round(float value) noexcept;
  static constexpr float widen(std::uint16_t half) noexcept;

  std::uint16_t bits_;
};

constexpr std::uint16_t f16::round(float value) noexcept {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word >> 16) & 0x8000u;
  const std::uint32_t magnitude = word & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and above
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14 and above: a normal result, or infinity by carry from 65520 on
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude + 0x0fffu + odd - 0x38000000u) >> 13;
  } else if (magnitude >= 0x33000000u) {  // 2^-25 and above: a subnormal result or zero; below, always zero
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t significand = (magnitude & 0x007fffffu) | 0x00800000u;
    const std::uint32_t remainder = significand & ((1u << shift) - 1u);
    const std::uint32_t tie = 1u << (shift - 1u);
    half = significand >> shift;
    if (remainder > tie || (remainder == tie && (half & 1u) != 0)) ++half;
  }
  return static_cast<std::uint16_t>(sign | half);
}

constexpr float f16::widen(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x03ffu;
  std::uint32_t word = 0;
  if (exponent == 0x1fu) {
    word = 0x7f800000u | (fraction << 13) | (fraction != 0 ? 0x00400000u : 0u);
  } else if (exponent != 0) {
    word = ((exponent + 112u) << 23) | (fraction << 13);
  } else if (fraction != 0) {  // subnormal: its leading one becomes the hidden bit
    const std::uint32_t top = 31u - static_cast<std::uint32_t>(std::countl_zero(fraction));
    word = ((top + 103u) << 23) | ((fraction << (23u - top)) & 0x007fffffu);
  }
  return std::bit_cast<float>(sign | word);
}

constexpr std::uint16_t bf16::round(float value) noexcept {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((word >> 16) | 0x0040u);
  const std::uint32_t odd = (word >> 16) & 1u;
  return static_cast<std::uint16_t>((word + 0x7fffu + odd) >> 16);
}

constexpr float bf16::widen(std::uint16_t half) noexcept {
  std::uint32_t word = static_cast<std::uint32_t>(half) << 16;
  if ((word & 0x7fffffffu) > 0x7f800000u) word |= 0x00400000u;
  return std::bit_cast<float>(word);
}

static_assert(sizeof(f16) == 2 && std::is_trivially_copyable_v<f16> && std::is_trivially_default_constructible_v<f16>);
static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable_v<bf16> &&
              std::is_trivially_default_constructible_v<bf16>);

}  // namespace weft
