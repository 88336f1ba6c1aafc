// when_all: awaits several tasks that run concurrently.
//
//     auto results = co_await weft::when_all(load(), train());   // std::tuple; void tasks give std::monostate
//
// All tasks are always awaited. The first that throws cancels the others and is rethrown when all have ended.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/runtime/cancellation.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/task.hpp"

namespace weft {
namespace detail {

/// What the children of one when_all share.
class WhenAllState {
 public:
  explicit WhenAllState(PromiseBase& waiter) noexcept : waiter_(waiter), scope_(waiter.scope) {}

  template <typename T>
  void start(Task<T>& child) noexcept {
    WEFT_ASSERT(child, "when_all: an empty task");
    PromiseBase& promise = child.handle().promise();
    WEFT_ASSERT(promise.reactor == nullptr, "when_all: a task was started before");
    promise.on_finished_context = this;
    promise.on_finished = &child_finished<T>;
    ++running_;
    waiter_.reactor->start(promise, &scope_);
  }

  void rethrow_failure() {
    if (failure_ != nullptr) std::rethrow_exception(std::move(failure_));
  }

 private:
  template <typename T>
  static std::coroutine_handle<> child_finished(PromiseBase& finished) noexcept {
    auto& self = *static_cast<WhenAllState*>(finished.on_finished_context);
    if (std::exception_ptr failure = static_cast<TaskPromise<T>&>(finished).take_exception()) {
      if (self.failure_ == nullptr) self.failure_ = std::move(failure);
      self.scope_.cancel();
    }
    if (--self.running_ != 0) return std::noop_coroutine();
    return transfer(self.waiter_.reactor, self.waiter_.self);
  }

  PromiseBase& waiter_;
  CancelScope scope_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

/// The value of a finished task; std::monostate for Task<void>.
template <typename T>
[[nodiscard]] auto value_of(Task<T>& task) {
  if constexpr (std::is_void_v<T>) {
    return std::monostate();
  } else {
    return task.handle().promise().take();
  }
}

/// Where a child ends: `tasks` outlives the suspension because this awaiter lives in the waiting frame.
template <typename... Ts>
class WhenAllTuple {
 public:
  explicit WhenAllTuple(Task<Ts>... tasks) noexcept : tasks_(std::move(tasks)...) {}

  [[nodiscard]] bool await_ready() const noexcept { return sizeof...(Ts) == 0; }
  template <WeftPromise P>
  void await_suspend(std::coroutine_handle<P> waiting) noexcept {
    state_.emplace(waiting.promise());
    std::apply([this](auto&... task) { (state_->start(task), ...); }, tasks_);
  }
  auto await_resume() {
    if (state_.has_value()) state_->rethrow_failure();
    return std::apply([](auto&... task) { return std::tuple<decltype(value_of(task))...>{value_of(task)...}; }, tasks_);
  }

 private:
  std::tuple<Task<Ts>...> tasks_;
  std::optional<WhenAllState> state_;
};

template <typename T>
class WhenAllVector {
 public:
  explicit WhenAllVector(std::vector<Task<T>> tasks) noexcept : tasks_(std::move(tasks)) {}

  [[nodiscard]] bool await_ready() const noexcept { return tasks_.empty(); }
  template <WeftPromise P>
  void await_suspend(std::coroutine_handle<P> waiting) noexcept {
    state_.emplace(waiting.promise());
    for (Task<T>& task : tasks_) state_->start(task);
  }
  auto await_resume() {
    if (state_.has_value()) state_->rethrow_failure();
    if constexpr (!std::is_void_v<T>) {
      std::vector<T> values;
      values.reserve(tasks_.size());
      for (Task<T>& task : tasks_) values.push_back(value_of(task));
      return values;
    }
  }

 private:
  std::vector<Task<T>> tasks_;
  std::optional<WhenAllState> state_;
};

}  // namespace detail

/// See the top of the file. The tasks start in order, in a later step of the reactor. Cost: no allocation beyond the
/// tasks' frames.
template <typename... Ts>
[[nodiscard]] detail::WhenAllTuple<Ts...> when_all(Task<Ts>... tasks) noexcept {
  return detail::WhenAllTuple<Ts...>(std::move(tasks)...);
}

/// The same for any number of tasks of one type: gives their values in order, nothing for Task<void>.
template <typename T>
[[nodiscard]] detail::WhenAllVector<T> when_all(std::vector<Task<T>> tasks) noexcept {
  return detail::WhenAllVector<T>(std::move(tasks));
}

}  // namespace weft
