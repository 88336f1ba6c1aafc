// The element types of collectives: their names at run time (Dtype), and the way from a C++ type to its name.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "weft/coll/half.hpp"

namespace weft::coll {

/// The element type of a buffer. The values travel between ranks, so they never change.
enum class Dtype : std::uint8_t {
  i8 = 0,
  u8 = 1,
  i16 = 2,
  u16 = 3,
  i32 = 4,
  u32 = 5,
  i64 = 6,
  u64 = 7,
  f16 = 8,
  bf16 = 9,
  f32 = 10,
  f64 = 11,
};

inline constexpr Dtype kAllDtypes[] = {Dtype::i8,  Dtype::u8,  Dtype::i16, Dtype::u16,  Dtype::i32, Dtype::u32,
                                       Dtype::i64, Dtype::u64, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64};

/// Whether `dtype` is one of the enumerators; for values that came from another rank.
[[nodiscard]] constexpr bool is_valid(Dtype dtype) noexcept {
  return static_cast<std::uint8_t>(dtype) <= static_cast<std::uint8_t>(Dtype::f64);
}

/// Bytes of one element; 0 for a value that is no enumerator.
[[nodiscard]] constexpr std::size_t size_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::i8:
    case Dtype::u8: return 1;
    case Dtype::i16:
    case Dtype::u16:
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::f32: return 4;
    case Dtype::i64:
    case Dtype::u64:
    case Dtype::f64: return 8;
  }
  return 0;
}

/// Whether elements are binary floating point, which have NaN, infinities and rounding.
[[nodiscard]] constexpr bool is_floating(Dtype dtype) noexcept {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32 || dtype == Dtype::f64;
}

/// The enumerator's name ("f32"); a literal that lives for ever. Thread: any.
[[nodiscard]] std::string_view to_string(Dtype dtype) noexcept;

namespace detail {

template <typename T>
consteval Dtype dtype_of() {
  if constexpr (std::same_as<T, weft::f16>) {
    return Dtype::f16;
  } else if constexpr (std::same_as<T, weft::bf16>) {
    return Dtype::bf16;
  } else if constexpr (std::same_as<T, float>) {
    return Dtype::f32;
  } else if constexpr (std::same_as<T, double>) {
    return Dtype::f64;
  } else if constexpr (sizeof(T) == 1) {
    return std::is_signed_v<T> ? Dtype::i8 : Dtype::u8;
  } else if constexpr (sizeof(T) == 2) {
    return std::is_signed_v<T> ? Dtype::i16 : Dtype::u16;
  } else if constexpr (sizeof(T) == 4) {
    return std::is_signed_v<T> ? Dtype::i32 : Dtype::u32;
  } else {
    static_assert(sizeof(T) == 8);
    return std::is_signed_v<T> ? Dtype::i64 : Dtype::u64;
  }
}

template <typename T>
concept ReducibleInteger = std::integral<T> && sizeof(T) <= 8 && !std::same_as<T, bool> && !std::same_as<T, char> &&
                           !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                           !std::same_as<T, char32_t>;

}  // namespace detail

/// A C++ type that has a Dtype: integers of 1 to 8 bytes (by size and sign, so that `long` and `long long` both work),
/// float, double, f16 and bf16; not bool and not character types.
template <typename T>
concept Reducible = std::same_as<T, weft::f16> || std::same_as<T, weft::bf16> || std::same_as<T, float> ||
    std::same_as<T, double> || detail::ReducibleInteger<T>;

/// The Dtype of a C++ type.
template <Reducible T>
inline constexpr Dtype dtype_of = detail::dtype_of<T>();

}  // namespace weft::coll
