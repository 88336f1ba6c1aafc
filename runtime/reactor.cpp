#include "weft/runtime/reactor.hpp"

#include <sched.h>

#include <algorithm>

namespace weft {
namespace {

// A burst of ready coroutines must not keep pollers waiting; 256 resumptions take some 10 us.
constexpr int kReadyBudget = 256;
// One look at the io engine and at the timers in so many busy turns: it costs more than a turn that finds nothing.
constexpr std::uint64_t kTurnsPerIoPoll = 16;
constexpr std::size_t kTimerBudget = 256;

constinit thread_local Reactor* current_reactor = nullptr;

inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

namespace detail {

constinit thread_local std::uintptr_t transfer_stack_limit = 0;

void resume_from_loop(Reactor& reactor, std::coroutine_handle<> next) noexcept { reactor.resume_next_ = next; }

}  // namespace detail

Reactor::Reactor(const ReactorOptions& options)
    : clock_(options.clock != nullptr ? options.clock : &steady_clock()),
      idle_(options.idle, *clock_),
      timers_(clock_->now()),
      io_(make_io_engine(options.io, &io_notice_)),
      event_fd_(make_event_fd()),
      wake_handler_(event_fd_.get()) {
  const Outcome added = io_->add(event_fd_.get(), wake_handler_);
  if (!added.ok()) throw Error(added.code, "reactor", "cannot watch its own eventfd", kNoRank, added.native);
}

Reactor::~Reactor() {
  while (posters_.load(std::memory_order_acquire) != 0) ::sched_yield();  // a few instructions, or one write
  WEFT_ASSERT(ready_head_ == nullptr, "a reactor was destroyed with coroutines on its ready list");
  WEFT_ASSERT(guests_ == 0, "a reactor was destroyed while tasks submitted to it were running");
  WEFT_ASSERT(timers_.armed() == 0, "a reactor was destroyed with armed timers");
  WEFT_ASSERT(pollers_.empty(), "a reactor was destroyed with pollers");
  WEFT_ASSERT(mailbox_.empty(), "a reactor was destroyed with undelivered mail");
  io_->remove(event_fd_.get());
  if (current_reactor == this) current_reactor = nullptr;
}

Reactor* Reactor::current() noexcept { return current_reactor; }

void Reactor::add_poller(Poller& poller) { pollers_.push_back(&poller); }

void Reactor::remove_poller(Poller& poller) noexcept { std::erase(pollers_, &poller); }

void Reactor::run_root(PromiseBase& root, CancelScope& scope) {
  WEFT_ASSERT(!running_, "Reactor::run: called while the reactor runs");
  WEFT_ASSERT(current_reactor == nullptr || current_reactor == this, "Reactor::run: this thread has another reactor");
  WEFT_ASSERT(owner_ == nullptr || owner_ == &current_reactor, "Reactor::run: this reactor belongs to another thread");
  current_reactor = this;
  owner_ = &current_reactor;
  running_ = true;
  root_finished_ = false;
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  detail::transfer_stack_limit = frame > detail::kTransferStackBytes ? frame - detail::kTransferStackBytes : 0;
  root.on_finished_context = this;
  root.on_finished = [](PromiseBase& finished) noexcept -> std::coroutine_handle<> {
    static_cast<Reactor*>(finished.on_finished_context)->root_finished_ = true;
    return std::noop_coroutine();
  };
  start(root, &scope);
  while (!finished()) {
    if (turn()) {
      idle_.on_progress();
    } else if (!finished()) {
      idle();
    }
  }
  running_ = false;
  detail::transfer_stack_limit = 0;
}

void Reactor::resume(std::coroutine_handle<> coroutine) noexcept {
  coroutine.resume();
  while (resume_next_) std::exchange(resume_next_, {}).resume();
  if (finished_ != nullptr) {
    PromiseBase* ended = std::exchange(finished_, nullptr);
    void* context = ended->on_finished_context;
    ended->self.destroy();
    after_finished_(context);
  }
}

bool Reactor::resume_ready() noexcept {
  int budget = kReadyBudget;
  while (ready_head_ != nullptr && budget-- > 0) {
    PromiseBase* coroutine = ready_head_;
    ready_head_ = coroutine->next_ready;
    if (ready_head_ == nullptr) ready_tail_ = &ready_head_;
    ++counters_.resumed;
    resume(coroutine->self);
  }
  return budget != kReadyBudget;
}

bool Reactor::turn() noexcept {
  const std::uint64_t turn_number = counters_.turns++;
  bool progress = mailbox_.deliver_all();
  progress |= resume_ready();
  if (finished()) return true;
  for (std::size_t i = 0; i < pollers_.size(); ++i) progress |= pollers_[i]->poll();
  if (turn_number % kTurnsPerIoPoll == 0) {
    progress |= io_->poll();
    if (timers_.armed() != 0) progress |= timers_.advance(clock_->now(), kTimerBudget);
  }
  return progress;
}

void Reactor::idle() noexcept {
  switch (idle_.on_idle_turn()) {
    case IdleStep::spin: cpu_pause(); return;
    case IdleStep::yield: ::sched_yield(); return;
    case IdleStep::block: block(); return;
  }
}

void Reactor::block() noexcept {
  go_to_sleep(sleep_word_);
  std::size_t prepared = 0;
  while (prepared < pollers_.size() && pollers_[prepared]->prepare_to_block()) ++prepared;
  const bool nothing_to_do = prepared == pollers_.size() && mailbox_.empty() && ready_head_ == nullptr;
  if (nothing_to_do) {
    Duration timeout = Duration::max();
    if (timers_.armed() != 0) {
      const Instant deadline = timers_.next_deadline();
      if (deadline != kNever) timeout = std::max(Duration::zero(), deadline - clock_->now());
    }
    ++counters_.blocked;
    io_->wait(timeout);
  }
  stay_awake(sleep_word_);
  for (std::size_t i = 0; i < prepared; ++i) pollers_[i]->after_block();
  if (timers_.armed() != 0) timers_.advance(clock_->now(), kTimerBudget);
}

}  // namespace weft
