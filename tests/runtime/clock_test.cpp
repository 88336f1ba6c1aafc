// Goal: time arithmetic that cannot overflow, and a clock that does not go back.
#include "weft/runtime/clock.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

static_assert(saturating_add(Instant(5ns), 3ns) == Instant(8ns));
static_assert(saturating_add(Instant(5ns), 0ns) == Instant(5ns));
static_assert(saturating_add(Instant(5ns), -3ns) == Instant(5ns));
static_assert(saturating_add(Instant(5ns), Duration::min()) == Instant(5ns));
static_assert(saturating_add(Instant(5ns), Duration::max()) == kNever);
static_assert(saturating_add(Instant(0ns), Duration::max()) == kNever);
static_assert(saturating_add(Instant(-5ns), Duration::max()) == kNever - 5ns);
static_assert(saturating_add(Instant::min(), Duration::max()) == Instant(-1ns));
static_assert(saturating_add(kNever - 3ns, 2ns) == kNever - 1ns);
static_assert(saturating_add(kNever - 3ns, 3ns) == kNever);
static_assert(saturating_add(kNever - 3ns, 4ns) == kNever);
static_assert(saturating_add(kNever, 1ns) == kNever);

TEST(SteadyClock, DoesNotGoBack) {
  Instant before = steady_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = steady_clock().now();
    EXPECT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace weft
