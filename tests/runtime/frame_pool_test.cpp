// Goal: coroutine frames are reused within a thread, may end on another thread, and may end after the thread-local
// objects of their thread are gone.
#include "weft/runtime/frame_pool.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace weft {
namespace {

#define SKIP_WITHOUT_POOLING() \
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: every frame comes from operator new"

// The least coroutine whose frame comes from the pool. Runs when resumed, stays suspended at its end.
class Steps {
 public:
  struct promise_type {
    static void* operator new(std::size_t bytes) { return FramePool::allocate(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept { FramePool::deallocate(frame, bytes); }
    Steps get_return_object() noexcept { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  explicit Steps(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}
  Steps(Steps&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Steps& operator=(Steps&&) = delete;
  ~Steps() { end(); }

  void resume() { coroutine_.resume(); }
  void end() {
    if (coroutine_) std::exchange(coroutine_, nullptr).destroy();
  }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

// noinline: clang puts the frame of a child that it can see through into its parent.
[[gnu::noinline]] Steps add_one(int& counter) {
  ++counter;
  co_return;
}

// Makes and ends a child frame on whichever thread runs each half.
Steps child_in_each_half(int& counter) {
  {
    Steps child = add_one(counter);
    child.resume();
  }
  co_await std::suspend_always{};
  Steps child = add_one(counter);
  child.resume();
}

TEST(FramePool, FramesOfOneSizeReuseOneBlock) {
  SKIP_WITHOUT_POOLING();
  int runs = 0;
  add_one(runs).resume();
  const auto before = FramePool::counters();
  for (int i = 0; i < 1000; ++i)
    add_one(runs).resume();
  EXPECT_EQ(runs, 1001);
  EXPECT_EQ(FramePool::counters().misses, before.misses);
  EXPECT_EQ(FramePool::counters().hits, before.hits + 1000);
}

TEST(FramePool, EveryThreadHasItsOwnPool) {
  int runs = 0;
  add_one(runs).resume();
  const auto before = FramePool::counters();
  SizeClassPool::Counters at_start, at_end;
  std::thread([&] {
    at_start = FramePool::counters();
    add_one(runs).resume();
    at_end = FramePool::counters();
  }).join();
  EXPECT_EQ(at_start.misses, 0u);
  EXPECT_EQ(at_end.misses, 1u);
  EXPECT_EQ(FramePool::counters().misses, before.misses);
}

TEST(FramePool, AFrameMayEndOnAThreadWithAndWithoutAPool) {
  int runs = 0;
  Steps here = add_one(runs);
  Steps too = add_one(runs);
  std::thread([&] {
    here.end();
    const auto none = FramePool::counters();
    EXPECT_EQ(none.hits + none.misses, 0u);
    add_one(runs).resume();
    too.end();
    if (FramePool::kPooling) {
      add_one(runs).resume();
      EXPECT_EQ(FramePool::counters().misses, 1u);
    }
  }).join();
}

// A compiler that computed the address of a thread-local before a suspension and used it after would give the second
// child to the pool of the thread that made the first.
TEST(FramePool, ACoroutineThatWentToAnotherThreadUsesThePoolOfThatThread) {
  int runs = 0;
  Steps traveller = child_in_each_half(runs);
  traveller.resume();
  const auto here = FramePool::counters();
  SizeClassPool::Counters there;
  std::thread([&] {
    traveller.resume();
    there = FramePool::counters();
    traveller.end();
  }).join();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(there.misses, 1u);
  EXPECT_EQ(FramePool::counters().hits, here.hits);
  EXPECT_EQ(FramePool::counters().misses, here.misses);
}

struct EndsFramesLate {
  ~EndsFramesLate() {
    if (frame != nullptr) FramePool::deallocate(frame, 200);
    void* late = FramePool::allocate(100);
    std::memset(late, 1, 100);
    FramePool::deallocate(late, 100);
    const auto gone = FramePool::counters();
    *saw_no_pool = gone.hits + gone.misses == 0;
  }
  void* frame = nullptr;
  bool* saw_no_pool = nullptr;
};

TEST(FramePool, FramesMayComeAndGoAfterThreadLocalObjectsAreDestroyed) {
  bool saw_no_pool = false;
  std::thread([&saw_no_pool] {
    // Made before the pool of this thread, so destroyed after it.
    static thread_local EndsFramesLate late;
    late.saw_no_pool = &saw_no_pool;
    late.frame = FramePool::allocate(200);
  }).join();
  EXPECT_TRUE(saw_no_pool);
}

TEST(FramePool, TrimGivesTheCacheBack) {
  SKIP_WITHOUT_POOLING();
  int runs = 0;
  add_one(runs).resume();
  const auto before = FramePool::counters();
  FramePool::trim();
  add_one(runs).resume();
  EXPECT_EQ(FramePool::counters().misses, before.misses + 1);
}

}  // namespace
}  // namespace weft
