// as_task: a call that can be awaited, as a task that can be kept, limited or given to a nursery.
//
// A call (`world.recv(3, tag, bytes)`) is a description of an operation: it can be moved, and starts when it is
// awaited. What it becomes then, the awaiter, cannot be moved.
#pragma once

#include <concepts>
#include <utility>

#include "weft/runtime/task.hpp"

namespace weft {

template <typename T>
inline constexpr bool is_task = false;
template <typename T>
inline constexpr bool is_task<Task<T>> = true;

/// A movable object that is no task and makes its awaiter by operator co_await.
template <typename C>
concept AwaitableCall = std::move_constructible<C> && !is_task<C> && requires(C call) { call.operator co_await(); };

/// What `co_await call` gives.
template <AwaitableCall C>
using call_result_t = decltype(std::declval<C>().operator co_await().await_resume());

/// The task of awaiting `call`. Lifetime: what the call refers to (its buffer), until the task is done.
template <AwaitableCall C>
Task<call_result_t<C>> as_task(C call) {
  co_return co_await std::move(call);
}

}  // namespace weft
