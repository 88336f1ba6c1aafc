#include "weft/runtime/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace weft {

void TimerWheel::arm(Timer& timer, Instant deadline) noexcept {
  WEFT_DEBUG_ASSERT(!timer.armed(), "TimerWheel::arm: the timer is armed");
  const Duration ahead = deadline - std::min(deadline, origin_);
  const auto ns = static_cast<std::uint64_t>(ahead.count());
  const std::uint64_t round_up = (ns & ((std::uint64_t{1} << kTickShift) - 1)) != 0 ? 1 : 0;
  timer.tick_ = std::min((ns >> kTickShift) + round_up, kLastTick);
  ++armed_;
  place(timer);
}

void TimerWheel::place(Timer& timer) noexcept {
  if (timer.tick_ <= current_tick_) {
    timer.slot_ = kDueSlot;
    due_.push_back(timer);
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
  if (timer.slot_ != kDueSlot && slots_[timer.slot_].empty()) {
    occupied_[timer.slot_ / kSlots] &= ~(std::uint64_t{1} << (timer.slot_ % kSlots));
  }
}

bool TimerWheel::earliest(unsigned& level, unsigned& slot, std::uint64_t& tick) const noexcept {
  // A lower level always comes first: its slots lie within the present slot of the level above.
  for (level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
    const unsigned shift = level * kSlotBits;
    const std::uint64_t above = shift + kSlotBits < 64 ? (current_tick_ >> (shift + kSlotBits)) << (shift + kSlotBits) : 0;
    tick = above | (std::uint64_t{slot} << shift);
    return true;
  }
  return false;
}

bool TimerWheel::advance(Instant now, std::size_t budget) noexcept {
  if (armed_ == 0) return false;
  const std::uint64_t now_tick =
      std::min(static_cast<std::uint64_t>((now - std::min(now, origin_)).count()) >> kTickShift, kLastTick - 1);
  bool fired = false;
  while (true) {
    while (!due_.empty()) {
      if (budget == 0) return fired;
      --budget;
      --armed_;
      due_.pop_front()->on_timer();
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
    while (Timer* timer = moving.pop_front()) place(*timer);
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
  if (tick >= kLastTick >> 1) return kNever;
  const std::uint64_t ns = tick << kTickShift;
  return saturating_add(origin_, Duration(static_cast<Duration::rep>(std::min<std::uint64_t>(ns, INT64_MAX))));
}

}  // namespace weft
