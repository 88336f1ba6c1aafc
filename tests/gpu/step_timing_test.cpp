// Goal: the split of a step's time, computed by hand.
#include "weft/gpu/step_timing.hpp"

#include <gtest/gtest.h>

#include <array>

namespace weft::gpu {
namespace {

TimeInterval span_ms(int begin, int end) {
  return {Instant(std::chrono::milliseconds(begin)), Instant(std::chrono::milliseconds(end))};
}
Duration ms(int count) {
  return std::chrono::milliseconds(count);
}

void expect(const StepTiming& timing, int compute, int communication, int hidden, int exposed) {
  EXPECT_EQ(timing.compute, ms(compute));
  EXPECT_EQ(timing.communication, ms(communication));
  EXPECT_EQ(timing.hidden, ms(hidden));
  EXPECT_EQ(timing.exposed, ms(exposed));
}

TEST(StepTiming, WithoutCommunicationEverythingCountsAsHidden) {
  const StepTiming timing = split_step(span_ms(10, 30), {});
  expect(timing, 20, 0, 0, 0);
  EXPECT_EQ(timing.hidden_share(), 1.0);
}

TEST(StepTiming, CommunicationBehindComputeIsHidden) {
  const std::array flights{span_ms(12, 20)};
  const StepTiming timing = split_step(span_ms(10, 30), flights);
  expect(timing, 20, 8, 8, 0);
  EXPECT_EQ(timing.hidden_share(), 1.0);
}

TEST(StepTiming, CommunicationAfterComputeIsExposed) {
  const std::array flights{span_ms(30, 35), span_ms(36, 40)};
  const StepTiming timing = split_step(span_ms(10, 30), flights);
  expect(timing, 20, 9, 0, 9);
  EXPECT_EQ(timing.hidden_share(), 0.0);
}

TEST(StepTiming, AnIntervalAcrossTheEndOfComputeIsSplit) {
  const std::array flights{span_ms(25, 45)};
  const StepTiming timing = split_step(span_ms(10, 30), flights);
  expect(timing, 20, 20, 5, 15);
  EXPECT_DOUBLE_EQ(timing.hidden_share(), 0.25);
}

TEST(StepTiming, OverlappingBucketsCountOnce) {
  // Expect: 12-20 and 26-40 are covered; 30-40 lies after compute.
  const std::array flights{span_ms(12, 18), span_ms(14, 20), span_ms(15, 16), span_ms(26, 34), span_ms(28, 40)};
  expect(split_step(span_ms(10, 30), flights), 20, 22, 12, 10);
}

TEST(StepTiming, EmptyIntervalsCountNothing) {
  const std::array flights{span_ms(12, 12), span_ms(40, 40)};
  expect(split_step(span_ms(10, 30), flights), 20, 0, 0, 0);
}

TEST(StepTiming, AStepWithoutComputeHidesNothing) {
  const std::array flights{span_ms(10, 14)};
  expect(split_step(span_ms(10, 10), flights), 0, 4, 0, 4);
}

}  // namespace
}  // namespace weft::gpu
