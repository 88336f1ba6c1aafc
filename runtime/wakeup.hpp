// Ends a reactor's blocking wait from another thread or process.
//
// A word in memory (in this process, or in shared memory when peers in other processes must see it) says whether the
// reactor sleeps; an eventfd, watched by its io engine, wakes it. A producer publishes its work first and then calls
// wake_if_asleep(); the sleeper sets the word first and then looks for work once more. Both sides put a full fence
// between their two steps, so at least one of them sees the other: a wake-up cannot be lost.
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/runtime/unique_fd.hpp"

namespace weft {

/// The word. Lives wherever its producers can see it.
struct SleepWord {
  std::atomic<std::uint32_t> asleep{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Producer's side: after the work is visible. `event_fd` is the sleeper's eventfd (or a duplicate). Any thread or
/// process. A system call only when the sleeper sleeps.
inline void wake_if_asleep(const SleepWord& word, int event_fd) noexcept;

/// Writes to an eventfd; a full counter is as good as a write.
void ring_event_fd(int event_fd) noexcept;
/// Empties an eventfd.
void drain_event_fd(int event_fd) noexcept;

/// Makes a non-blocking, close-on-exec eventfd. Errors: throws Error(exhausted).
[[nodiscard]] UniqueFd make_event_fd();

inline void wake_if_asleep(const SleepWord& word, int event_fd) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in go_to_sleep()
  if (word.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]] ring_event_fd(event_fd);
}

/// Sleeper's side, before it looks for work a last time.
inline void go_to_sleep(SleepWord& word) noexcept {
  word.asleep.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in wake_if_asleep()
}
inline void stay_awake(SleepWord& word) noexcept { word.asleep.store(0, std::memory_order_relaxed); }

}  // namespace weft
