// Wait: the base of every awaiter that suspends until something happens.
//
// It lives in the frame of the waiting coroutine, so waiting allocates nothing. It is listed in the coroutine's cancel
// scope from begin() to complete(), and it makes the coroutine ready exactly once: complete() and the scope's
// on_cancel() exclude each other because both run on the reactor's thread and complete() leaves the scope.
#pragma once

#include "weft/runtime/cancellation.hpp"
#include "weft/runtime/promise.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft {

/// See the top of the file. Pinned.
class Wait : public Cancellable {
 public:
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// How the wait ended; meaningful after complete().
  [[nodiscard]] Errc code() const noexcept { return code_; }
  /// The coroutine is suspended on this wait.
  [[nodiscard]] bool waiting() const noexcept { return waiter_ != nullptr; }

 protected:
  Wait() noexcept = default;
  ~Wait() { WEFT_ASSERT(waiter_ == nullptr, "a wait was destroyed while its coroutine was suspended on it"); }

  /// Suspends `waiter` on this wait. False when its scope has been cancelled already: code() says why, nothing is
  /// listed, and the coroutine must not be suspended.
  [[nodiscard]] bool begin(PromiseBase& waiter) noexcept {
    code_ = Errc::ok;
    if (waiter.scope != nullptr) {
      code_ = waiter.scope->requested();
      if (code_ != Errc::ok) return false;
      waiter.scope->add(*this);
    }
    waiter_ = &waiter;
    return true;
  }

  /// Suspends without asking the scope first, and without being listed in it: for what cannot be cancelled any more.
  void begin_uncancellable(PromiseBase& waiter) noexcept {
    code_ = Errc::ok;
    waiter_ = &waiter;
  }

  /// Ends the wait: the coroutine will be resumed by its reactor. Precondition: waiting().
  void complete(Errc code = Errc::ok) noexcept {
    PromiseBase* waiter = waiter_;
    WEFT_DEBUG_ASSERT(waiter != nullptr, "Wait::complete: nobody is waiting");
    waiter_ = nullptr;
    code_ = code;
    if (ListHook<Cancellable>::linked()) ListHook<Cancellable>::unlink();
    waiter->reactor->make_ready(*waiter);
  }

 private:
  PromiseBase* waiter_ = nullptr;
  Errc code_ = Errc::ok;
};

/// Throws what code() stands for; `operation` names the wait in the message.
inline void throw_if_failed(Errc code, const char* operation) {
  if (code != Errc::ok) throw Error(Outcome{code, kNoRank, 0}, operation);
}

}  // namespace weft
