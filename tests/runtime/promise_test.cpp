// Goal: what is documented of every promise: its handle, its parent, its frame from the pool.
#include "weft/runtime/promise.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weft/runtime/task.hpp"

namespace weft {
namespace {

static_assert(WeftPromise<Task<void>::promise_type>);
static_assert(WeftPromise<Task<std::string>::promise_type>);
static_assert(!WeftPromise<int>);

[[gnu::noinline]] Task<int> number() { co_return 1; }

TEST(Promise, KnowsItsCoroutineAndNothingElseBeforeItStarts) {
  const Task<int> task = number();
  const PromiseBase& promise = task.handle().promise();
  EXPECT_EQ(promise.self, task.handle());
  EXPECT_EQ(promise.reactor, nullptr);
  EXPECT_EQ(promise.parent, nullptr);
  EXPECT_EQ(promise.scope, nullptr);
  EXPECT_EQ(promise.on_finished, nullptr);
}

TEST(Promise, TakesItsFrameFromThePoolOfTheThread) {
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: every frame comes from operator new";
  { const Task<int> warm_up = number(); }
  const auto before = FramePool::counters();
  { const Task<int> task = number(); }
  EXPECT_EQ(FramePool::counters().hits, before.hits + 1);
  EXPECT_EQ(FramePool::counters().misses, before.misses);
}

TEST(Promise, FramesAreAlignedTo16) {
  const Task<int> task = number();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(task.handle().address()) % 16, 0U);
}

}  // namespace
}  // namespace weft
