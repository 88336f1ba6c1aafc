// with_deadline: an operation that ends in time, one way or the other.
#pragma once

#include <type_traits>
#include <utility>

#include "weft/runtime/as_task.hpp"
#include "weft/runtime/current.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/task.hpp"

namespace weft {
namespace detail {

/// A cancel scope that cancels itself with Errc::timed_out at an instant.
class DeadlineScope final : private Timer {
 public:
  DeadlineScope(Reactor& reactor, CancelScope* parent, Instant deadline) noexcept
      : reactor_(reactor), scope_(parent) {
    if (deadline == kNever) return;
    const bool passed = deadline <= reactor_.clock().now();
    reactor_.timers().arm(*this, passed ? Instant::min() : deadline);
  }
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;
  ~DeadlineScope() { reactor_.timers().cancel(*this); }

  [[nodiscard]] CancelScope& scope() noexcept { return scope_; }

 private:
  void on_timer() noexcept override { scope_.cancel(Errc::timed_out); }

  Reactor& reactor_;
  CancelScope scope_;
};

}  // namespace detail

/// Awaits `task`; when it has not ended at `deadline` every wait below it is asked to end with Errc::timed_out. The
/// result comes when the task has really ended: it is the task's value if it made it all the same.
template <typename T>
Task<T> with_deadline(Instant deadline, Task<T> task) {
  PromiseBase& self = co_await detail::this_coroutine();
  CancelScope* const outer = self.scope;
  detail::DeadlineScope inner(*self.reactor, outer, deadline);
  // Nobody reads this frame's scope after the task has ended: the frame itself ends then.
  self.scope = &inner.scope();
  if constexpr (std::is_void_v<T>) {
    co_await std::move(task);
  } else {
    T value = co_await std::move(task);
    co_return std::move(value);
  }
}

/// The same, counted from now; zero or less gives the operation no time to wait, Duration::max() no limit.
template <typename T>
Task<T> with_deadline(Duration timeout, Task<T> task) {
  PromiseBase& self = co_await detail::this_coroutine();
  const Instant deadline = saturating_add(self.reactor->clock().now(), timeout);
  Task<T> limited = with_deadline(deadline, std::move(task));
  if constexpr (std::is_void_v<T>) {
    co_await std::move(limited);
  } else {
    T value = co_await std::move(limited);
    co_return std::move(value);
  }
}

/// The same for a call: `co_await with_deadline(50ms, world.recv(3, tag, bytes))`. `limit` is an Instant or a Duration.
template <typename Limit, AwaitableCall C>
Task<call_result_t<C>> with_deadline(Limit limit, C call) {
  return with_deadline(limit, as_task(std::move(call)));
}

}  // namespace weft
