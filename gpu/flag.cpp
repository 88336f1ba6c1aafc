#include "weft/gpu/flag.hpp"

#include <thread>

namespace weft::gpu {

// No wake-up is lost. A reactor: the writer stores the word and then calls wake(), which fences and looks at the
// sleep word; the reactor sets the sleep word, fences, and then looks at the flag in prepare_to_block(). One of them
// sees the other. A thread in block_until(): atomic wait and notify give the same guarantee.
void Flag::store(std::uint64_t value) noexcept {
  Reactor* const reader = reader_;  // whoever sees the value may destroy the flag, so this comes first
  if (reader != nullptr) {
    stored_at_ns_.store(reader->clock().now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  word_.store(value, std::memory_order_release);
  word_.notify_all();  // uses the address only
  if (reader != nullptr) reader->wake();
}

void Flag::block_until(std::uint64_t value) const noexcept {
  std::uint64_t seen = this->value();
  while (seen < value) {
    if (silent_) {
      std::this_thread::yield();  // nobody would wake it
    } else {
      word_.wait(seen, std::memory_order_acquire);
    }
    seen = this->value();
  }
}

void FlagWait::await_resume() const {
  throw_if_failed(code(), "flag");
  if (flag_.aborted()) throw Error(Errc::closed, "flag", "the stream that was to write it has failed");
}

bool FlagWait::list() noexcept {
  poller_.waits_.push_back(*this);
  return true;
}

bool FlagPoller::poll() noexcept {
  bool progress = false;
  for (FlagWait* wait = waits_.first(); wait != nullptr;) {
    FlagWait* const next = waits_.next(*wait);
    if (wait->flag_.reached(wait->value_)) {
      waits_.erase(*wait);
      wait->complete();
      progress = true;
    }
    wait = next;
  }
  return progress;
}

bool FlagPoller::prepare_to_block() noexcept {
  for (FlagWait* wait = waits_.first(); wait != nullptr; wait = waits_.next(*wait)) {
    if (wait->flag_.silent() || wait->flag_.reached(wait->value_)) return false;
  }
  return true;
}

}  // namespace weft::gpu
