// Goal: who spins, yields or blocks, decided from the policy and the clock alone.
#include "weft/runtime/idle_policy.hpp"

#include <gtest/gtest.h>

#include "support/manual_clock.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(IdlePolicy, ParsesItsNames) {
  EXPECT_EQ(parse_idle_mode("auto"), IdleMode::automatic);
  EXPECT_EQ(parse_idle_mode("spin"), IdleMode::spin);
  EXPECT_EQ(parse_idle_mode("yield"), IdleMode::yield);
  EXPECT_EQ(parse_idle_mode("block"), IdleMode::block);
  for (const char* wrong : {"", "Auto", "spin ", "busy"}) EXPECT_EQ(parse_idle_mode(wrong), std::nullopt) << wrong;
}

TEST(IdlePolicy, NobodySpinsWhereThereAreMoreBusyThreadsThanCores) {
  EXPECT_GT(IdlePolicy::for_host(IdleMode::automatic, 2, 2).spin, Duration::zero());
  EXPECT_EQ(IdlePolicy::for_host(IdleMode::automatic, 3, 2).spin, Duration::zero());
  EXPECT_EQ(IdlePolicy::for_host(IdleMode::yield, 1, 2).mode, IdleMode::yield);
}

TEST(IdleState, FixedModesDoNotAskTheClock) {
  class NoClock final : public Clock {
   public:
    [[nodiscard]] Instant now() noexcept override {
      ADD_FAILURE() << "asked";
      return {};
    }
  } clock;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(IdleState({IdleMode::spin, 20us}, clock).on_idle_turn(), IdleStep::spin);
    EXPECT_EQ(IdleState({IdleMode::yield, 20us}, clock).on_idle_turn(), IdleStep::yield);
    EXPECT_EQ(IdleState({IdleMode::block, 20us}, clock).on_idle_turn(), IdleStep::block);
    EXPECT_EQ(IdleState({IdleMode::automatic, Duration::zero()}, clock).on_idle_turn(), IdleStep::block);
    EXPECT_EQ(IdleState({IdleMode::automatic, Duration(-1)}, clock).on_idle_turn(), IdleStep::block);
  }
}

TEST(IdleState, SpinsForItsBudgetThenBlocksUntilSomethingHappens) {
  test::ManualClock clock;
  IdleState state({IdleMode::automatic, 20us}, clock);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(state.on_idle_turn(), IdleStep::spin);
    clock.advance(20us);
    int more = 0;
    while (state.on_idle_turn() == IdleStep::spin) ++more;
    EXPECT_LE(more, 64);  // the clock is not read in every turn
    state.on_progress();
  }
}

TEST(IdleState, AnEndlessBudgetSpinsForEver) {
  test::ManualClock clock;
  IdleState state({IdleMode::automatic, Duration::max()}, clock);
  for (int i = 0; i < 1000; ++i) {
    clock.advance(24h);
    EXPECT_EQ(state.on_idle_turn(), IdleStep::spin);
  }
}

}  // namespace
}  // namespace weft
