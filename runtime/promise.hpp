// What every Weft coroutine has in its frame: where it runs, in which cancel scope, and who waits for it.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>

#include "weft/runtime/cancellation.hpp"
#include "weft/runtime/frame_pool.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft {

class Reactor;

/// Base of every promise. Doubles as the coroutine's node on its reactor's ready list: a coroutine waits for at most
/// one thing, so one link is enough and making it ready allocates nothing.
struct PromiseBase {
  PromiseBase() noexcept = default;
  PromiseBase(const PromiseBase&) = delete;
  PromiseBase& operator=(const PromiseBase&) = delete;

  std::coroutine_handle<> self;           ///< this coroutine
  PromiseBase* parent = nullptr;          ///< the coroutine that awaits this one; null for a root or a nursery child
  PromiseBase* next_ready = nullptr;      ///< link of the reactor's ready list
  Reactor* reactor = nullptr;             ///< set when the coroutine starts, never changed
  CancelScope* scope = nullptr;           ///< the scope its waits are listed in
  /// Called when the coroutine has finished, in place of resuming `parent`; names who resumes next.
  std::coroutine_handle<> (*on_finished)(PromiseBase& finished) noexcept = nullptr;
  void* on_finished_context = nullptr;    ///< for on_finished: a nursery, a reactor

  static void* operator new(std::size_t bytes) { return FramePool::allocate(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept { FramePool::deallocate(frame, bytes); }
};

/// A coroutine that Weft's awaiters can suspend.
template <typename P>
concept WeftPromise = std::derived_from<P, PromiseBase>;

}  // namespace weft
