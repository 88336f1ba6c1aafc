// Goal: when_all runs its tasks together, awaits all of them whatever happens, and gives their values in order or the
// first failure.
#include "weft/runtime/when_all.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/lifetime_tracked.hpp"
#include "support/manual_clock.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

Task<int> number_after(Duration time, int value, Log* log) {
  try {
    co_await sleep_for(time);
  } catch (const Error& error) {
    log->push_back(std::to_string(value) + " " + std::string(to_string(error.code())));
    throw;
  }
  log->push_back(std::to_string(value));
  co_return value;
}
Task<void> nothing_after(Duration time) { co_await sleep_for(time); }
Task<int> fail_after(Duration time, std::string text) {
  co_await sleep_for(time);
  throw std::runtime_error(text);
}
Task<std::unique_ptr<int>> movable() { co_return std::make_unique<int>(9); }

Task<void> three_kinds(Log* log) {
  auto results = co_await when_all(number_after(20ms, 1, log), nothing_after(5ms), movable());
  static_assert(std::is_same_v<decltype(results), std::tuple<int, std::monostate, std::unique_ptr<int>>>);
  EXPECT_EQ(std::get<0>(results), 1);
  EXPECT_EQ(*std::get<2>(results), 9);
}

TEST(WhenAll, GivesATupleOfValues) {
  test::VirtualTimeReactor reactor;
  Log log;
  const Instant begin = reactor.clock.now();
  reactor->run(three_kinds(&log));
  EXPECT_LT(reactor.clock.now() - begin, 24ms);  // together, not one after the other
}

Task<void> none() {
  const auto results = co_await when_all();
  static_assert(std::is_same_v<decltype(results), const std::tuple<>>);
  std::vector<Task<int>> no_tasks;
  const std::vector<int> values = co_await when_all(std::move(no_tasks));
  EXPECT_TRUE(values.empty());
}

TEST(WhenAll, OfNothingEndsAtOnce) {
  Reactor reactor;
  reactor.run(none());
}

Task<std::vector<int>> vector_of(int count, Log* log) {
  std::vector<Task<int>> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(number_after(Duration(1ms) * (count - i), i, log));
  std::vector<int> values = co_await when_all(std::move(tasks));
  co_return values;
}

TEST(WhenAll, GivesAVectorInTheOrderOfTheTasks) {
  test::VirtualTimeReactor reactor;
  Log log;
  const std::vector<int> values = reactor->run(vector_of(50, &log));
  ASSERT_EQ(values.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(log.front(), "49");
}

Task<void> void_vector(int* ended) {
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.push_back([](int* count) -> Task<void> {
      co_await yield();
      ++*count;
    }(ended));
  }
  co_await when_all(std::move(tasks));
}

TEST(WhenAll, TakesAVectorOfTasksWithoutValues) {
  Reactor reactor;
  int ended = 0;
  reactor.run(void_vector(&ended));
  EXPECT_EQ(ended, 3);
}

Task<void> two_failures(Log* log) {
  try {
    (void)co_await when_all(number_after(1h, 1, log), fail_after(2ms, "second"), fail_after(1ms, "first"));
    log->push_back("no exception");
  } catch (const std::runtime_error& error) {
    log->push_back(error.what());
  }
}

TEST(WhenAll, TheFirstFailureInTimeCancelsTheOthersAndIsThrownWhenAllHaveEnded) {
  test::VirtualTimeReactor reactor;
  Log log;
  const Instant begin = reactor.clock.now();
  reactor->run(two_failures(&log));
  EXPECT_EQ(log, (Log{"1 cancelled", "first"}));
  EXPECT_LT(reactor.clock.now() - begin, 1s);
}

Task<void> in_a_vector(Log* log) {
  std::vector<Task<int>> tasks;
  tasks.push_back(number_after(1h, 1, log));
  tasks.push_back(fail_after(1ms, "first"));
  try {
    (void)co_await when_all(std::move(tasks));
  } catch (const std::runtime_error& error) {
    log->push_back(error.what());
  }
}

TEST(WhenAll, TheSameHoldsForAVector) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(in_a_vector(&log));
  EXPECT_EQ(log, (Log{"1 cancelled", "first"}));
}

Task<int> sum(Log* log) {
  auto results = co_await when_all(number_after(1h, 1, log), number_after(2h, 2, log));
  co_return std::get<0>(results) + std::get<1>(results);
}

TEST(WhenAll, ADeadlineOutsideReachesEveryTask) {
  test::VirtualTimeReactor reactor;
  Log log;
  EXPECT_EQ(reactor->run(as_result(with_deadline(1ms, sum(&log)))).code(), Errc::timed_out);
  EXPECT_EQ(log, (Log{"1 timed out", "2 timed out"}));
}

Task<test::LifetimeTracked> tracked(int value) { co_return test::LifetimeTracked(value); }
Task<test::LifetimeTracked> tracked_failure() {
  co_await yield();
  throw std::runtime_error("no value");
}
Task<void> await_tracked() {
  auto values = co_await when_all(tracked(1), tracked(2));
  EXPECT_EQ(std::get<0>(values).value() + std::get<1>(values).value(), 3);
  try {
    (void)co_await when_all(tracked(1), tracked_failure());
  } catch (const std::runtime_error&) {
  }
  auto never_awaited = when_all(tracked(1), tracked(2));
}

TEST(WhenAll, DestroysValuesOnceWhateverTheEnd) {
  const auto alive = test::LifetimeTracked::alive();
  Reactor reactor;
  reactor.run(await_tracked());
  EXPECT_EQ(test::LifetimeTracked::alive(), alive);
  EXPECT_EQ(test::LifetimeTracked::double_deaths(), 0);
}

[[gnu::noinline]] Task<int> ready(int value) { co_return value; }
Task<void> count(std::uint64_t* allocations) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    const std::uint64_t before = test::allocations_of_this_thread();
    for (int i = 0; i < 100; ++i) (void)co_await when_all(ready(1), ready(2));
    *allocations = test::allocations_of_this_thread() - before;
  }
}

TEST(WhenAll, AllocatesNothingInSteadyState) {
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: every frame comes from operator new";
  Reactor reactor;
  std::uint64_t allocations = 1;
  reactor.run(count(&allocations));
  EXPECT_EQ(allocations, 0U);
}

Task<void> with_an_empty_task() {
  Task<int> empty;
  (void)co_await when_all(ready(1), std::move(empty));
}

TEST(WhenAllDeathTest, AnEmptyTaskIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Reactor().run(with_an_empty_task()), "when_all: an empty task");
}

}  // namespace
}  // namespace weft
