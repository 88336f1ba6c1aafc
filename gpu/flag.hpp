// Flag: a 64-bit word in host memory through which streams and a reactor tell each other how far they are.
//
// One side stores growing sequence numbers, the other waits until the word has reached one. A stream stores in its own
// order (write_value) and can wait (wait_value); a task on the reactor awaits FlagPoller::until(). No call ever goes
// from a stream into the reactor: the reactor looks at the word, in every turn and once more before it sleeps. A writer
// on this machine's cores wakes the reactor after its store; a writer that cannot (a GPU) is "silent", and a reactor
// that waits for such a flag does not sleep.
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/runtime/clock.hpp"
#include "weft/runtime/poller.hpp"
#include "weft/runtime/wait.hpp"

namespace weft::gpu {

/// What a flag shows once its writer has failed: above every sequence number, so that nobody waits for ever. 2^62 and
/// not the largest number, because a GPU compares cyclically: it tests whether (int64_t)(word - value) >= 0.
inline constexpr std::uint64_t kFlagAborted = std::uint64_t{1} << 62;

/// See the top of the file. Starts at 0. Pinned; on a cache line of its own.
///
/// Lifetime: must outlive the streams whose work names it, or the end of that work. The reactor must outlive the
/// streams that store into its flags.
class alignas(64) Flag {
 public:
  /// A flag that no reactor waits for: between streams only, until attach().
  Flag() noexcept = default;
  explicit Flag(Reactor& reader) noexcept : reader_(&reader) {}
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

  /// Names the reactor that will wait for this flag. Before any stream knows the flag.
  void attach(Reactor& reader) noexcept { reader_ = &reader; }

  /// Makes `value` visible, with the time of its reactor's clock, and wakes who waits. Values must grow; kFlagAborted
  /// says that none will come any more. Any thread, one at a time. A system call only where somebody sleeps.
  void store(std::uint64_t value) noexcept;

  /// Any thread. Acquire: who sees a value sees what was done before it was stored.
  [[nodiscard]] std::uint64_t value() const noexcept { return word_.load(std::memory_order_acquire); }
  [[nodiscard]] bool reached(std::uint64_t value) const noexcept { return this->value() >= value; }
  [[nodiscard]] bool aborted() const noexcept { return reached(kFlagAborted); }

  /// When the last value was stored. Precondition: that value has been seen, and no other store runs.
  [[nodiscard]] Instant stored_at() const noexcept {
    return Instant(Duration(stored_at_ns_.load(std::memory_order_relaxed)));  // published by word_
  }

  /// Blocks the calling thread until the flag has reached `value`: for worker threads of streams, never for a reactor
  /// that has something to do. Spins for well under a microsecond, then sleeps on a futex; yields for a silent writer.
  void block_until(std::uint64_t value) const noexcept;

  /// Whether the writer stores into the word without waking anybody and without a time. Thread: the reactor's.
  [[nodiscard]] bool silent() const noexcept { return silent_; }
  void set_silent(bool silent) noexcept { silent_ = silent; }

  /// The word itself, for engines whose hardware stores into it.
  [[nodiscard]] std::atomic<std::uint64_t>& word() noexcept { return word_; }

 private:
  std::atomic<std::uint64_t> word_{0};
  std::atomic<std::int64_t> stored_at_ns_{0};
  Reactor* reader_ = nullptr;
  bool silent_ = false;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<std::uint64_t>) == 8);

class FlagPoller;

/// Suspends until a flag has reached a value.
class [[nodiscard]] FlagWait final : public Wait, public ListHook<FlagPoller> {
 public:
  FlagWait(FlagPoller& poller, const Flag& flag, std::uint64_t value) noexcept
      : poller_(poller), flag_(flag), value_(value) {}

  [[nodiscard]] bool await_ready() const noexcept { return flag_.reached(value_); }
  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    return begin(waiting.promise()) && list();
  }
  void await_resume() const;

 private:
  friend class FlagPoller;
  bool list() noexcept;
  void on_cancel(Errc reason) noexcept override {
    ListHook<FlagPoller>::unlink();
    complete(reason);
  }

  FlagPoller& poller_;
  const Flag& flag_;
  std::uint64_t value_;
};

/// Watches the flags that tasks wait for. One for each owner of flags; costs one call a turn while nobody waits.
/// Pinned; must outlive its waits. Thread: the reactor's.
class FlagPoller final : private Poller {
 public:
  explicit FlagPoller(Reactor& reactor) : reactor_(reactor) { reactor_.add_poller(*this); }
  FlagPoller(const FlagPoller&) = delete;
  FlagPoller& operator=(const FlagPoller&) = delete;
  ~FlagPoller() { reactor_.remove_poller(*this); }

  /// Returns at once when the flag is there already, whatever has been cancelled.
  /// Lifetime: the flag, until the await ends.
  /// Errors: cancelled, timed_out; closed when the flag was aborted. Cost: no allocation.
  [[nodiscard]] FlagWait until(const Flag& flag, std::uint64_t value) noexcept { return FlagWait(*this, flag, value); }

 private:
  friend class FlagWait;
  bool poll() noexcept override;
  bool prepare_to_block() noexcept override;
  void after_block() noexcept override {}

  Reactor& reactor_;
  IntrusiveList<FlagWait, FlagPoller> waits_;
};

}  // namespace weft::gpu
