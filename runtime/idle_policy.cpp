#include "weft/runtime/idle_policy.hpp"

namespace weft {

std::optional<IdleMode> parse_idle_mode(std::string_view text) noexcept {
  if (text == "auto") return IdleMode::automatic;
  if (text == "spin") return IdleMode::spin;
  if (text == "yield") return IdleMode::yield;
  if (text == "block") return IdleMode::block;
  return std::nullopt;
}

IdlePolicy IdlePolicy::for_host(IdleMode mode, unsigned busy_threads, unsigned cores) noexcept {
  IdlePolicy policy;
  policy.mode = mode;
  if (busy_threads > cores) policy.spin = Duration::zero();
  return policy;
}

IdleStep IdleState::on_idle_turn() noexcept {
  switch (policy_.mode) {
    case IdleMode::spin: return IdleStep::spin;
    case IdleMode::yield: return IdleStep::yield;
    case IdleMode::block: return IdleStep::block;
    case IdleMode::automatic: break;
  }
  if (policy_.spin <= Duration::zero()) return IdleStep::block;
  const std::uint32_t turn = idle_turns_++;
  if (turn % kTurnsPerClockRead != 0) return IdleStep::spin;
  const Instant now = clock_->now();
  if (turn == 0) spin_until_ = saturating_add(now, policy_.spin);
  return now < spin_until_ ? IdleStep::spin : IdleStep::block;
}

}  // namespace weft
