#include "weft/runtime/sleep.hpp"

namespace weft {

bool Sleep::suspend(PromiseBase& waiter) noexcept {
  if (!begin(waiter)) return false;
  reactor_ = waiter.reactor;
  if (deadline_ == Instant{}) deadline_ = saturating_add(reactor_->clock().now(), wait_);
  reactor_->timers().arm(*this, deadline_);
  return true;
}

void Sleep::on_cancel(Errc reason) noexcept {
  reactor_->timers().cancel(*this);
  complete(reason);
}

}  // namespace weft
