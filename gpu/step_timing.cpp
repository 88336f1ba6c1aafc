#include "weft/gpu/step_timing.hpp"

#include <algorithm>

#include "weft/runtime/assert.hpp"

namespace weft::gpu {

StepTiming split_step(TimeInterval compute, std::span<const TimeInterval> in_flight) noexcept {
  StepTiming timing;
  timing.compute = std::max(Duration::zero(), compute.end - compute.begin);
  if (in_flight.empty()) return timing;
  Instant covered = in_flight.front().begin;  // everything before has been counted
  for (const TimeInterval& interval : in_flight) {
    WEFT_DEBUG_ASSERT(interval.begin <= interval.end, "split_step: an interval ends before it begins");
    const Instant begin = std::max(interval.begin, covered);
    if (interval.end <= begin) continue;
    timing.communication += interval.end - begin;
    timing.exposed += std::max(Duration::zero(), interval.end - std::max(begin, compute.end));
    covered = interval.end;
  }
  timing.hidden = timing.communication - timing.exposed;
  return timing;
}

}  // namespace weft::gpu
