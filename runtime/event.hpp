// Event: a flag that tasks of one reactor wait for.
#pragma once

#include "weft/runtime/wait.hpp"

namespace weft {

/// Set or not set; starts not set. Waiters resume in the order in which they came, in a later step of the reactor.
/// Pinned; must outlive its waiters. Thread: the reactor's (from elsewhere: submit_to).
class Event {
 public:
  class [[nodiscard]] Waiter final : public ListHook<Event>, public Wait {
   public:
    explicit Waiter(Event& event) noexcept : event_(event) {}
    [[nodiscard]] bool await_ready() const noexcept { return event_.set_; }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      if (!begin(waiting.promise())) return false;
      event_.waiters_.push_back(*this);
      return true;
    }
    void await_resume() const { throw_if_failed(code(), "event"); }

   private:
    friend class Event;
    void on_cancel(Errc reason) noexcept override {
      ListHook<Event>::unlink();
      complete(reason);
    }
    Event& event_;
  };

  /// Wakes everybody who waits and lets later waits pass, until reset().
  void set() noexcept {
    set_ = true;
    while (Waiter* waiter = waiters_.pop_front()) waiter->complete();
  }
  void reset() noexcept { set_ = false; }
  [[nodiscard]] bool is_set() const noexcept { return set_; }

  /// Returns at once when the event is set. Errors: cancelled, timed_out.
  [[nodiscard]] Waiter wait() noexcept { return Waiter(*this); }

 private:
  bool set_ = false;
  IntrusiveList<Waiter, Event> waiters_;
};

}  // namespace weft
