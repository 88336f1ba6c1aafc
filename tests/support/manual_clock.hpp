// A clock that stands still until a test moves it, and a poller that moves it to the next timer when a reactor has
// nothing else to do: sleeps and deadlines then take no real time, and every run is the same.
#pragma once

#include "weft/runtime/assert.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/poller.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft::test {

/// Thread: one at a time.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Instant start = Instant(std::chrono::hours(1))) noexcept : now_(start) {}
  [[nodiscard]] Instant now() noexcept override { return now_; }
  void set(Instant now) noexcept { now_ = now; }
  void advance(Duration by) noexcept { now_ += by; }

 private:
  Instant now_;
};

/// A reactor in virtual time. A reactor that would sleep for ever is a deadlock of the test and aborts.
class VirtualTimeReactor final : private Poller {
 public:
  VirtualTimeReactor() : reactor_(options(clock)) { reactor_.add_poller(*this); }
  VirtualTimeReactor(const VirtualTimeReactor&) = delete;
  VirtualTimeReactor& operator=(const VirtualTimeReactor&) = delete;
  ~VirtualTimeReactor() { reactor_.remove_poller(*this); }

  [[nodiscard]] Reactor& operator*() noexcept { return reactor_; }
  [[nodiscard]] Reactor* operator->() noexcept { return &reactor_; }

  ManualClock clock;

 private:
  static ReactorOptions options(Clock& clock) {
    ReactorOptions result;
    result.clock = &clock;
    result.idle.mode = IdleMode::block;
    result.io = IoEngineKind::epoll;
    return result;
  }
  bool poll() noexcept override { return false; }
  bool prepare_to_block() noexcept override {
    const Instant next = reactor_.timers().next_deadline();
    WEFT_ASSERT(next != kNever, "deadlock in virtual time: nothing is ready and no timer is armed");
    if (next > clock.now()) clock.set(next);
    return false;
  }
  void after_block() noexcept override {}

  Reactor reactor_;
};

}  // namespace weft::test
