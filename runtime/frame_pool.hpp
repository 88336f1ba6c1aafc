// Where coroutine frames come from: one SizeClassPool a thread, which is one a reactor.
//
// hot: a frame in steady state costs one thread-local load and one list step, inlined into the coroutine's ramp. The
// thread-local is a bare pointer without constructor or destructor, so that reading it needs no guard; the pool behind
// it is made by the first frame of a thread.
#pragma once

#include <cstddef>

#include "weft/runtime/size_class_pool.hpp"

namespace weft {

namespace detail {

// The pool of this thread, nullptr before its first frame and after its thread-local objects are gone.
// initial-exec: one load, also from within a shared library; 8 bytes of the static TLS block, which dlopen() has room
// for.
extern constinit thread_local SizeClassPool* frame_pool_of_thread [[gnu::tls_model("initial-exec")]];

}  // namespace detail

/// The allocator of coroutine frames: promise types forward operator new and operator delete to it.
///
/// Units: sizes in bytes; blocks are aligned to 16, which is all that a frame may ask for.
/// Lifetime: a frame may be destroyed on another thread than the one that made it, and at any time, also while or after
/// the thread-local objects of that thread are destroyed (operator new and delete serve then).
/// Thread: any.
/// Errors: none; aborts when memory is out, because a promise has no way to refuse.
/// Cost: no allocation in steady state.
class FramePool {
 public:
  static constexpr bool kPooling = SizeClassPool::kPooling;

  [[nodiscard]] static void* allocate(std::size_t bytes) noexcept {
    SizeClassPool* pool = detail::frame_pool_of_thread;
    if (pool != nullptr) [[likely]]
      return pool->allocate(bytes);
    return allocate_slow(bytes);
  }

  /// `bytes` as given to allocate().
  static void deallocate(void* frame, std::size_t bytes) noexcept {
    SizeClassPool* pool = detail::frame_pool_of_thread;
    if (pool != nullptr) [[likely]]
      return pool->deallocate(frame, bytes);
    deallocate_slow(frame, bytes);
  }

  /// Of the calling thread; all zero where it has no pool yet or no longer.
  [[nodiscard]] static SizeClassPool::Counters counters() noexcept;

  /// Gives the cached frames of the calling thread back to operator delete.
  static void trim() noexcept;

 private:
  [[gnu::cold, gnu::noinline]] static void* allocate_slow(std::size_t bytes) noexcept;
  [[gnu::cold, gnu::noinline]] static void deallocate_slow(void* frame, std::size_t bytes) noexcept;
};

}  // namespace weft
