// The example's random numbers: the same on every compiler and library.
#include "random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace digits {
namespace {

TEST(SplitMix64, GivesThePublishedSequence) {
  // The reference implementation (prng.di.unimi.it/splitmix64.c) from seed 1234567.
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
  EXPECT_EQ(random.next(), 4593380528125082431U);
}

TEST(SplitMix64, StreamsOfOneSeedDiffer) {
  SplitMix64 first(1, 1);
  SplitMix64 second(1, 2);
  SplitMix64 other_seed(2, 1);
  const std::uint64_t draw = first.next();
  EXPECT_NE(draw, second.next());
  EXPECT_NE(draw, other_seed.next());
}

TEST(SplitMix64, BelowReachesEveryValueAndNoOther) {
  SplitMix64 random(7);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t draw = random.below(seen.size());
    ASSERT_LT(draw, seen.size());
    ++seen[static_cast<std::size_t>(draw)];
  }
  for (const int count : seen)
    EXPECT_NEAR(count, 1000, 150);
}

TEST(SplitMix64, UnitStaysBelowOne) {
  SplitMix64 random(8);
  double sum = 0.0;
  for (int i = 0; i < 10000; ++i) {
    const double draw = random.unit();
    ASSERT_GE(draw, 0.0);
    ASSERT_LT(draw, 1.0);
    sum += draw;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Shuffle, IsAPermutationFixedByItsSeed) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> again = items;
  std::vector<int> sorted = items;
  SplitMix64 random(9);
  SplitMix64 same(9);
  shuffle(std::span(items), random);
  shuffle(std::span(again), same);
  EXPECT_EQ(items, again);
  EXPECT_NE(items, sorted);
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items, sorted);
}

TEST(Shuffle, LeavesNothingAndOneItemAlone) {
  SplitMix64 random(10);
  std::vector<int> none;
  shuffle(std::span(none), random);
  std::vector<int> one{5};
  shuffle(std::span(one), random);
  EXPECT_EQ(one.front(), 5);
}

}  // namespace
}  // namespace digits
