#include "weft/runtime/submit_to.hpp"

namespace weft::detail {

bool CrossReactorCall::depart(PromiseBase& waiter) noexcept {
  if (!begin(waiter)) return false;
  origin_ = waiter.reactor;
  target_.post(run_);
  return true;
}

void CrossReactorCall::on_cancel(Errc reason) noexcept {
  if (home_) return;
  cancel_reason_ = reason;
  cancel_out_ = true;
  target_.post(cancel_);
}

void CrossReactorCall::arrive_cancel() noexcept {
  target_scope_.cancel(cancel_reason_);
  origin_->post(receipt_);
}

void CrossReactorCall::arrive_receipt() noexcept {
  cancel_out_ = false;
  if (home_) complete();
}

void CrossReactorCall::arrive_done() noexcept {
  home_ = true;
  if (!cancel_out_) complete();
}

}  // namespace weft::detail
