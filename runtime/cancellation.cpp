#include "weft/runtime/cancellation.hpp"

namespace weft {

CancelScope::CancelScope(CancelScope* parent) noexcept {
  if (parent == nullptr) return;
  requested_ = parent->requested_;
  parent->children_.push_back(*this);
}

CancelScope::~CancelScope() {
  if (linked()) unlink();
}

void CancelScope::cancel(Errc reason) noexcept {
  if (requested_ != Errc::ok) return;
  requested_ = reason;
  // on_cancel() only marks coroutines ready, so neither list can lose another member while it is walked.
  while (Cancellable* wait = waits_.pop_front()) wait->on_cancel(reason);
  for (CancelScope* child = children_.first(); child != nullptr; child = children_.next(*child)) child->cancel(reason);
}

}  // namespace weft
