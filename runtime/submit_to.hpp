// submit_to: runs a task on another reactor and awaits it here. The one way across.
//
//     int n = co_await weft::submit_to(other, count_words, std::move(text));
//
// The function and its arguments move to the other thread, the result or exception moves back; nothing is shared
// between. A cancel is passed on and the await ends when the other task has ended.
#pragma once

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

/// The travel of one call: there (run), back (done), and a cancel there (cancel) with its receipt (receipt).
///
/// It lives in the caller's frame and must not end while any of its items is in a mailbox. So it completes when `done`
/// has come back, and if a cancel was sent, its receipt too: the receipt says that the cancel is out of the other
/// mailbox. Fields are written on one thread at a time, in the order of the items; mailboxes order them.
class CrossReactorCall : public Wait {
 protected:
  explicit CrossReactorCall(Reactor& target) noexcept : target_(target), run_(this), done_(this), cancel_(this), receipt_(this) {}
  ~CrossReactorCall() = default;

  [[nodiscard]] bool depart(PromiseBase& waiter) noexcept;
  /// On the target's thread, in the end of its task: sends the call home.
  void return_home() noexcept { origin_->post(done_); }
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
  void arrive_run() noexcept { start_on_target(); }
  void arrive_done() noexcept;
  void arrive_cancel() noexcept;
  void arrive_receipt() noexcept;

  Reactor& target_;
  Reactor* origin_ = nullptr;
  CancelScope target_scope_;       ///< target's thread only
  Errc cancel_reason_ = Errc::ok;  ///< set before cancel_ is posted
  bool cancel_out_ = false;        ///< origin's thread only, like the next
  bool home_ = false;
  Item<&CrossReactorCall::arrive_run> run_;
  Item<&CrossReactorCall::arrive_done> done_;
  Item<&CrossReactorCall::arrive_cancel> cancel_;
  Item<&CrossReactorCall::arrive_receipt> receipt_;
};

template <typename T, typename Function, typename... Arguments>
class [[nodiscard]] SubmitOperation final : public CrossReactorCall {
 public:
  SubmitOperation(Reactor& target, Function function, Arguments... arguments)
      : CrossReactorCall(target), call_(std::tuple<Function, Arguments...>(std::move(function), std::move(arguments)...)) {}

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
      auto& promise = task.release().promise();
      promise.on_finished_context = this;
      promise.on_finished = &finished;
      target().start(promise, &target_scope());
    } catch (...) {
      outcome_.template emplace<2>(std::current_exception());
      return_home();
    }
  }

  static std::coroutine_handle<> finished(PromiseBase& base) noexcept {
    auto& self = *static_cast<SubmitOperation*>(base.on_finished_context);
    auto& promise = static_cast<TaskPromise<T>&>(base);
    if (std::exception_ptr failure = promise.take_exception()) {
      self.outcome_.template emplace<2>(std::move(failure));
    } else if constexpr (!std::is_void_v<T>) {
      self.outcome_.template emplace<1>(promise.take());
    }
    self.target().destroy_finished(base);
    self.return_home();  // last: the caller may be gone when this returns
    return std::noop_coroutine();
  }

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
/// Task<T>; arguments are moved. `target` must keep running until the call has ended.
/// Errors: what the task throws; cancelled or timed_out before it was sent.
/// Cost: no allocation beyond the task's frame; one atomic exchange each way, a system call where the target sleeps.
template <typename Function, typename... Arguments>
[[nodiscard]] auto submit_to(Reactor& target, Function function, Arguments... arguments) {
  using T = typename detail::TaskValue<decltype(function(std::move(arguments)...))>::type;
  return detail::SubmitOperation<T, Function, Arguments...>(target, std::move(function), std::move(arguments)...);
}

}  // namespace weft
