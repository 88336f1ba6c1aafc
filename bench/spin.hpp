// Waiting as the floors wait: by looking again and again, without a library in between.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#include "weft/runtime/error.hpp"

namespace bench {

/// How long a floor waits for its peer before it gives up: the peer has died, or the machine is hopelessly busy.
inline constexpr std::chrono::seconds kSpinLimit{20};

/// Returns once `done()` gives true. The clock is read once in 2^16 looks.
/// Errors: throws Error(timed_out) after kSpinLimit.
template <typename Condition>
void spin_until(Condition done) {
  constexpr std::uint32_t kLooks = 1U << 16;
  std::chrono::steady_clock::time_point limit{};
  for (std::uint32_t look = 0;; ++look) {
    if (done()) [[likely]]
      return;
    if (look % kLooks != kLooks - 1) continue;
    ::sched_yield();  // whoever we wait for may need this very core
    const auto now = std::chrono::steady_clock::now();
    if (limit == std::chrono::steady_clock::time_point{}) limit = now + kSpinLimit;
    if (now > limit) throw weft::Error(weft::Errc::timed_out, "floor", "the other rank does not answer any more");
  }
}

/// Nanoseconds of the steady clock.
[[nodiscard]] inline double now_ns() noexcept {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace bench
