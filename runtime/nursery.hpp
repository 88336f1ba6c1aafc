// Nursery: a block of the program that owns concurrent tasks. It ends when the last of them has ended.
//
//     co_await weft::with_nursery(body, arguments...);     // Task<void> body(Nursery& nursery, arguments...)
//
// body starts children with nursery.start(). with_nursery returns when body and all children have ended. The first of
// them that throws cancels the others, and its exception is what with_nursery throws; later ones are dropped. A cancel
// of the surrounding scope reaches body and children. There is no way to leave a child behind.
#pragma once

#include <exception>
#include <utility>

#include "weft/runtime/current.hpp"
#include "weft/runtime/task.hpp"
#include "weft/runtime/wait.hpp"

namespace weft {

/// See the top of the file. Made by with_nursery only. Thread: its reactor's.
class Nursery {
 public:
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  /// Starts a child; it first runs in a later step of the reactor. Its value, if any, is dropped.
  /// Cost: no allocation beyond the task's own frame.
  template <typename T>
  void start(Task<T> child) {
    WEFT_ASSERT(child, "Nursery::start: an empty task");
    WEFT_ASSERT(child.handle().promise().reactor == nullptr, "Nursery::start: the task was started before");
    auto& promise = child.release().promise();
    promise.on_finished_context = this;
    promise.on_finished = &child_finished<T>;
    ++running_;
    reactor_.start(promise, &scope_);
  }

  /// The same for a coroutine function: `arguments` are moved into the child's frame.
  template <typename Function, typename... Arguments>
  void start(Function function, Arguments... arguments) {
    start(function(std::move(arguments)...));
  }

  /// Asks body and children to end. Not a failure: with_nursery returns normally, unless somebody throws something
  /// other than an Error of Errc::cancelled, before or after.
  void cancel() noexcept {
    cancelled_here_ = true;
    scope_.cancel();
  }

  [[nodiscard]] CancelScope& scope() noexcept { return scope_; }
  [[nodiscard]] Reactor& reactor() const noexcept { return reactor_; }
  /// Children that have not ended.
  [[nodiscard]] std::size_t running() const noexcept { return running_; }

 private:
  template <typename Body, typename... Arguments>
  friend Task<void> with_nursery(Body body, Arguments... arguments);

  /// Suspends until no child runs. Not a cancellation point: children are always awaited. Whoever is told of an end
  /// may start another child before the joining coroutine runs, so it is awaited in a loop.
  class Join final : public Wait {
   public:
    explicit Join(Nursery& nursery) noexcept : nursery_(nursery) {}
    [[nodiscard]] bool await_ready() const noexcept { return nursery_.running_ == 0; }
    template <WeftPromise P>
    void await_suspend(std::coroutine_handle<P> waiting) noexcept {
      nursery_.join_ = this;
      begin_uncancellable(waiting.promise());
    }
    void await_resume() const noexcept {}

   private:
    friend class Nursery;
    void on_cancel(Errc /*reason*/) noexcept override {}
    Nursery& nursery_;
  };

  Nursery(Reactor& reactor, CancelScope* parent) noexcept : reactor_(reactor), scope_(parent) {}
  ~Nursery() { WEFT_ASSERT(running_ == 0, "Nursery: destroyed with running children"); }

  template <typename T>
  static std::coroutine_handle<> child_finished(PromiseBase& finished) noexcept {
    auto& self = *static_cast<Nursery*>(finished.on_finished_context);
    if (std::exception_ptr failure = static_cast<detail::TaskPromise<T>&>(finished).take_exception()) {
      self.fail(std::move(failure));
    }
    self.reactor_.destroy_finished(finished, &child_destroyed);
    return std::noop_coroutine();
  }
  static void child_destroyed(void* context) noexcept {
    auto& self = *static_cast<Nursery*>(context);
    if (--self.running_ == 0 && self.join_ != nullptr) std::exchange(self.join_, nullptr)->complete();
  }

  void fail(std::exception_ptr failure) noexcept;
  void rethrow_failure() {
    if (failure_ != nullptr) std::rethrow_exception(std::move(failure_));
  }

  Reactor& reactor_;
  CancelScope scope_;
  std::size_t running_ = 0;
  Join* join_ = nullptr;
  std::exception_ptr failure_;
  bool cancelled_here_ = false;
};

/// See the top of the file. `body` is a function, or an object without captured references, that returns Task<void>.
template <typename Body, typename... Arguments>
Task<void> with_nursery(Body body, Arguments... arguments) {
  PromiseBase& self = co_await detail::this_coroutine();
  CancelScope* const outer = self.scope;
  Nursery nursery(*self.reactor, outer);
  self.scope = &nursery.scope_;
  try {
    Task<void> running = body(nursery, std::move(arguments)...);
    co_await std::move(running);
  } catch (...) {
    nursery.fail(std::current_exception());
  }
  while (nursery.running_ != 0) co_await Nursery::Join(nursery);
  self.scope = outer;
  nursery.rethrow_failure();
}

}  // namespace weft
