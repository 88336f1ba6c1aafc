// Waiting for time to pass.
#pragma once

#include <algorithm>

#include "weft/runtime/reactor.hpp"
#include "weft/runtime/wait.hpp"

namespace weft {

/// The awaiter behind sleep_for and sleep_until.
class [[nodiscard]] Sleep final : public Wait, private Timer {
 public:
  static Sleep until(Instant deadline) noexcept { return Sleep(deadline, kUntilDeadline); }
  static Sleep after(Duration wait) noexcept { return Sleep(Instant{}, std::max(wait, Duration::zero())); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    return suspend(waiting.promise());
  }
  void await_resume() const { throw_if_failed(code(), "sleep"); }

 private:
  Sleep(Instant deadline, Duration wait) noexcept : deadline_(deadline), wait_(wait) {}
  static constexpr Duration kUntilDeadline = Duration::min();

  bool suspend(PromiseBase& waiter) noexcept;
  void on_timer() noexcept override { complete(); }
  void on_cancel(Errc reason) noexcept override;

  Instant deadline_;
  Duration wait_;  ///< counts from the await; kUntilDeadline: deadline_ says when
  Reactor* reactor_ = nullptr;
};

/// Resumes not before `wait` has passed since the await began; zero and less resume in a later turn, Duration::max()
/// never. Errors: cancelled, timed_out. Cost: no allocation.
[[nodiscard]] inline Sleep sleep_for(Duration wait) noexcept { return Sleep::after(wait); }
/// Resumes not before the reactor's clock shows `deadline`; one that has passed resumes in a later turn.
[[nodiscard]] inline Sleep sleep_until(Instant deadline) noexcept { return Sleep::until(deadline); }

/// Lets everything else that is ready run first. Not a cancellation point.
struct [[nodiscard]] Yield {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  void await_suspend(std::coroutine_handle<P> waiting) const noexcept {
    PromiseBase& promise = waiting.promise();
    promise.reactor->make_ready(promise);
  }
  void await_resume() const noexcept {}
};
[[nodiscard]] inline Yield yield() noexcept { return Yield(); }

}  // namespace weft
