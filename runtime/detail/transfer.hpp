// Passing control from one coroutine to the next without growing the stack: the only place that knows how.
//
// With optimisation both compilers turn a handle returned from await_suspend into a tail call. Without it, and under
// the sanitizers, they do not (GCC PR 100897, PR 94794), and a loop over tasks that complete at once would overflow
// the stack. There the handle goes to the reactor's loop, which resumes it from its own frame.
#pragma once

#include <coroutine>

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEFT_TAIL_CALLS 1
#else
#define WEFT_TAIL_CALLS 0
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#undef WEFT_TAIL_CALLS
#define WEFT_TAIL_CALLS 0
#endif
#endif

namespace weft {
class Reactor;
}

namespace weft::detail {

/// Sets the coroutine that `reactor`'s loop resumes next. Thread: the reactor's.
void resume_from_loop(Reactor& reactor, std::coroutine_handle<> next) noexcept;

/// The result of an await_suspend that hands over to `next`.
[[nodiscard]] inline std::coroutine_handle<> transfer([[maybe_unused]] Reactor* reactor,
                                                      std::coroutine_handle<> next) noexcept {
#if WEFT_TAIL_CALLS
  return next;
#else
  resume_from_loop(*reactor, next);
  return std::noop_coroutine();
#endif
}

}  // namespace weft::detail
