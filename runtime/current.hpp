// Lets a coroutine look at itself without being suspended.
#pragma once

#include "weft/runtime/promise.hpp"

namespace weft::detail {

/// `PromiseBase& me = co_await this_coroutine();` The result is valid as long as the coroutine.
struct ThisCoroutine {
  PromiseBase* promise = nullptr;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
    promise = &coroutine.promise();
    return false;  // resumes at once
  }
  [[nodiscard]] PromiseBase& await_resume() const noexcept { return *promise; }
};

[[nodiscard]] inline ThisCoroutine this_coroutine() noexcept { return ThisCoroutine(); }

}  // namespace weft::detail
