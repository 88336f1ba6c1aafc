// Goal: a task runs once, where and when it is awaited; values, exceptions and frames go the right way; chains of any
// length and depth do not grow the stack; misuse is named.
#include "weft/runtime/task.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/allocation_count.hpp"
#include "support/lifetime_tracked.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using test::LifetimeTracked;

// noinline: clang may put the frame of a child that it can see through into its parent.
[[gnu::noinline]] Task<int> number(int value) { co_return value; }

Task<int> sum_of(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const int one = co_await number(1);
    sum += one;
  }
  co_return sum;
}

TEST(Task, GivesItsValue) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(sum_of(3)), 3);
}

Task<std::unique_ptr<int>> make_unique_number(int value) { co_return std::make_unique<int>(value); }
Task<std::unique_ptr<int>> pass_on(Task<std::unique_ptr<int>> inner) {
  std::unique_ptr<int> value = co_await std::move(inner);
  co_return value;
}

TEST(Task, MovesAValueThatCannotBeCopied) {
  Reactor reactor;
  EXPECT_EQ(*reactor.run(pass_on(make_unique_number(7))), 7);
}

Task<void> set_flag(bool* flag) {
  *flag = true;
  co_return;
}

TEST(Task, RunsNothingBeforeItIsAwaited) {
  bool ran = false;
  { const Task<void> task = set_flag(&ran); }
  EXPECT_FALSE(ran);
  Reactor reactor;
  reactor.run(set_flag(&ran));
  EXPECT_TRUE(ran);
}

Task<int> fail(std::string text) {
  throw std::runtime_error(text);
  co_return 0;
}
Task<std::string> text_of_failure() {
  try {
    const int value = co_await fail("broken");
    co_return std::to_string(value);
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
}

TEST(Task, RethrowsWhereItIsAwaited) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(text_of_failure()), "broken");
  EXPECT_THROW(reactor.run(fail("again")), std::runtime_error);
  EXPECT_EQ(reactor.run(sum_of(1)), 1);  // the reactor goes on
}

struct ThrowsWhenMoved {
  ThrowsWhenMoved() = default;
  ThrowsWhenMoved(ThrowsWhenMoved&& /*other*/) { throw std::runtime_error("move"); }
};
Task<ThrowsWhenMoved> give_what_cannot_move() { co_return ThrowsWhenMoved(); }

TEST(Task, AValueThatThrowsOnItsWayOutIsTheFailureOfTheTask) {
  Reactor reactor;
  EXPECT_THROW((void)reactor.run(give_what_cannot_move()), std::runtime_error);
}

Task<int> consume(LifetimeTracked argument, bool failing) {
  const LifetimeTracked local(argument.value());
  co_await yield();
  if (failing) throw std::runtime_error("after the suspension");
  co_return local.value();
}

TEST(Task, DestroysArgumentsAndLocalsOnceWhateverTheEnd) {
  const auto alive = LifetimeTracked::alive();
  {
    Reactor reactor;
    EXPECT_EQ(reactor.run(consume(LifetimeTracked(5), false)), 5);
    EXPECT_THROW(reactor.run(consume(LifetimeTracked(5), true)), std::runtime_error);
    const Task<int> never_awaited = consume(LifetimeTracked(5), false);
  }
  EXPECT_EQ(LifetimeTracked::alive(), alive);
  EXPECT_EQ(LifetimeTracked::double_deaths(), 0);
}

Task<int> assign_and_await() {
  Task<int> task = number(1);
  task = number(2);  // the first one is dropped without having run
  const int value = co_await std::move(task);
  co_return value;
}

TEST(Task, AnUnstartedTaskMayBeReplaced) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(assign_and_await()), 2);
}

Task<int> depth(int levels) {
  if (levels == 0) co_return 0;
  const int below = co_await depth(levels - 1);
  co_return below + 1;
}
Task<int> depth_of_failure(int levels) {
  if (levels == 0) throw std::runtime_error("at the bottom");
  const int below = co_await depth_of_failure(levels - 1);
  co_return below + 1;
}

// A thread with the smallest useful stack, so that a stack that grows is seen at once.
template <typename Function>
void on_a_small_stack(Function function) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10), 0);
  pthread_t thread{};
  const auto body = [](void* argument) -> void* {
    (*static_cast<Function*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &function), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

#ifdef NDEBUG
constexpr int kManyAwaits = 10'000'000;
#else
constexpr int kManyAwaits = 1'000'000;
#endif

TEST(Task, MillionsOfTasksThatEndAtOnceDoNotGrowTheStack) {
  on_a_small_stack([] {
    Reactor reactor;
    EXPECT_EQ(reactor.run(sum_of(kManyAwaits)), kManyAwaits);
  });
}

TEST(Task, ADeepChainDoesNotGrowTheStack) {
  on_a_small_stack([] {
    Reactor reactor;
    EXPECT_EQ(reactor.run(depth(100'000)), 100'000);
    EXPECT_THROW(reactor.run(depth_of_failure(20'000)), std::runtime_error);
  });
}

Task<void> count_allocations(std::uint64_t* allocations) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    const std::uint64_t before = test::allocations_of_this_thread();
    const int sum = co_await sum_of(1000);
    *allocations = test::allocations_of_this_thread() - before;
    EXPECT_EQ(sum, 1000);
  }
}

TEST(Task, AwaitingAllocatesNothingInSteadyState) {
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: every frame comes from operator new";
  Reactor reactor;
  std::uint64_t allocations = 0;
  reactor.run(count_allocations(&allocations));
  EXPECT_EQ(allocations, 0U);
}

Task<void> await_twice() {
  Task<int> task = number(1);
  (void)co_await std::move(task);
  (void)co_await std::move(task);
}
Task<void> await_empty() {
  Task<int> task;
  (void)co_await std::move(task);
}
Task<void> wait_for(Event* event) { co_await event->wait(); }
Task<void> destroy_in_flight() {
  Event event;
  PromiseBase& self = co_await detail::this_coroutine();
  auto task = std::make_unique<Task<void>>(wait_for(&event));
  self.reactor->start(task->handle().promise(), nullptr);
  co_await yield();
  task.reset();
}
Task<void> dropped_frame(Event* event) {
  PromiseBase& self = co_await detail::this_coroutine();
  Task<void> task = wait_for(event);
  self.reactor->start(task.handle().promise(), nullptr);
  co_await yield();
  task.release().destroy();
}

TEST(TaskDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Reactor().run(await_twice()), "awaited twice");
  EXPECT_DEATH(Reactor().run(await_empty()), "an empty task was awaited");
  EXPECT_DEATH(Reactor().run(destroy_in_flight()), "destroyed in flight");
  EXPECT_DEATH(
      {
        Event event;
        Reactor().run(dropped_frame(&event));
      },
      "destroyed while its coroutine was suspended");
}

}  // namespace
}  // namespace weft
