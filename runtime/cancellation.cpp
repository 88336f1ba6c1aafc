#include "weft/runtime/cancellation.hpp"

namespace weft {

CancelScope::CancelScope(CancelScope* parent) noexcept : parent_(parent) {
  if (parent == nullptr) return;
  requested_ = parent->requested_;
  parent->children_.push_back(*this);
}

CancelScope::~CancelScope() {
  WEFT_ASSERT(waits_.empty(), "a cancel scope was destroyed while tasks waited in it");
  WEFT_ASSERT(children_.empty(), "a cancel scope was destroyed before a scope inside it");
  if (linked()) unlink();
}

void CancelScope::cancel_waits(Errc reason) noexcept {
  requested_ = reason;
  // on_cancel() only marks coroutines ready: it may end other waits of this scope, but adds none.
  while (Cancellable* wait = waits_.pop_front()) wait->on_cancel(reason);
}

void CancelScope::cancel(Errc reason) noexcept {
  if (requested_ != Errc::ok) return;
  cancel_waits(reason);
  // The scopes inside in preorder, those that were cancelled before (and so all inside them) left out. No scope can
  // come or go meanwhile, because no coroutine runs.
  CancelScope* at = this;
  CancelScope* next = children_.first();
  while (true) {
    while (next == nullptr) {
      if (at == this) return;
      next = at->parent_->children_.next(*at);
      at = at->parent_;
    }
    at = next;
    next = nullptr;
    if (at->requested_ == Errc::ok) {
      at->cancel_waits(reason);
      next = at->children_.first();
    }
  }
}

}  // namespace weft
