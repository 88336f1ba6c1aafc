// Goal: f16 and bf16 convert exactly to float and round correctly from it, against a reference that knows only the
// values of the 65536 bit patterns and picks the nearest one.
#include "weft/coll/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

namespace {

using weft::bf16;
using weft::f16;

struct F16Format {
  using Type = f16;
  static constexpr int kFractionBits = 10;
  static constexpr int kExponentBits = 5;
};
struct Bf16Format {
  using Type = bf16;
  static constexpr int kFractionBits = 7;
  static constexpr int kExponentBits = 8;
};

// The value of a finite or infinite pattern, from the definition of the format. All are exact in double.
template <class Format>
double value_of(std::uint32_t bits) {
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> Format::kFractionBits) & ((1 << Format::kExponentBits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << Format::kFractionBits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << Format::kExponentBits) - 1) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - Format::kFractionBits);
  return sign * std::ldexp((1 << Format::kFractionBits) + fraction, exponent - kBias - Format::kFractionBits);
}

template <class Format>
constexpr std::uint32_t kInfinityBits = ((1u << Format::kExponentBits) - 1) << Format::kFractionBits;

// Nearest pattern, ties to even; overflow as if the exponent had no end.
template <class Format>
class Rounding {
 public:
  Rounding() {
    for (std::uint32_t bits = 0; bits < kInfinityBits<Format>; ++bits)
      values_.push_back(value_of<Format>(bits));
    const double last_gap = values_[values_.size() - 1] - values_[values_.size() - 2];
    values_.push_back(values_.back() + last_gap);  // stands for infinity
  }

  std::uint16_t operator()(float f) const {
    const std::uint32_t sign = std::signbit(f) ? 0x8000u : 0u;
    const double magnitude = std::fabs(static_cast<double>(f));
    if (magnitude >= values_.back()) return static_cast<std::uint16_t>(sign | kInfinityBits<Format>);
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const auto low = static_cast<std::uint32_t>(above - values_.begin()) - 1;
    const double down = magnitude - values_[low];
    const double up = values_[low + 1] - magnitude;
    const std::uint32_t even = (low & 1u) == 0 ? low : low + 1;
    return static_cast<std::uint16_t>(sign | (down < up ? low : up < down ? low + 1 : even));
  }

 private:
  std::vector<double> values_;
};

template <class Format>
class HalfTest : public testing::Test {};
using Formats = testing::Types<F16Format, Bf16Format>;
TYPED_TEST_SUITE(HalfTest, Formats);

TYPED_TEST(HalfTest, EveryPatternWidensToItsValueAndRoundsBackToItself) {
  using T = typename TypeParam::Type;
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    const T half = T::from_bits(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(half.bits(), bits);
    const float widened = half;
    if ((bits & 0x7fffu) > kInfinityBits<TypeParam>) {
      // Expect: a NaN stays a NaN with its sign and payload, and has become quiet, both ways.
      constexpr std::uint32_t kQuiet = 1u << (TypeParam::kFractionBits - 1);
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_NE(std::bit_cast<std::uint32_t>(widened) & 0x00400000u, 0u) << bits;
      ASSERT_EQ(T(widened).bits(), bits | kQuiet);
      continue;
    }
    // Expect: the exact value, sign of zero included.
    const double expected = value_of<TypeParam>(bits);
    ASSERT_EQ(static_cast<double>(widened), expected) << bits;
    ASSERT_EQ(std::signbit(widened), (bits & 0x8000u) != 0) << bits;
    ASSERT_EQ(T(widened).bits(), bits);
  }
}

TYPED_TEST(HalfTest, TiesAndTheirNeighboursRoundToNearestEven) {
  using T = typename TypeParam::Type;
  const Rounding<TypeParam> reference;
  for (std::uint32_t bits = 0; bits < kInfinityBits<TypeParam>; ++bits) {
    const double low = value_of<TypeParam>(bits);
    const double gap = bits + 1 == kInfinityBits<TypeParam> ? low - value_of<TypeParam>(bits - 1)
                                                            : value_of<TypeParam>(bits + 1) - low;
    const float tie = static_cast<float>(low + gap / 2);
    for (const float f : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, std::numeric_limits<float>::infinity()),
                          std::nextafter(static_cast<float>(low), std::numeric_limits<float>::infinity())}) {
      ASSERT_EQ(T(f).bits(), reference(f)) << f;
      ASSERT_EQ(T(-f).bits(), reference(-f)) << -f;
    }
  }
}

TYPED_TEST(HalfTest, RandomFloatsRoundToNearestEven) {
  using T = typename TypeParam::Type;
  const Rounding<TypeParam> reference;
  constexpr std::uint32_t kSeed = 20240611;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < 400'000; ++i) {
    auto word = static_cast<std::uint32_t>(random());
    // Every other number lies in or around the range of f16.
    if (i % 2 == 0) word = (word & 0x807fffffu) | ((96u + (word >> 23) % 52u) << 23);
    const float f = std::bit_cast<float>(word);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(T(f))));
      continue;
    }
    ASSERT_EQ(T(f).bits(), reference(f)) << f;
  }
}

TYPED_TEST(HalfTest, InfinitiesAndSignallingNansConvert) {
  using T = typename TypeParam::Type;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(T(kInfinity).bits(), kInfinityBits<TypeParam>);
  EXPECT_EQ(T(-kInfinity).bits(), 0x8000u | kInfinityBits<TypeParam>);
  EXPECT_EQ(T(std::numeric_limits<float>::max()).bits(), kInfinityBits<TypeParam>);
  // Expect: a payload that lies only in the bits that are cut off does not turn a NaN into infinity.
  const T from_low_payload(std::bit_cast<float>(0x7f800001u));
  EXPECT_TRUE(std::isnan(static_cast<float>(from_low_payload)));
}

// Expect: conversions work in constant expressions.
static_assert(f16(1.0f).bits() == 0x3c00 && f16(65504.0f).bits() == 0x7bff && f16(65520.0f).bits() == 0x7c00);
static_assert(f16(0x1p-24f).bits() == 0x0001 && f16(0x1p-25f).bits() == 0x0000 && f16(-0.0f).bits() == 0x8000);
static_assert(bf16(1.0f).bits() == 0x3f80 && bf16(3.14159265f).bits() == 0x4049);
static_assert(static_cast<float>(f16::from_bits(0x3555)) == 0.333251953125f);

}  // namespace
