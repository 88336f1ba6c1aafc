#include "weft/runtime/sleep.hpp"

namespace weft {

bool Sleep::suspend(PromiseBase& waiter) noexcept {
  if (!begin(waiter)) return false;
  reactor_ = waiter.reactor;
  const Instant now = reactor_->clock().now();
  const Instant deadline = wait_ == kUntilDeadline ? deadline_ : saturating_add(now, wait_);
  reactor_->timers().arm(*this, deadline <= now ? Instant::min() : deadline);
  return true;
}

void Sleep::on_cancel(Errc reason) noexcept {
  reactor_->timers().cancel(*this);
  complete(reason);
}

}  // namespace weft
