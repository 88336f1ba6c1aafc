// Passing control from one coroutine to the next without growing the stack: the only place that knows how.
//
// clang turns a handle returned from await_suspend into a tail call at every level. g++ does so from -O2 on only (PR
// 100897), not under the sanitizers (PR 94794), and no macro tells which it is: there a loop over tasks that complete
// at once would overflow the stack. So where the tail call is not certain, each transfer looks at how deep the stack
// has become since the reactor's loop; too deep, the handle goes to the loop, which resumes it from its own frame.
#pragma once

#include <coroutine>
#include <cstdint>

#if defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WEFT_DETAIL_SURE_TAIL_CALLS 0
#else
#define WEFT_DETAIL_SURE_TAIL_CALLS 1
#endif
#else
#define WEFT_DETAIL_SURE_TAIL_CALLS 0
#endif

namespace weft {
class Reactor;
}

namespace weft::detail {

/// What the stack may grow below the reactor's loop before a transfer goes through it: small against any thread's
/// stack, and some 100 frames of -O0 code.
inline constexpr std::uintptr_t kTransferStackBytes = 16384;

/// Transfers from frames below this address go through the loop; 0 on threads without a running reactor.
// initial-exec: one load, also from within a shared library.
extern constinit thread_local std::uintptr_t transfer_stack_limit [[gnu::tls_model("initial-exec")]];

/// Sets the coroutine that `reactor`'s loop resumes next. Thread: the reactor's.
void resume_from_loop(Reactor& reactor, std::coroutine_handle<> next) noexcept;

/// The result of an await_suspend that hands over to `next`.
[[nodiscard]] inline std::coroutine_handle<> transfer([[maybe_unused]] Reactor* reactor,
                                                      std::coroutine_handle<> next) noexcept {
#if WEFT_DETAIL_SURE_TAIL_CALLS
  return next;
#else
  if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) >= transfer_stack_limit) [[likely]]
    return next;
  resume_from_loop(*reactor, next);
  return std::noop_coroutine();
#endif
}

}  // namespace weft::detail
