// Where the time of a training step went: compute, communication behind it, communication it had to wait for.
#pragma once

#include <span>

#include "weft/runtime/clock.hpp"

namespace weft::gpu {

/// From `begin` to `end`, which is not before `begin`.
struct TimeInterval {
  Instant begin{};
  Instant end{};
};

/// communication == hidden + exposed.
struct StepTiming {
  Duration compute{};        ///< from the start of the step until the last gradient was computed
  Duration communication{};  ///< while at least one bucket was in flight
  Duration hidden{};         ///< the part of it that compute covered
  Duration exposed{};        ///< the part of it after compute had ended

  /// 0: none of the communication was hidden, 1: all of it, or there was none.
  [[nodiscard]] double hidden_share() const noexcept {
    if (communication <= Duration::zero()) return 1.0;
    return static_cast<double>(hidden.count()) / static_cast<double>(communication.count());
  }
};

/// `in_flight` holds an interval for each bucket, ordered by begin; they may overlap. Time counts once however many
/// buckets were in flight.
[[nodiscard]] StepTiming split_step(TimeInterval compute, std::span<const TimeInterval> in_flight) noexcept;

}  // namespace weft::gpu
