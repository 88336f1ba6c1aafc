#include "weft/runtime/submit_to.hpp"

namespace weft::detail {

bool CrossReactorCall::depart(PromiseBase& waiter) noexcept {
  if (!begin(waiter)) return false;
  origin_ = waiter.reactor;
  target_.post(run_);
  return true;
}

void CrossReactorCall::arrive_run() noexcept {
  target_.guest_arrived();
  start_on_target();
}

void CrossReactorCall::on_cancel(Errc reason) noexcept {
  cancel_reason_ = reason;
  if ((progress_.fetch_or(kCancelSent, std::memory_order_acq_rel) & kEnded) != 0) return;  // done_ is on its way
  target_.post(cancel_);
}

void CrossReactorCall::arrive_cancel() noexcept {
  cancel_arrived_ = true;
  if (ended_) return go_home();
  target_scope_.cancel(cancel_reason_);
}

void CrossReactorCall::end_on_target() noexcept {
  ended_ = true;
  const bool cancel_sent = (progress_.fetch_or(kEnded, std::memory_order_acq_rel) & kCancelSent) != 0;
  if (!cancel_sent || cancel_arrived_) go_home();
}

void CrossReactorCall::go_home() noexcept {
  target_.guest_left();
  origin_->post(done_);  // last: the caller, and this with it, may be gone when this returns
}

}  // namespace weft::detail
