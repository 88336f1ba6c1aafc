// Goal: against a reference that keeps all timers in a sorted list: no timer fires early, none late, none twice, at any
// distance, while timers are armed and cancelled, also from inside on_timer().
#include "weft/runtime/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = Duration(1 << 14);
constexpr Instant kStart = Instant(Duration(123'456'789));

class Recorder final : public Timer {
 public:
  void on_timer() noexcept override {
    ++fired;
    if (then) then();
  }
  int fired = 0;
  Instant deadline{};
  std::function<void()> then;
};

/// A random time from a nanosecond to a century, each order of magnitude as likely as the others.
Duration random_time(std::mt19937_64& random) {
  const unsigned bits = static_cast<unsigned>(random() % 62);
  return Duration(static_cast<std::int64_t>(random() & ((std::uint64_t{2} << bits) - 1)) >> 1);
}

TEST(TimerWheel, AgreesWithASortedList) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    TimerWheel wheel(kStart);
    std::vector<std::unique_ptr<Recorder>> timers;
    for (int i = 0; i < 60; ++i) timers.push_back(std::make_unique<Recorder>());
    Instant now = kStart;
    std::size_t armed = 0;
    for (int step = 0; step < 400; ++step) {
      Recorder& timer = *timers[random() % timers.size()];
      const auto action = random() % 4;
      if (action <= 1 && !timer.armed()) {
        timer.deadline = saturating_add(now, random_time(random));
        timer.fired = 0;
        wheel.arm(timer, timer.deadline);
        ++armed;
      } else if (action == 2) {
        armed -= timer.armed() ? 1U : 0U;
        wheel.cancel(timer);
        EXPECT_FALSE(timer.armed());
      } else if (action == 3) {
        Instant next = kNever;
        for (const auto& each : timers) {
          if (each->armed()) next = std::min(next, each->deadline);
        }
        const Instant hint = wheel.next_deadline();
        if (armed == 0) {
          EXPECT_EQ(hint, kNever);
        }
        EXPECT_LE(hint, saturating_add(std::max(next, now), kTick));
        // Sometimes exactly to the next deadline or to the hint, sometimes anywhere, never back.
        const auto choice = random() % 3;
        if (choice == 0 && next != kNever) now = std::max(now, saturating_add(next, kTick));
        if (choice == 1 && hint != kNever) now = std::max(now, hint);
        if (choice == 2) now = std::min(saturating_add(now, random_time(random) / 8), kNever - Duration(1));
        std::vector<const Recorder*> were_armed;
        for (const auto& each : timers) {
          if (each->armed()) were_armed.push_back(each.get());
        }
        wheel.advance(now, 1000);
        for (const Recorder* each : were_armed) {
          if (each->armed()) {
            EXPECT_GT(each->deadline, now - kTick) << "late";
            EXPECT_EQ(each->fired, 0);
          } else {
            EXPECT_LE(each->deadline, now) << "early";
            EXPECT_EQ(each->fired, 1);
            --armed;
          }
        }
      }
      ASSERT_EQ(wheel.armed(), armed);
    }
    for (const auto& timer : timers) wheel.cancel(*timer);
  }
}

TEST(TimerWheel, FiresInTheOrderOfTicks) {
  std::mt19937_64 random(7);
  TimerWheel wheel(kStart);
  std::vector<std::unique_ptr<Recorder>> timers;
  std::vector<Instant> order;
  for (int i = 0; i < 2000; ++i) {
    timers.push_back(std::make_unique<Recorder>());
    Recorder& timer = *timers.back();
    timer.deadline = kStart + kTick * static_cast<std::int64_t>(random() % 1'000'000);
    timer.then = [&order, &timer] { order.push_back(timer.deadline); };
    wheel.arm(timer, timer.deadline);
  }
  wheel.advance(kStart + kTick * 1'000'000, 10'000);
  EXPECT_EQ(order.size(), 2000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(wheel.armed(), 0U);
}

TEST(TimerWheel, SharesOneInstantAmongManyWithinTheBudget) {
  TimerWheel wheel(kStart);
  constexpr std::size_t kMany = 100'000;
  const std::vector<std::unique_ptr<Recorder>> timers = [] {
    std::vector<std::unique_ptr<Recorder>> made;
    for (std::size_t i = 0; i < kMany; ++i) made.push_back(std::make_unique<Recorder>());
    return made;
  }();
  for (const auto& timer : timers) wheel.arm(*timer, kStart + 1s);
  EXPECT_FALSE(wheel.advance(kStart + 1s - kTick, 1000));
  std::size_t rounds = 0;
  while (wheel.armed() != 0) {
    EXPECT_TRUE(wheel.advance(kStart + 1s + kTick, 1000));
    EXPECT_EQ(wheel.armed(), kMany - 1000 * ++rounds);
    if (wheel.armed() != 0) {
      EXPECT_LE(wheel.next_deadline(), kStart + 1s);
    }
  }
  for (const auto& timer : timers) EXPECT_EQ(timer->fired, 1);
}

TEST(TimerWheel, MayBeArmedAgainFromItself) {
  TimerWheel wheel(kStart);
  Recorder periodic;
  Instant next = kStart;
  periodic.then = [&] { wheel.arm(periodic, next += 10ms); };
  wheel.arm(periodic, next += 10ms);
  for (Instant now = kStart; now < kStart + 1s; now += 1ms) wheel.advance(now, 100);
  EXPECT_EQ(periodic.fired, 99);
  wheel.cancel(periodic);
}

TEST(TimerWheel, WhatIsArmedForThePastWhileFiringWaitsForTheNextAdvance) {
  TimerWheel wheel(kStart);
  Recorder eager;
  eager.then = [&] { wheel.arm(eager, Instant::min()); };
  wheel.arm(eager, Instant::min());
  for (int i = 1; i <= 5; ++i) {
    EXPECT_TRUE(wheel.advance(kStart, 1000));
    EXPECT_EQ(eager.fired, i);
  }
  wheel.cancel(eager);
  EXPECT_FALSE(wheel.advance(kStart, 1000));
}

TEST(TimerWheel, ATimerMayCancelOthersThatAreDueWithIt) {
  TimerWheel wheel(kStart);
  Recorder first;
  Recorder second;
  first.then = [&] { wheel.cancel(second); };
  wheel.arm(first, kStart + 1s);
  wheel.arm(second, kStart + 1s);
  EXPECT_TRUE(wheel.advance(kStart + 2s, 1000));
  EXPECT_EQ(first.fired, 1);
  EXPECT_EQ(second.fired, 0);
  EXPECT_EQ(wheel.armed(), 0U);
}

TEST(TimerWheel, NeverIsNever) {
  TimerWheel wheel(kStart);
  Recorder never;
  Recorder last;
  wheel.arm(never, kNever);
  EXPECT_EQ(wheel.next_deadline(), kNever);
  wheel.arm(last, kNever - 1h);
  EXPECT_LE(wheel.next_deadline(), kNever - 1h);
  EXPECT_FALSE(wheel.advance(kNever - 2h, 10));
  EXPECT_TRUE(wheel.advance(kNever - 30min, 10));
  EXPECT_EQ(last.fired, 1);
  EXPECT_EQ(never.fired, 0);
  EXPECT_TRUE(never.armed());
  wheel.cancel(never);
  EXPECT_EQ(wheel.armed(), 0U);
}

TEST(TimerWheel, CancelOfATimerThatIsNotArmedDoesNothing) {
  TimerWheel wheel(kStart);
  Recorder timer;
  wheel.cancel(timer);
  EXPECT_EQ(wheel.armed(), 0U);
}

TEST(TimerWheelDeathTest, AnArmedTimerMustNotDieOrBeArmedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TimerWheel wheel(kStart);
        Recorder timer;
        wheel.arm(timer, kStart + 1s);
        wheel.arm(timer, kStart + 2s);
      },
      "the timer is armed");
  EXPECT_DEATH(
      {
        TimerWheel wheel(kStart);
        Recorder timer;
        wheel.arm(timer, kStart + 1s);
      },
      "still on an intrusive list");
}

}  // namespace
}  // namespace weft
