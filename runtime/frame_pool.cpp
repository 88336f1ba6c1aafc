#include "weft/runtime/frame_pool.hpp"

namespace weft {

namespace detail {

constinit thread_local SizeClassPool* frame_pool_of_thread = nullptr;

}  // namespace detail

namespace {

constinit thread_local bool pool_is_gone = false;

struct PoolOfThread {
  PoolOfThread() noexcept { detail::frame_pool_of_thread = &pool; }
  ~PoolOfThread() {
    detail::frame_pool_of_thread = nullptr;
    pool_is_gone = true;
  }
  SizeClassPool pool;
};

// Makes the pool of this thread, unless the thread is ending and had one.
SizeClassPool* attach() noexcept {
  if (pool_is_gone) return nullptr;
  static thread_local PoolOfThread owner;
  return &owner.pool;
}

}  // namespace

void* FramePool::allocate_slow(std::size_t bytes) noexcept {
  SizeClassPool* pool = attach();
  return pool != nullptr ? pool->allocate(bytes) : SizeClassPool::allocate_unpooled(bytes);
}

void FramePool::deallocate_slow(void* frame, std::size_t bytes) noexcept {
  // A thread that only destroys frames of others gets no pool for that.
  SizeClassPool::deallocate_unpooled(frame, bytes);
}

SizeClassPool::Counters FramePool::counters() noexcept {
  SizeClassPool* pool = detail::frame_pool_of_thread;
  return pool != nullptr ? pool->counters() : SizeClassPool::Counters{};
}

void FramePool::trim() noexcept {
  if (detail::frame_pool_of_thread != nullptr) detail::frame_pool_of_thread->trim();
}

}  // namespace weft
