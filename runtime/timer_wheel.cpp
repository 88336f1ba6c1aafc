#include "weft/runtime/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace weft {

std::uint64_t TimerWheel::since_origin_ns(Instant instant) const noexcept {
  if (instant <= origin_) return 0;
  return static_cast<std::uint64_t>(instant.time_since_epoch().count()) -
         static_cast<std::uint64_t>(origin_.time_since_epoch().count());
}

void TimerWheel::arm(Timer& timer, Instant deadline) noexcept {
  WEFT_ASSERT(!timer.armed(), "TimerWheel::arm: the timer is armed");
  ++armed_;
  if (deadline == kNever) {
    timer.slot_ = kNeverSlot;
    never_.push_back(timer);
    return;
  }
  const std::uint64_t ns = since_origin_ns(deadline);
  const std::uint64_t round_up = (ns & ((std::uint64_t{1} << kTickShift) - 1)) != 0 ? 1 : 0;
  timer.tick_ = (ns >> kTickShift) + round_up;
  place(timer, due_);
}

void TimerWheel::place(Timer& timer, IntrusiveList<Timer, Timer>& due) noexcept {
  if (timer.tick_ <= current_tick_) {
    timer.slot_ = kDueSlot;
    due.push_back(timer);
    return;
  }
  // The level is that of the highest digit (base 64) in which the tick differs from the present.
  const unsigned highest_bit = 63U - static_cast<unsigned>(std::countl_zero(timer.tick_ ^ current_tick_));
  const unsigned level = highest_bit / kSlotBits;
  const auto slot = static_cast<unsigned>((timer.tick_ >> (level * kSlotBits)) & (kSlots - 1));
  timer.slot_ = static_cast<std::uint16_t>(level * kSlots + slot);
  slots_[timer.slot_].push_back(timer);
  occupied_[level] |= std::uint64_t{1} << slot;
}

void TimerWheel::cancel(Timer& timer) noexcept {
  if (!timer.armed()) return;
  timer.unlink();
  --armed_;
  if (timer.slot_ < kDueSlot && slots_[timer.slot_].empty()) {
    occupied_[timer.slot_ / kSlots] &= ~(std::uint64_t{1} << (timer.slot_ % kSlots));
  }
}

bool TimerWheel::earliest(unsigned& level, unsigned& slot, std::uint64_t& tick) const noexcept {
  // A lower level always comes first: its slots lie within the present slot of the level above.
  for (level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
    const unsigned shift = level * kSlotBits;
    const std::uint64_t above = current_tick_ >> (shift + kSlotBits) << (shift + kSlotBits);
    tick = above | (std::uint64_t{slot} << shift);
    return true;
  }
  return false;
}

bool TimerWheel::advance(Instant now, std::size_t budget) noexcept {
  if (armed_ == 0) return false;
  const std::uint64_t now_tick = since_origin_ns(now) >> kTickShift;
  bool fired = false;
  // What on_timer() arms anew for the past waits in due_ for the next call, so that nothing can fire for ever.
  IntrusiveList<Timer, Timer> firing;
  firing.splice_back(due_);
  while (true) {
    while (!firing.empty()) {
      if (budget == 0) {
        firing.splice_back(due_);
        due_.splice_back(firing);
        return fired;
      }
      --budget;
      --armed_;
      firing.pop_front()->on_timer();
      fired = true;
    }
    unsigned level = 0;
    unsigned slot = 0;
    std::uint64_t tick = 0;
    if (!earliest(level, slot, tick) || tick > now_tick) break;
    current_tick_ = tick;
    occupied_[level] &= ~(std::uint64_t{1} << slot);
    IntrusiveList<Timer, Timer> moving;
    moving.splice_back(slots_[level * kSlots + slot]);
    while (Timer* timer = moving.pop_front()) place(*timer, firing);
  }
  current_tick_ = std::max(current_tick_, now_tick);
  return fired;
}

Instant TimerWheel::next_deadline() const noexcept {
  if (armed_ == 0) return kNever;
  if (!due_.empty()) return origin_;
  unsigned level = 0;
  unsigned slot = 0;
  std::uint64_t tick = 0;
  if (!earliest(level, slot, tick)) return kNever;
  const std::uint64_t ns = tick << kTickShift;  // below 2^64: at most one tick more than the deadline of some timer
  return saturating_add(origin_, Duration(static_cast<Duration::rep>(std::min<std::uint64_t>(ns, INT64_MAX))));
}

}  // namespace weft
