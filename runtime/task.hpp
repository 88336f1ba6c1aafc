// Task<T>: the coroutine type of Weft.
//
// Lazy: nothing runs before it is awaited (or given to a Nursery or a Reactor). Move-only, awaited once. It starts and
// stays on the reactor of the coroutine that awaits it, in that coroutine's cancel scope. A finished child resumes its
// parent directly; frames come from the thread's FramePool.
//
// Lifetime: arguments are copied or moved into the frame; what they point to is the caller's until the task is done.
// Destroying a task that has not been awaited just frees it. Destroying one in flight aborts: somebody else's memory
// may be in use below it.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/runtime/assert.hpp"
#include "weft/runtime/detail/transfer.hpp"
#include "weft/runtime/promise.hpp"

namespace weft {

template <typename T = void>
class Task;

namespace detail {

/// Hands control to whoever waits for the coroutine that has just finished.
struct FinalAwaiter {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> finished) const noexcept {
    PromiseBase& promise = finished.promise();
    if (promise.on_finished != nullptr) [[unlikely]] return promise.on_finished(promise);
    return transfer(promise.reactor, promise.parent->self);
  }
  void await_resume() const noexcept {}
};

template <typename T>
struct TaskPromiseBase : PromiseBase {
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
};

template <typename T>
struct TaskPromise final : TaskPromiseBase<T> {
  std::variant<std::monostate, T, std::exception_ptr> outcome;

  Task<T> get_return_object() noexcept;
  template <typename U>
    requires std::convertible_to<U&&, T>
  void return_value(U&& value) {
    outcome.template emplace<1>(std::forward<U>(value));
  }
  void unhandled_exception() noexcept { outcome.template emplace<2>(std::current_exception()); }

  /// What ended the task, or null. For those who own a task without awaiting it.
  [[nodiscard]] std::exception_ptr take_exception() noexcept {
    return outcome.index() == 2 ? std::get<2>(std::move(outcome)) : nullptr;
  }
  T take() {
    if (outcome.index() == 2) std::rethrow_exception(std::get<2>(std::move(outcome)));
    WEFT_ASSERT(outcome.index() == 1, "a task was read before it finished");
    return std::get<1>(std::move(outcome));
  }
};

template <>
struct TaskPromise<void> final : TaskPromiseBase<void> {
  std::exception_ptr exception;

  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { exception = std::current_exception(); }

  [[nodiscard]] std::exception_ptr take_exception() noexcept { return std::move(exception); }
  void take() {
    if (exception != nullptr) std::rethrow_exception(std::move(exception));
  }
};

}  // namespace detail

/// See the top of the file. T is void, or a movable object type.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() noexcept = default;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() { destroy(); }

  [[nodiscard]] explicit operator bool() const noexcept { return bool(handle_); }

  /// Awaits the task: gives its value, or rethrows what ended it.
  [[nodiscard]] auto operator co_await() && noexcept {
    WEFT_ASSERT(handle_, "Task: an empty task was awaited");
    WEFT_ASSERT(!started(), "Task: awaited twice");
    return Awaiter{handle_};
  }

  /// The frame, for the few that start tasks themselves: Reactor, Nursery, when_all.
  [[nodiscard]] Handle handle() const noexcept { return handle_; }
  /// Gives up the frame; the caller destroys it after it has finished.
  [[nodiscard]] Handle release() noexcept { return std::exchange(handle_, {}); }

 private:
  struct Awaiter {
    Handle child;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <WeftPromise P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> waiting) const noexcept {
      PromiseBase& parent = waiting.promise();
      PromiseBase& promise = child.promise();
      promise.parent = &parent;
      promise.reactor = parent.reactor;
      promise.scope = parent.scope;
      return detail::transfer(parent.reactor, child);
    }
    T await_resume() const { return child.promise().take(); }
  };

  [[nodiscard]] bool started() const noexcept { return handle_.promise().reactor != nullptr; }

  void destroy() noexcept {
    if (!handle_) return;
    WEFT_ASSERT(!started() || handle_.done(), "Task: destroyed in flight; await it, or let a Nursery own it");
    std::exchange(handle_, {}).destroy();
  }

  Handle handle_;
};

namespace detail {

template <typename T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  const auto handle = std::coroutine_handle<TaskPromise>::from_promise(*this);
  this->self = handle;
  return Task<T>(handle);
}

inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  const auto handle = std::coroutine_handle<TaskPromise>::from_promise(*this);
  this->self = handle;
  return Task<void>(handle);
}

}  // namespace detail

}  // namespace weft
