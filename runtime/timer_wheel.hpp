// Timers in constant time: a hierarchical wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987).
//
// Time is cut into ticks of 2^14 ns (16 us: well under what a blocking wait can resolve, and a deadline is rounded up
// to its tick, so no timer is early). Nine levels of 64 slots reach 2^54 ticks, more than there are Instants; a word of
// occupancy bits per level finds the next slot without walking. A timer far away moves down a level a few times before
// it fires; arm and cancel touch one list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/runtime/clock.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft {

/// Something that happens at an instant. Pinned while armed.
class Timer : public ListHook<Timer> {
 public:
  /// Called once, never before the deadline; the timer is disarmed already and may be armed again.
  virtual void on_timer() noexcept = 0;

  [[nodiscard]] bool armed() const noexcept { return linked(); }

 protected:
  Timer() noexcept = default;
  ~Timer() = default;

 private:
  friend class TimerWheel;
  std::uint64_t tick_ = 0;
  std::uint16_t slot_ = 0;
};

/// Thread: the reactor's.
class TimerWheel {
 public:
  /// `now` is where the wheel's time starts.
  explicit TimerWheel(Instant now) noexcept : origin_(now) {}

  /// Precondition: not armed. Fires in the first advance() to the tick of `deadline`, or, with Instant::min(), in the
  /// next advance() whatever the time. kNever: never fires, but counts as armed.
  void arm(Timer& timer, Instant deadline) noexcept;
  /// Nothing happens for a timer that is not armed.
  void cancel(Timer& timer) noexcept;

  /// Fires timers whose deadline is not after `now`, at most `budget` of them, those of earlier ticks first. True if
  /// any fired.
  bool advance(Instant now, std::size_t budget) noexcept;

  /// No timer fires before the result; kNever when none is armed. It may be earlier than the next deadline.
  [[nodiscard]] Instant next_deadline() const noexcept;

  [[nodiscard]] std::size_t armed() const noexcept { return armed_; }

 private:
  static constexpr unsigned kTickShift = 14;
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1U << kSlotBits;
  static constexpr unsigned kLevels = 9;
  static constexpr std::uint16_t kDueSlot = kLevels * kSlots;
  static constexpr std::uint16_t kNeverSlot = kDueSlot + 1;

  [[nodiscard]] std::uint64_t since_origin_ns(Instant instant) const noexcept;
  /// Puts a timer into its slot, or on `due` when its tick has come.
  void place(Timer& timer, IntrusiveList<Timer, Timer>& due) noexcept;
  /// Level and slot of the earliest occupied slot, and the first tick it stands for.
  [[nodiscard]] bool earliest(unsigned& level, unsigned& slot, std::uint64_t& tick) const noexcept;

  Instant origin_;
  std::uint64_t current_tick_ = 0;  ///< every armed timer outside due_ has a later tick
  std::size_t armed_ = 0;
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<IntrusiveList<Timer, Timer>, kLevels * kSlots> slots_;
  IntrusiveList<Timer, Timer> due_;
  IntrusiveList<Timer, Timer> never_;
};

}  // namespace weft
