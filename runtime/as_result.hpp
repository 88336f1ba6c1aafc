// as_result: a failure as a value instead of an exception.
#pragma once

#include <type_traits>
#include <utility>

#include "weft/runtime/as_task.hpp"
#include "weft/runtime/result.hpp"
#include "weft/runtime/task.hpp"

namespace weft {

/// Awaits `task` and gives its value, or the weft::Error it threw. Other exceptions pass through.
template <typename T>
Task<Result<T>> as_result(Task<T> task) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      co_return Result<void>();
    } else {
      T value = co_await std::move(task);
      co_return Result<T>(std::move(value));
    }
  } catch (Error& error) {
    co_return Result<T>(std::move(error));
  }
}

/// The same for a call: `co_await as_result(world.recv(3, tag, bytes))`.
template <AwaitableCall C>
Task<Result<call_result_t<C>>> as_result(C call) {
  return as_result(as_task(std::move(call)));
}

}  // namespace weft
