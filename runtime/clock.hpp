// Time as the stack sees it: always through a Clock, so that the same code runs in virtual time.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

using Duration = std::chrono::nanoseconds;

/// A point on a Clock that never goes back and does not follow the wall clock.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// "Never": an instant that no clock reaches.
inline constexpr Instant kNever = Instant::max();

/// `now + wait`, kNever where that would overflow; a negative wait counts as zero.
[[nodiscard]] constexpr Instant saturating_add(Instant now, Duration wait) noexcept {
  if (wait <= Duration::zero()) return now;
  return now >= kNever - wait ? kNever : now + wait;
}

/// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() noexcept = 0;
};

/// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Instant now() noexcept override { return std::chrono::steady_clock::now(); }
};

/// The SteadyClock that reactors use when none is given.
[[nodiscard]] Clock& steady_clock() noexcept;

}  // namespace weft
