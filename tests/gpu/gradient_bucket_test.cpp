// Goal: every gradient has a place of its own in the right bucket, for sizes around the cap and for random ones.
#include "weft/gpu/gradient_bucket.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "weft/runtime/error.hpp"

namespace weft::gpu {
namespace {

std::vector<ParameterInfo> of_counts(std::initializer_list<std::size_t> counts) {
  std::vector<ParameterInfo> parameters;
  for (const std::size_t count : counts) {
    std::string name = "p";
    name += std::to_string(parameters.size());
    parameters.push_back(ParameterInfo{name, count});
  }
  return parameters;
}

std::vector<std::size_t> buckets_of(const BucketPlan& plan) {
  std::vector<std::size_t> result;
  for (const GradientPlace& place : plan.gradients)
    result.push_back(place.bucket);
  return result;
}

void expect_sound(const BucketPlan& plan, std::span<const ParameterInfo> parameters, std::size_t first_cap,
                  std::size_t cap) {
  ASSERT_EQ(plan.gradients.size(), parameters.size());
  std::size_t next = parameters.size();
  for (std::size_t index = 0; index < plan.buckets.size(); ++index) {
    const GradientBucket& bucket = plan.buckets[index];
    ASSERT_EQ(bucket.last_parameter + 1, next) << "bucket " << index << " does not begin where its predecessor ended";
    ASSERT_LE(bucket.first_parameter, bucket.last_parameter);
    next = bucket.first_parameter;
    std::size_t with_elements = 0;
    std::size_t previous_end = bucket.begin;
    for (std::size_t id = bucket.last_parameter + 1; id-- > bucket.first_parameter;) {
      const GradientPlace& place = plan.gradients[id];
      EXPECT_EQ(place.bucket, index);
      EXPECT_EQ(place.count, parameters[id].count);
      EXPECT_EQ(place.begin * sizeof(float) % kGradientAlignmentBytes, 0u);
      EXPECT_GE(place.begin, previous_end);
      if (place.count == 0) continue;
      EXPECT_LE(place.begin + place.count, bucket.end);
      previous_end = place.begin + place.count;
      ++with_elements;
    }
    EXPECT_EQ(bucket.end, previous_end);
    EXPECT_LE(bucket.end, plan.floats);
    if (with_elements > 1) {
      EXPECT_LE(bucket.bytes(), index == 0 ? first_cap : cap);
    }
  }
  EXPECT_EQ(next, 0u);
}

TEST(GradientBucket, NoParametersMakeNoBuckets) {
  const BucketPlan plan = cut_buckets({}, 1024, 1024);
  EXPECT_TRUE(plan.buckets.empty());
  EXPECT_EQ(plan.floats, 0u);
}

TEST(GradientBucket, TheLastParameterStandsFirst) {
  const auto parameters = of_counts({16, 16, 16});
  const BucketPlan plan = cut_buckets(parameters, 1024, 1024);
  EXPECT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.gradients[2].begin, 0u);
  EXPECT_EQ(plan.gradients[1].begin, 16u);
  EXPECT_EQ(plan.gradients[0].begin, 32u);
  expect_sound(plan, parameters, 1024, 1024);
}

TEST(GradientBucket, SizesAroundTheCapAreCutWhereTheyMust) {
  // Goal: cap 256 floats. Read from the right: 2560 alone, 257 alone, 256 fills one, 255 and 1 do not share one
  // because of the padding between them, 0 goes with its predecessor.
  const auto parameters = of_counts({0, 1, 255, 256, 257, 2560});
  const std::size_t cap = 256 * sizeof(float);
  const BucketPlan plan = cut_buckets(parameters, cap, cap);
  EXPECT_EQ(buckets_of(plan), (std::vector<std::size_t>{4, 4, 3, 2, 1, 0}));
  expect_sound(plan, parameters, cap, cap);
}

TEST(GradientBucket, ACapOfOneByteGivesEachGradientItsOwnBucket) {
  const auto parameters = of_counts({1, 2, 3, 1000});
  const BucketPlan plan = cut_buckets(parameters, 1, 1);
  EXPECT_EQ(buckets_of(plan), (std::vector<std::size_t>{3, 2, 1, 0}));
  expect_sound(plan, parameters, 1, 1);
}

TEST(GradientBucket, TheFirstBucketHasACapOfItsOwn) {
  const auto parameters = of_counts({16, 16, 16, 16, 16});
  const BucketPlan plan = cut_buckets(parameters, 64, 128);
  EXPECT_EQ(buckets_of(plan), (std::vector<std::size_t>{2, 2, 1, 1, 0}));
  expect_sound(plan, parameters, 64, 128);
}

TEST(GradientBucket, EmptyGradientsAtTheEndJoinTheFirstThatHasElements) {
  const auto parameters = of_counts({1000, 0, 0});
  const BucketPlan plan = cut_buckets(parameters, 16, 16);
  EXPECT_EQ(buckets_of(plan), (std::vector<std::size_t>{0, 0, 0}));
  expect_sound(plan, parameters, 16, 16);
}

TEST(GradientBucket, OnlyEmptyGradientsMakeOneEmptyBucket) {
  const auto parameters = of_counts({0, 0, 0});
  const BucketPlan plan = cut_buckets(parameters, 16, 16);
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets[0].bytes(), 0u);
}

TEST(GradientBucket, RandomListsAreSound) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<ParameterInfo> parameters(random() % 20);
    for (ParameterInfo& parameter : parameters)
      parameter.count = random() % 4 == 0 ? 0 : random() % 300;
    const std::size_t cap = 1 + random() % 2000;
    const std::size_t first_cap = 1 + random() % cap;
    const BucketPlan plan = cut_buckets(parameters, first_cap, cap);
    expect_sound(plan, parameters, first_cap, cap);
  }
}

TEST(GradientBucket, SizesThatOverflowAreRefusedByName) {
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  for (const auto& parameters : {of_counts({huge}), of_counts({huge / 8, huge / 8, huge / 8})}) {
    try {
      static_cast<void>(cut_buckets(parameters, 1024, 1024));
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("parameter 'p"), std::string::npos) << error.what();
    }
  }
}

TEST(GradientBucket, FingerprintsAgreeUpToTheFirstDifference) {
  std::vector<ParameterInfo> here = of_counts({1, 2, 3, 4});
  std::vector<ParameterInfo> there = here;
  there[2].count = 30;
  const auto a = fingerprints(here);
  const auto b = fingerprints(there);
  EXPECT_EQ(a[0], b[0]);
  EXPECT_EQ(a[1], b[1]);
  EXPECT_NE(a[2], b[2]);
  EXPECT_NE(a[3], b[3]);
  // Expect: the border between two names counts.
  here[0].name = "ab";
  here[1].name = "c";
  there = here;
  there[0].name = "a";
  there[1].name = "bc";
  EXPECT_NE(fingerprints(here)[1], fingerprints(there)[1]);
}

}  // namespace
}  // namespace weft::gpu
