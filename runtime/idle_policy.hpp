// The one place that decides whether a reactor with nothing to do spins, yields or blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/runtime/clock.hpp"

namespace weft {

enum class IdleMode : std::uint8_t {
  automatic,  ///< spin for a while where every busy thread has a core of its own, then block; else block at once
  spin,       ///< never block: lowest latency, a whole core
  yield,      ///< give the core to whoever else is runnable, never block
  block,      ///< block at once
};

/// "auto", "spin", "yield", "block"; nothing for any other text.
[[nodiscard]] std::optional<IdleMode> parse_idle_mode(std::string_view text) noexcept;

struct IdlePolicy {
  IdleMode mode = IdleMode::automatic;
  /// How long automatic mode spins before it blocks. 20 us: two to four times what a block and a wake-up cost (5 to
  /// 10 us), so that a wait that was worth spinning for is not cut off just before its end.
  Duration spin = std::chrono::microseconds(20);

  /// The policy for `busy_threads` threads that want to run at once on `cores` cores. Automatic mode gets no spin
  /// budget when there are more threads than cores: a spinning waiter would take the core of the one it waits for.
  [[nodiscard]] static IdlePolicy for_host(IdleMode mode, unsigned busy_threads, unsigned cores) noexcept;
};

/// What to do after a turn in which nothing happened.
enum class IdleStep : std::uint8_t { spin, yield, block };

/// Follows one reactor. The clock is read once in kTurnsPerClockRead idle turns: a read costs as much as a turn.
class IdleState {
 public:
  IdleState(IdlePolicy policy, Clock& clock) noexcept : policy_(policy), clock_(&clock) {}

  void on_progress() noexcept { idle_turns_ = 0; }
  [[nodiscard]] IdleStep on_idle_turn() noexcept;
  [[nodiscard]] const IdlePolicy& policy() const noexcept { return policy_; }

 private:
  static constexpr std::uint32_t kTurnsPerClockRead = 32;
  IdlePolicy policy_;
  Clock* clock_;
  std::uint32_t idle_turns_ = 0;
  Instant spin_until_{};
};

}  // namespace weft
