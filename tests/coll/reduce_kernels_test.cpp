// Goal: every reduction on every element type gives, with every instruction set of this CPU, exactly the bits of a
// scalar reference, for every length and position, and touches nothing outside its elements.
#include "weft/coll/reduce_kernels.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "hwy/targets.h"

namespace {

using namespace weft::coll;
using weft::bf16;
using weft::f16;

constexpr std::uint32_t kSeed = 20240612;
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

// --- The reference: one element at a time, written from the definition.

template <typename T>
constexpr bool kHalf = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <typename T>
constexpr bool kFloating = kHalf<T> || std::is_floating_point_v<T>;
// What a sum over ranks accumulates in.
template <typename T>
using Accumulator = std::conditional_t<kHalf<T>, float, T>;

template <typename T>
T canonical_nan() {
  if constexpr (std::is_same_v<T, f16>) return f16::from_bits(0x7e00);
  if constexpr (std::is_same_v<T, bf16>) return bf16::from_bits(0x7fc0);
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(0x7fc00000u);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(std::uint64_t{0x7ff8} << 48);
}

template <typename T>
Accumulator<T> reference_step(ReduceOp op, Accumulator<T> a, Accumulator<T> b) {
  const bool adds = op == ReduceOp::sum || op == ReduceOp::avg;
  if constexpr (kFloating<T>) {
    if (adds) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Accumulator<T>>::quiet_NaN();
    const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return (op == ReduceOp::min) == a_is_less ? a : b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    if (adds) return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    return (op == ReduceOp::min) == (a < b) ? a : b;
  }
}

template <typename T>
Accumulator<T> reference_divide(Accumulator<T> a, std::uint32_t divisor) {
  if constexpr (kFloating<T>) {
    return a / static_cast<Accumulator<T>>(divisor);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(divisor));
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) / divisor);
  }
}

template <typename T>
T reference_store(Accumulator<T> a) {
  if constexpr (kFloating<T>) {
    if (std::isnan(a)) return canonical_nan<T>();
  }
  return static_cast<T>(a);
}

// --- Values: specials, numbers of ordinary size, and any bits.

template <typename T>
std::vector<T> special_values() {
  if constexpr (kFloating<T>) {
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
    const auto of = [](Bits bits) { return std::bit_cast<T>(bits); };
    const Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
    const Bits quiet_nan = std::bit_cast<Bits>(canonical_nan<T>());
    const Bits fraction_top = static_cast<Bits>(quiet_nan & (~quiet_nan + 1));
    const Bits infinity = static_cast<Bits>(quiet_nan ^ fraction_top);
    const Bits smallest_normal = static_cast<Bits>(fraction_top << 1);
    std::vector<T> values;
    for (const Bits bits :
         {Bits{0}, Bits{1}, Bits{2}, static_cast<Bits>(smallest_normal - 1), smallest_normal,
          static_cast<Bits>(smallest_normal + 1), std::bit_cast<Bits>(static_cast<T>(1.0f)),
          std::bit_cast<Bits>(static_cast<T>(3.0f)), static_cast<Bits>(infinity - 1), infinity,
          static_cast<Bits>(infinity + 1), quiet_nan, static_cast<Bits>(quiet_nan + 3), static_cast<Bits>(sign - 1)}) {
      values.push_back(of(bits));
      values.push_back(of(static_cast<Bits>(bits | sign)));
    }
    return values;
  } else {
    using Limits = std::numeric_limits<T>;
    return {T{0},
            T{1},
            T{2},
            T{7},
            static_cast<T>(-1),
            static_cast<T>(-7),
            Limits::min(),
            static_cast<T>(Limits::min() + 1),
            Limits::max(),
            static_cast<T>(Limits::max() - 1)};
  }
}

template <typename T>
T random_value(std::mt19937_64& random) {
  static const std::vector<T> specials = special_values<T>();
  const std::uint64_t word = random();
  switch (word % 8) {
    case 0: return specials[(word >> 8) % specials.size()];
    case 1: {
      const std::uint64_t bits = random();
      std::array<std::byte, sizeof(T)> bytes;
      std::memcpy(bytes.data(), &bits, sizeof(T));
      return std::bit_cast<T>(bytes);
    }
    default: break;
  }
  const auto small = static_cast<std::int32_t>(word >> 40) - (1 << 23);
  if constexpr (kFloating<T>) {
    return static_cast<T>(std::ldexp(static_cast<float>(small), -12 - static_cast<int>((word >> 8) % 24)));
  } else {
    return static_cast<T>(small);
  }
}

// --- A buffer at a chosen byte offset with guards on both sides.

template <typename T>
class Guarded {
 public:
  Guarded(std::size_t count, std::size_t offset)
      : count_(count), offset_(kGuardBytes + offset), memory_(offset_ + count * sizeof(T) + kGuardBytes, kGuard) {}

  std::byte* data() { return memory_.data() + offset_; }
  void set(std::size_t i, T value) { std::memcpy(data() + i * sizeof(T), &value, sizeof(T)); }
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, memory_.data() + offset_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void fill(std::mt19937_64& random) {
    for (std::size_t i = 0; i < count_; ++i)
      set(i, random_value<T>(random));
  }
  bool guards_intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= offset_ && i < offset_ + count_ * sizeof(T);
      if (!inside && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  std::size_t count_;
  std::size_t offset_;
  std::vector<std::byte> memory_;
};

template <typename T>
testing::AssertionResult same_bits(const Guarded<T>& actual, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const T value = actual.get(i);
    if (std::memcmp(&value, &expected[i], sizeof(T)) != 0) {
      return testing::AssertionFailure() << "element " << i << " of " << expected.size() << ": "
                                         << static_cast<double>(value) << ", expected "
                                         << static_cast<double>(expected[i]);
    }
  }
  if (!actual.guards_intact()) return testing::AssertionFailure() << "wrote outside";
  return testing::AssertionSuccess();
}

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n <= 70; ++n)
    all.push_back(n);
  for (std::size_t n = 1000; n <= 1070; ++n)
    all.push_back(n);
  return all;
}

// Calls `check.template operator()<T>()` for the C++ type of every Dtype.
template <class Check>
void for_each_type(Check check) {
  check.template operator()<std::int8_t>();
  check.template operator()<std::uint8_t>();
  check.template operator()<std::int16_t>();
  check.template operator()<std::uint16_t>();
  check.template operator()<std::int32_t>();
  check.template operator()<std::uint32_t>();
  check.template operator()<std::int64_t>();
  check.template operator()<std::uint64_t>();
  check.template operator()<f16>();
  check.template operator()<bf16>();
  check.template operator()<float>();
  check.template operator()<double>();
}

template <typename T>
std::string label(ReduceOp op, std::size_t count) {
  return std::string(to_string(dtype_of<T>)) + " " + std::string(to_string(op)) + ", count " + std::to_string(count);
}

// --- Every test below runs once per instruction set.

class ReduceKernels : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().DeInit();
    ASSERT_EQ(reduce_kernels_target(), hwy::TargetName(GetParam()));
    std::printf("seed %u\n", kSeed);
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }

  std::mt19937_64 random_{kSeed};
};

template <typename T>
void check_combine(std::mt19937_64& random) {
  std::size_t round = 0;
  for (const ReduceOp op : kAllReduceOps) {
    for (const std::size_t count : lengths()) {
      SCOPED_TRACE(label<T>(op, count));
      // Short lengths at every position, long ones at a changing one.
      const std::size_t positions = count <= 4 || count == 33 ? 16 : 1;
      for (std::size_t position = 0; position < positions; ++position) {
        ++round;
        const std::size_t a = (position + round * 5) % 16;
        const std::size_t b = (position + round * 11) % 16;
        Guarded<T> left(count, a);
        Guarded<T> right(count, b);
        Guarded<T> out(count, (a + b) % 16);
        left.fill(random);
        right.fill(random);
        std::vector<T> expected;
        for (std::size_t i = 0; i < count; ++i) {
          expected.push_back(reference_store<T>(reference_step<T>(op, left.get(i), right.get(i))));
        }
        combine_into(dtype_of<T>, op, out.data(), left.data(), right.data(), count);
        ASSERT_TRUE(same_bits(out, expected));
        // Expect: the same bits with the operands swapped, and in place on either side.
        combine_into(dtype_of<T>, op, out.data(), right.data(), left.data(), count);
        ASSERT_TRUE(same_bits(out, expected));
        Guarded<T> right_too = right;
        combine_into(dtype_of<T>, op, right_too.data(), left.data(), right_too.data(), count);
        ASSERT_TRUE(same_bits(right_too, expected));
        combine(dtype_of<T>, op, left.data(), right.data(), count);
        ASSERT_TRUE(same_bits(left, expected));
        ASSERT_TRUE(right.guards_intact());
      }
    }
  }
}

TEST_P(ReduceKernels, CombineGivesTheBitsOfTheReference) {
  for_each_type([this]<typename T>() { check_combine<T>(random_); });
}

template <typename T>
void check_special_pairs() {
  const std::vector<T> specials = special_values<T>();
  const std::size_t n = specials.size();
  for (const ReduceOp op : kAllReduceOps) {
    SCOPED_TRACE(label<T>(op, n * n));
    Guarded<T> left(n * n, 3);
    Guarded<T> right(n * n, 1);
    std::vector<T> expected;
    for (std::size_t i = 0; i < n * n; ++i) {
      left.set(i, specials[i / n]);
      right.set(i, specials[i % n]);
      expected.push_back(reference_store<T>(reference_step<T>(op, specials[i / n], specials[i % n])));
    }
    Guarded<T> swapped = right;
    combine(dtype_of<T>, op, swapped.data(), left.data(), n * n);
    combine(dtype_of<T>, op, left.data(), right.data(), n * n);
    ASSERT_TRUE(same_bits(left, expected));
    ASSERT_TRUE(same_bits(swapped, expected));
  }
}

TEST_P(ReduceKernels, EveryPairOfSpecialValuesCombinesCommutatively) {
  for_each_type([]<typename T>() { check_special_pairs<T>(); });
}

template <typename T>
void check_fold(std::mt19937_64& random, ReduceOp op, std::size_t count, std::size_t ranks, std::uint32_t divisor) {
  SCOPED_TRACE(label<T>(op, count) + ", ranks " + std::to_string(ranks));
  std::vector<Guarded<T>> buffers;
  for (std::size_t k = 0; k < ranks; ++k) {
    buffers.emplace_back(count, (k * 7 + count) % 16);
    buffers.back().fill(random);
  }
  std::vector<T> expected;
  for (std::size_t i = 0; i < count; ++i) {
    Accumulator<T> a = buffers[0].get(i);
    for (std::size_t k = 1; k < ranks; ++k)
      a = reference_step<T>(op, a, buffers[k].get(i));
    if (op == ReduceOp::avg) a = reference_divide<T>(a, divisor);
    expected.push_back(reference_store<T>(a));
  }
  std::vector<const std::byte*> inputs;
  for (Guarded<T>& buffer : buffers)
    inputs.push_back(buffer.data());
  Guarded<T> out(count, count % 16);
  reduce_ranks(dtype_of<T>, op, out.data(), inputs, count, divisor);
  ASSERT_TRUE(same_bits(out, expected));
  // Expect: the same in place of any one input.
  const std::size_t in_place = count % ranks;
  reduce_ranks(dtype_of<T>, op, buffers[in_place].data(), inputs, count, divisor);
  ASSERT_TRUE(same_bits(buffers[in_place], expected));
  for (const Guarded<T>& buffer : buffers)
    ASSERT_TRUE(buffer.guards_intact());
}

TEST_P(ReduceKernels, ReduceRanksFoldsFromLeftToRightAndRoundsOnce) {
  for_each_type([this]<typename T>() {
    for (const ReduceOp op : kAllReduceOps) {
      for (const std::size_t count : lengths()) {
        constexpr std::size_t kRanks[] = {1, 2, 3, 4, 8, 17};
        const std::size_t ranks = kRanks[count % std::size(kRanks)];
        ASSERT_NO_FATAL_FAILURE(check_fold<T>(random_, op, count, ranks, static_cast<std::uint32_t>(ranks)));
      }
      // Expect: the same where the work is cut into blocks, and for a divisor that a small integer type cannot hold.
      ASSERT_NO_FATAL_FAILURE(check_fold<T>(random_, op, 20'011, 3, 3));
      ASSERT_NO_FATAL_FAILURE(check_fold<T>(random_, op, 100, 5, 70'000));
      ASSERT_NO_FATAL_FAILURE(check_fold<T>(random_, op, 100, 2, 0xffffffffu));
    }
  });
}

template <typename T>
void check_finish(std::mt19937_64& random) {
  for (const std::size_t count : lengths()) {
    SCOPED_TRACE(label<T>(ReduceOp::avg, count));
    for (const std::uint32_t divisor : {1u, 2u, 3u, 7u, 300u}) {
      Guarded<T> data(count, (count + divisor) % 16);
      data.fill(random);
      std::vector<T> before;
      std::vector<T> expected;
      for (std::size_t i = 0; i < count; ++i) {
        before.push_back(data.get(i));
        expected.push_back(reference_store<T>(reference_divide<T>(data.get(i), divisor)));
      }
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
        finish(dtype_of<T>, op, data.data(), count, divisor);
        ASSERT_TRUE(same_bits(data, before)) << "only avg divides";
      }
      finish(dtype_of<T>, ReduceOp::avg, data.data(), count, divisor);
      ASSERT_TRUE(same_bits(data, expected));
    }
  }
}

TEST_P(ReduceKernels, FinishDividesAveragesAndNothingElse) {
  for_each_type([this]<typename T>() { check_finish<T>(random_); });
}

template <typename T>
void check_all_halves() {
  constexpr std::size_t kCount = 65536;
  for (const std::uint32_t divisor : {1u, 3u, 16u, 1000u}) {
    Guarded<T> data(kCount, 1);
    std::vector<T> expected;
    for (std::size_t i = 0; i < kCount; ++i) {
      data.set(i, T::from_bits(static_cast<std::uint16_t>(i)));
      expected.push_back(reference_store<T>(reference_divide<T>(data.get(i), divisor)));
    }
    finish(dtype_of<T>, ReduceOp::avg, data.data(), kCount, divisor);
    ASSERT_TRUE(same_bits(data, expected)) << "divisor " << divisor;
  }
  // Expect: sums of three that need all the bits of f32 round once, ties and overflow included.
  Guarded<T> a(kCount, 1);
  Guarded<T> b(kCount, 2);
  Guarded<T> c(kCount, 3);
  std::vector<T> expected;
  for (std::size_t i = 0; i < kCount; ++i) {
    a.set(i, T::from_bits(static_cast<std::uint16_t>(i)));
    b.set(i, T::from_bits(static_cast<std::uint16_t>(i ^ 0x0400u)));
    c.set(i, T::from_bits(static_cast<std::uint16_t>((i & 0x8000u) | (i * 40503u & 0x7fffu))));
    expected.push_back(reference_store<T>((a.get(i) + b.get(i)) + c.get(i)));
  }
  const std::byte* const inputs[] = {a.data(), b.data(), c.data()};
  reduce_ranks(dtype_of<T>, ReduceOp::sum, a.data(), inputs, kCount, 3);
  ASSERT_TRUE(same_bits(a, expected));
}

TEST_P(ReduceKernels, EveryHalfPrecisionValueConvertsAsItsClassDoes) {
  ASSERT_NO_FATAL_FAILURE(check_all_halves<f16>());
  ASSERT_NO_FATAL_FAILURE(check_all_halves<bf16>());
}

// Memory between two pages that may not be touched.
class FencedPage {
 public:
  FencedPage() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const memory = ::mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    base_ = static_cast<std::byte*>(memory);
    ok_ = ::mprotect(base_ + page_, page_, PROT_READ | PROT_WRITE) == 0;
  }
  ~FencedPage() {
    if (base_ != nullptr) ::munmap(base_, 3 * page_);
  }
  FencedPage(const FencedPage&) = delete;
  FencedPage& operator=(const FencedPage&) = delete;

  bool ok() const { return ok_; }
  std::byte* front() { return base_ + page_; }
  std::byte* back(std::size_t bytes) { return base_ + 2 * page_ - bytes; }

 private:
  std::size_t page_;
  std::byte* base_ = nullptr;
  bool ok_ = false;
};

TEST_P(ReduceKernels, NothingOutsideTheElementsIsReadOrWritten) {
  FencedPage a;
  FencedPage b;
  ASSERT_TRUE(a.ok() && b.ok());
  for (const Dtype dtype : kAllDtypes) {
    for (const ReduceOp op : kAllReduceOps) {
      for (std::size_t count = 0; count <= 150; ++count) {
        // Expect: no fault, at the first and at the last byte of the page.
        const std::size_t bytes = count * size_of(dtype);
        for (const bool at_end : {false, true}) {
          std::byte* const left = at_end ? a.back(bytes) : a.front();
          std::byte* const right = at_end ? b.back(bytes) : b.front();
          const std::byte* const inputs[] = {left, right};
          combine(dtype, op, left, right, count);
          reduce_ranks(dtype, op, left, inputs, count, 2);
          finish(dtype, op, left, count, 2);
        }
      }
    }
  }
}

// The instruction sets that this CPU has and the kernels were compiled for: found by asking the kernels, since a test
// cannot see which ones those are.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> found;
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    if (reduce_kernels_target() == hwy::TargetName(target)) found.push_back(target);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  return found;
}

std::string target_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ReduceKernels, testing::ValuesIn(targets()), target_name);

// --- What the contract says in so many words.

template <typename T>
T combined(ReduceOp op, T a, T b) {
  combine(dtype_of<T>, op, reinterpret_cast<std::byte*>(&a), reinterpret_cast<const std::byte*>(&b), 1);
  return a;
}

TEST(ReduceKernelsContract, IntegerSumsWrapAndAveragesTruncateTowardZero) {
  EXPECT_EQ(combined(sum, std::numeric_limits<std::int32_t>::max(), std::int32_t{1}),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(combined(sum, std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}),
            std::numeric_limits<std::int64_t>::max());
  std::int32_t data[] = {-7, 7, -1, 1, -8};
  finish(Dtype::i32, avg, reinterpret_cast<std::byte*>(data), 5, 2);
  EXPECT_EQ(std::vector<std::int32_t>(data, data + 5), (std::vector<std::int32_t>{-3, 3, 0, 0, -4}));
}

TEST(ReduceKernelsContract, MinAndMaxPropagateNanAndOrderTheZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(combined(min, nan, 1.0f)));
  EXPECT_TRUE(std::isnan(combined(min, 1.0f, nan)));
  EXPECT_TRUE(std::isnan(combined(max, nan, std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(std::isnan(combined(max, -1.0f, -nan)));
  EXPECT_TRUE(std::signbit(combined(min, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(combined(min, -0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(combined(max, 0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(combined(max, -0.0f, 0.0f)));
}

TEST(ReduceKernelsContract, HalfPrecisionAccumulatesInF32AndDividesBeforeRounding) {
  // Expect: 4 x 40000 overflows f16, their average does not.
  const f16 big(40000.0f);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&big);
  const std::byte* const inputs[] = {bytes, bytes, bytes, bytes};
  f16 result{};
  reduce_ranks(Dtype::f16, avg, reinterpret_cast<std::byte*>(&result), inputs, 1, 4);
  EXPECT_EQ(result.bits(), big.bits());
  reduce_ranks(Dtype::f16, sum, reinterpret_cast<std::byte*>(&result), inputs, 1, 4);
  EXPECT_EQ(result.bits(), 0x7c00);
}

TEST(ReduceKernelsDeathTest, RefuseWhatNoCallerMayPass) {
  std::byte data[8] = {};
  EXPECT_DEATH(combine(static_cast<Dtype>(99), sum, data, data, 1), "unknown dtype");
  EXPECT_DEATH(combine(Dtype::f32, static_cast<ReduceOp>(99), data, data, 1), "unknown dtype or reduction");
  EXPECT_DEATH(reduce_ranks(Dtype::f32, sum, data, {}, 1, 1), "at least one input");
  EXPECT_DEATH(finish(Dtype::f32, avg, data, 1, 0), "divisor must be at least 1");
}

}  // namespace
