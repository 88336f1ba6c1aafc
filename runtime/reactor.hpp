// Reactor: one thread's loop. It resumes coroutines that are ready, polls what must be polled, fires timers, and sleeps
// when there is nothing to do.
//
// A turn: mailbox, ready list (bounded), pollers, now and then the io engine and the timers, idle. Nothing in a turn
// blocks but the one wait at its end.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/clock.hpp"
#include "weft/runtime/idle_policy.hpp"
#include "weft/runtime/io_engine.hpp"
#include "weft/runtime/mailbox.hpp"
#include "weft/runtime/poller.hpp"
#include "weft/runtime/promise.hpp"
#include "weft/runtime/task.hpp"
#include "weft/runtime/timer_wheel.hpp"
#include "weft/runtime/wakeup.hpp"

namespace weft {

struct ReactorOptions {
  Clock* clock = nullptr;  ///< null: the steady clock. Must outlive the reactor.
  IdlePolicy idle{};
  IoEngineKind io = IoEngineKind::automatic;
};

/// What a reactor has done since it was made. Thread: the reactor's.
struct ReactorCounters {
  std::uint64_t turns = 0;
  std::uint64_t resumed = 0;  ///< coroutines taken off the ready list
  std::uint64_t blocked = 0;  ///< waits in the io engine
};

/// See the top of the file. Pinned; belongs to the thread that calls run(), and dies on it or after it.
class Reactor {
 public:
  /// Errors: throws Error(exhausted | unsupported | bad_environment) when no io engine can be made.
  explicit Reactor(const ReactorOptions& options = ReactorOptions());
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  /// Runs `root` and everything below it to its end on the calling thread; gives its value or rethrows its exception.
  /// Tasks that other reactors have submitted here are run to their end as well. The thread is this reactor's from then
  /// on: run() may be called again, on this thread only, and not from inside a task.
  template <typename T>
  T run(Task<T> root) {
    WEFT_ASSERT(root, "Reactor::run: an empty task");
    WEFT_ASSERT(root.handle().promise().reactor == nullptr, "Reactor::run: the task was started before");
    CancelScope scope;
    PromiseBase& promise = root.handle().promise();
    run_root(promise, scope);
    return root.handle().promise().take();
  }

  /// The reactor that runs on this thread, or null.
  [[nodiscard, gnu::noinline]] static Reactor* current() noexcept;

  /// Appends a suspended coroutine to the ready list. Thread: the reactor's.
  void make_ready(PromiseBase& coroutine) noexcept {
    WEFT_DEBUG_ASSERT(current() == this, "a coroutine was made ready from a thread that is not its reactor's");
    coroutine.next_ready = nullptr;
    *ready_tail_ = &coroutine;
    ready_tail_ = &coroutine.next_ready;
  }

  /// Starts a coroutine whose promise knows no reactor yet: it becomes ready, in `scope`.
  void start(PromiseBase& coroutine, CancelScope* scope) noexcept {
    coroutine.reactor = this;
    coroutine.scope = scope;
    make_ready(coroutine);
  }

  /// From on_finished, which then returns std::noop_coroutine(): destroys the coroutine once its last resumption has
  /// returned, then calls `then` with its on_finished_context. Thread: the reactor's.
  void destroy_finished(PromiseBase& coroutine, void (*then)(void* context) noexcept) noexcept {
    finished_ = &coroutine;
    after_finished_ = then;
  }

  /// A guest is a task that another reactor has submitted: run() does not return before it has left.
  void guest_arrived() noexcept { ++guests_; }
  void guest_left() noexcept {
    if (--guests_ == 0 && waits_for_guests_ != nullptr) make_ready(*std::exchange(waits_for_guests_, nullptr));
  }
  [[nodiscard]] std::size_t guests() const noexcept { return guests_; }
  /// Makes `coroutine`, the only one that waits for this, ready when the last guest leaves.
  void wait_for_guests(PromiseBase& coroutine) noexcept { waits_for_guests_ = &coroutine; }

  /// Any thread: `item` is delivered on the reactor's thread, which is woken if it sleeps.
  void post(MailboxItem& item) noexcept {
    posters_.fetch_add(1, std::memory_order_relaxed);
    mailbox_.push(item);
    wake_if_asleep(sleep_word_, event_fd_.get());
    posters_.fetch_sub(1, std::memory_order_release);
  }
  /// Any thread: ends a blocking wait, so that pollers are looked at. Call it after the work is visible.
  void wake() noexcept {
    posters_.fetch_add(1, std::memory_order_relaxed);
    wake_if_asleep(sleep_word_, event_fd_.get());
    posters_.fetch_sub(1, std::memory_order_release);
  }

  /// A poller must stay in place until it is removed. From coroutines, not from inside a poller or an IoHandler.
  void add_poller(Poller& poller);
  void remove_poller(Poller& poller) noexcept;

  [[nodiscard]] Clock& clock() noexcept { return *clock_; }
  [[nodiscard]] TimerWheel& timers() noexcept { return timers_; }
  [[nodiscard]] IoEngine& io() noexcept { return *io_; }
  [[nodiscard]] const IdlePolicy& idle_policy() const noexcept { return idle_.policy(); }
  [[nodiscard]] const ReactorCounters& counters() const noexcept { return counters_; }
  /// One sentence when io_uring was refused; empty otherwise.
  [[nodiscard]] const std::string& io_notice() const noexcept { return io_notice_; }

 private:
  friend void detail::resume_from_loop(Reactor& reactor, std::coroutine_handle<> next) noexcept;

  /// Drains the eventfd that ended a wait.
  class WakeHandler final : public IoHandler {
   public:
    explicit WakeHandler(int event_fd) noexcept : event_fd_(event_fd) {}
    void on_io(IoEvents events) noexcept override {
      if (events.readable) drain_event_fd(event_fd_);
    }

   private:
    int event_fd_;
  };

  void run_root(PromiseBase& root, CancelScope& scope);
  /// Nothing is left of this run: neither its root, nor a guest, nor mail that may bring one.
  [[nodiscard]] bool finished() const noexcept { return root_finished_ && guests_ == 0 && mailbox_.empty(); }
  [[nodiscard]] bool resume_ready() noexcept;
  void resume(std::coroutine_handle<> coroutine) noexcept;
  [[nodiscard]] bool turn() noexcept;
  void idle() noexcept;
  void block() noexcept;

  Clock* clock_;
  IdleState idle_;
  TimerWheel timers_;
  std::string io_notice_;
  std::unique_ptr<IoEngine> io_;
  UniqueFd event_fd_;
  WakeHandler wake_handler_;
  Mailbox mailbox_;
  SleepWord sleep_word_;
  /// Threads inside post() or wake(). An item may end this reactor's last task while its poster still looks at the
  /// sleep word, so the destructor waits for this to be zero.
  std::atomic<std::uint32_t> posters_{0};
  PromiseBase* ready_head_ = nullptr;
  PromiseBase** ready_tail_ = &ready_head_;
  std::coroutine_handle<> resume_next_;
  /// The coroutine that has ended in the present resumption; at most one can, because it hands over to nobody.
  PromiseBase* finished_ = nullptr;
  void (*after_finished_)(void* context) noexcept = nullptr;
  PromiseBase* waits_for_guests_ = nullptr;
  std::size_t guests_ = 0;
  std::vector<Poller*> pollers_;
  ReactorCounters counters_;
  bool root_finished_ = false;
  bool running_ = false;
  const void* owner_ = nullptr;  ///< a thread-local address of the thread that called run()
};

}  // namespace weft
