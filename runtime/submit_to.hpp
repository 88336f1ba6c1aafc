// submit_to: runs a task on another reactor and awaits it here. The one way across.
//
//     int n = co_await weft::submit_to(other, count_words, std::move(text));
//
// The function and its arguments move to the other thread, the result or exception moves back; nothing is shared
// between. A cancel is passed on and the await ends when the other task has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/runtime/mailbox.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/wait.hpp"

namespace weft {
namespace detail {

/// The travel of one call: there (run), perhaps a cancel after it (cancel), and back (done).
///
/// It lives in the caller's frame and must not end while any of its items is in a mailbox. `done` is the last of them:
/// progress_ settles whether a cancel came before the end of the task, and if it did, the target waits for that item
/// before it sends `done`. Until then the call counts as a guest, so the target runs as long as anything may come.
/// Other fields are written on one thread at a time, in the order of the items; mailboxes order them.
class CrossReactorCall : public Wait {
 protected:
  explicit CrossReactorCall(Reactor& target) noexcept
      : target_(target), run_(this), done_(this), cancel_(this) {}
  ~CrossReactorCall() = default;

  [[nodiscard]] bool depart(PromiseBase& waiter) noexcept;
  /// On the target's thread, when its task is gone.
  void end_on_target() noexcept;
  [[nodiscard]] CancelScope& target_scope() noexcept { return target_scope_; }
  [[nodiscard]] Reactor& target() const noexcept { return target_; }

 private:
  template <void (CrossReactorCall::*Arrive)() noexcept>
  class Item final : public MailboxItem {
   public:
    explicit Item(CrossReactorCall* call) noexcept : call_(call) {}
    void deliver() noexcept override { (call_->*Arrive)(); }

   private:
    CrossReactorCall* call_;
  };

  /// On the target's thread: makes the task and starts it.
  virtual void start_on_target() noexcept = 0;
  void on_cancel(Errc reason) noexcept override;
  void arrive_run() noexcept;
  void arrive_cancel() noexcept;
  void arrive_done() noexcept { complete(); }
  void go_home() noexcept;

  Reactor& target_;
  Reactor* origin_ = nullptr;
  /// Bits: who came first decides what the other does. The origin sets kCancelSent, the target kEnded, by fetch_or.
  static constexpr std::uint8_t kCancelSent = 1;
  static constexpr std::uint8_t kEnded = 2;
  std::atomic<std::uint8_t> progress_{0};
  bool cancel_arrived_ = false;    ///< target's thread only, like the next two
  bool ended_ = false;
  CancelScope target_scope_;
  Errc cancel_reason_ = Errc::ok;  ///< set before cancel_ is posted
  Item<&CrossReactorCall::arrive_run> run_;
  Item<&CrossReactorCall::arrive_done> done_;
  Item<&CrossReactorCall::arrive_cancel> cancel_;
};

template <typename T, typename Function, typename... Arguments>
class [[nodiscard]] SubmitOperation final : public CrossReactorCall {
 public:
  SubmitOperation(Reactor& target, Function function, Arguments... arguments)
      : CrossReactorCall(target),
        call_(std::tuple<Function, Arguments...>(std::move(function), std::move(arguments)...)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    return depart(waiting.promise());
  }
  T await_resume() {
    throw_if_failed(code(), "submit_to");
    if (outcome_.index() == 2) std::rethrow_exception(std::get<2>(std::move(outcome_)));
    if constexpr (!std::is_void_v<T>) return std::get<1>(std::move(outcome_));
  }

 private:
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  void start_on_target() noexcept override {
    try {
      Task<T> task = std::apply(
          [](Function& function, Arguments&... arguments) { return function(std::move(arguments)...); }, *call_);
      call_.reset();
      WEFT_ASSERT(task, "submit_to: the function returned an empty task");
      auto& promise = task.release().promise();
      promise.on_finished_context = this;
      promise.on_finished = &finished;
      return target().start(promise, &target_scope());
    } catch (...) {
      outcome_.template emplace<2>(std::current_exception());
    }
    // Out of the handler, so that this thread holds the exception no longer when the caller gets it.
    call_.reset();
    end_on_target();
  }

  static std::coroutine_handle<> finished(PromiseBase& base) noexcept {
    auto& self = *static_cast<SubmitOperation*>(base.on_finished_context);
    auto& promise = static_cast<TaskPromise<T>&>(base);
    if (std::exception_ptr failure = promise.take_exception()) {
      self.outcome_.template emplace<2>(std::move(failure));
    } else if constexpr (!std::is_void_v<T>) {
      try {
        self.outcome_.template emplace<1>(promise.take());
      } catch (...) {
        self.outcome_.template emplace<2>(std::current_exception());
      }
    }
    self.target().destroy_finished(base, &frame_destroyed);
    return std::noop_coroutine();
  }
  static void frame_destroyed(void* context) noexcept { static_cast<SubmitOperation*>(context)->end_on_target(); }

  std::optional<std::tuple<Function, Arguments...>> call_;
  std::variant<std::monostate, Value, std::exception_ptr> outcome_;
};

template <typename T>
struct TaskValue;
template <typename T>
struct TaskValue<Task<T>> {
  using type = T;
};

}  // namespace detail

/// See the top of the file. `function` is a coroutine function (or an object without captured references) that returns
/// Task<T>; arguments are moved. `target` must be running; once the call has arrived its run() does not return before
/// the call has ended. The task's frame, arguments included, is gone before the await ends.
/// Errors: what the task throws; cancelled or timed_out before it was sent.
/// Cost: no allocation beyond the task's frame; a handful of atomic operations, a system call where a reactor sleeps.
template <typename Function, typename... Arguments>
[[nodiscard]] auto submit_to(Reactor& target, Function function, Arguments... arguments) {
  using T = typename detail::TaskValue<decltype(function(std::move(arguments)...))>::type;
  return detail::SubmitOperation<T, Function, Arguments...>(target, std::move(function), std::move(arguments)...);
}

}  // namespace weft
