// The statistics against values worked out by hand.
#include "statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace bench {
namespace {

TEST(Statistics, TheMedianOfAnOddNumberIsTheMiddleOne) {
  EXPECT_EQ(median({9, 1, 5}), 5);
}

TEST(Statistics, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({8, 1, 4, 100}), 6);
}

TEST(Statistics, TheMedianDeviationDoesNotSeeOneOutlier) {
  // Median 3; distances 2 1 0 1 997, whose middle is 1.
  EXPECT_EQ(median_deviation({1, 2, 3, 4, 1000}), 1);
  EXPECT_EQ(median_deviation({7, 7, 7}), 0);
}

TEST(Statistics, ThePercentileIsTheNearestRank) {
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1.0);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 1.0), 100);
  EXPECT_EQ(percentile(hundred, 0.001), 1);
  std::vector<double> more(101);
  std::iota(more.begin(), more.end(), 1.0);
  EXPECT_EQ(percentile(more, 0.99), 100);  // 0.99 * 101 = 99.99
}

TEST(Statistics, FewSamplesHaveTheirLargestAsTail) {
  EXPECT_EQ(percentile({3, 1, 2}, 0.99), 3);
}

TEST(Statistics, OneSampleIsItsOwnSummary) {
  const double one[] = {4.5};
  const Summary summary = summarize(one);
  EXPECT_EQ(summary.median, 4.5);
  EXPECT_EQ(summary.p99, 4.5);
  EXPECT_EQ(summary.min, 4.5);
  EXPECT_EQ(summary.deviation, 0);
}

TEST(Statistics, RepeatsGiveTheMedianOfMediansAndTheLeastMinimum) {
  const Summary repeats[] = {{10, 20, 9, 1}, {12, 90, 8, 1}, {11, 30, 10, 1}};
  const Summary summary = summarize_repeats(repeats);
  EXPECT_EQ(summary.median, 11);
  EXPECT_EQ(summary.p99, 30);
  EXPECT_EQ(summary.min, 8);
  EXPECT_EQ(summary.deviation, 1);
}

TEST(Samples, HoldMicrosecondsPerOperation) {
  Samples samples(2);
  samples.add(8000, 16);
  ASSERT_EQ(samples.values().size(), 1U);
  EXPECT_DOUBLE_EQ(samples.values()[0], 0.5);
}

TEST(Samples, DropWhatDoesNotFitAndStartAnewAfterClear) {
  Samples samples(2);
  for (int i = 0; i < 5; ++i)
    samples.add(1000 * i, 1);
  ASSERT_EQ(samples.values().size(), 2U);
  EXPECT_DOUBLE_EQ(samples.values()[1], 1);
  samples.clear();
  EXPECT_TRUE(samples.values().empty());
  samples.add(3000, 1);
  EXPECT_DOUBLE_EQ(samples.values()[0], 3);
}

}  // namespace
}  // namespace bench
