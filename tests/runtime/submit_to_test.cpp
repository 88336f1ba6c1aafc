// Goal: a call to another reactor runs there and ends here, once, with its value or exception; a cancel at any moment
// neither hangs nor touches what has ended.
#include "weft/runtime/submit_to.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/allocation_count.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor_pool.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

ReactorPoolOptions pool_of(std::size_t reactors) {
  ReactorPoolOptions options;
  options.reactors = reactors;
  options.bind = false;
  return options;
}

Task<std::thread::id> thread_here() { co_return std::this_thread::get_id(); }
Task<std::thread::id> thread_there(Reactor* target) {
  const std::thread::id there = co_await submit_to(*target, &thread_here);
  EXPECT_NE(there, std::this_thread::get_id());
  co_return there;
}

TEST(SubmitTo, RunsOnTheOtherThreadAndResumesHere) {
  ReactorPool pool(pool_of(2));
  Reactor reactor;
  const std::thread::id first = reactor.run(thread_there(&pool.reactor(0)));
  EXPECT_EQ(first, reactor.run(thread_there(&pool.reactor(0))));
  EXPECT_NE(first, reactor.run(thread_there(&pool.reactor(1))));
}

Task<std::unique_ptr<std::string>> append(std::unique_ptr<std::string> text, int times) {
  for (int i = 0; i < times; ++i) {
    text->push_back('x');
    co_await yield();
  }
  co_return text;
}
Task<void> move_there_and_back(Reactor* target) {
  auto text = std::make_unique<std::string>("a");
  std::unique_ptr<std::string> result = co_await submit_to(*target, &append, std::move(text), 3);
  EXPECT_EQ(*result, "axxx");
}

TEST(SubmitTo, MovesArgumentsAndResult) {
  ReactorPool pool(pool_of(1));
  Reactor reactor;
  reactor.run(move_there_and_back(&pool.reactor(0)));
}

Task<int> throws(bool at_once) {
  if (!at_once) co_await yield();
  throw std::runtime_error("there");
}
Task<int> not_a_coroutine(bool /*at_once*/) { throw std::runtime_error("before there is a task"); }
Task<void> catch_here(Reactor* target, Task<int> (*function)(bool), bool at_once, std::string* text) {
  try {
    const int value = co_await submit_to(*target, function, at_once);
    *text = std::to_string(value);
  } catch (const std::runtime_error& error) {
    *text = error.what();
  }
}

TEST(SubmitTo, RethrowsHere) {
  ReactorPool pool(pool_of(1));
  Reactor reactor;
  for (const bool at_once : {true, false}) {
    std::string text;
    reactor.run(catch_here(&pool.reactor(0), &throws, at_once, &text));
    EXPECT_EQ(text, "there");
    reactor.run(catch_here(&pool.reactor(0), &not_a_coroutine, at_once, &text));
    EXPECT_EQ(text, "before there is a task");
  }
}

Task<int> to_itself(Reactor* self) {
  std::unique_ptr<std::string> text = co_await submit_to(*self, &append, std::make_unique<std::string>(), 5);
  co_return static_cast<int>(text->size());
}

TEST(SubmitTo, MayAddressTheReactorItself) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(to_itself(&reactor)), 5);
}

Task<void> sleep_there(Duration time) { co_await sleep_for(time); }
Task<void> call_sleep(Reactor* target, Duration time) { co_await submit_to(*target, &sleep_there, time); }

TEST(SubmitTo, ACancelIsPassedOn) {
  ReactorPool pool(pool_of(1));
  Reactor reactor;
  EXPECT_EQ(reactor.run(as_result(with_deadline(1ms, call_sleep(&pool.reactor(0), 24h)))).code(), Errc::timed_out);
}

// A cancel that races with the end of the call, at many distances. Nothing may hang, and every end is one of the two.
Task<int> short_task(int yields) {
  for (int i = 0; i < yields; ++i) co_await yield();
  co_return yields;
}
Task<void> call_short(Reactor* target, int yields, int* values, int* cancels) {
  try {
    const int value = co_await submit_to(*target, &short_task, yields);
    EXPECT_EQ(value, yields);
    ++*values;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::cancelled);
    ++*cancels;
  }
}
Task<int> waits_for_the_cancel(Duration time) {
  try {
    co_await sleep_for(time);
  } catch (const Error&) {
    co_return 1;
  }
  co_return 0;
}
Task<void> call_waiting(Reactor* target, Duration time, int* values) {
  const Result<int> result = co_await as_result([](Reactor* to, Duration until) -> Task<int> {
    const int value = co_await submit_to(*to, &waits_for_the_cancel, until);
    co_return value;
  }(target, time));
  *values += result.code() == Errc::cancelled || result.has_value() ? 1 : 0;
}
Task<void> racing_calls(Nursery& nursery, Reactor* target, int round, int* values, int* cancels) {
  nursery.start(call_short(target, round % 7, values, cancels));
  nursery.start(call_waiting(target, Duration(round % 50) * 1000, values));
  for (int i = 0; i < round % 40; ++i) co_await yield();
  nursery.cancel();
}

#ifdef NDEBUG
constexpr int kRounds = 20'000;
#else
constexpr int kRounds = 4'000;
#endif

TEST(SubmitTo, ACancelMayRaceWithTheEnd) {
  ReactorPool pool(pool_of(1));
  Reactor reactor;
  int values = 0;
  int cancels = 0;
  for (int round = 0; round < kRounds; ++round) {
    reactor.run(with_nursery(&racing_calls, &pool.reactor(0), round, &values, &cancels));
  }
  EXPECT_EQ(values + cancels, 2 * kRounds);
}

// Every reactor calls every other at once, and calls nest.
Task<int> bounce(ReactorPool* pool, std::size_t from, int hops) {
  if (hops == 0) co_return 0;
  const std::size_t next = (from + 1 + static_cast<std::size_t>(hops) % (pool->size() - 1)) % pool->size();
  const int rest = co_await submit_to(pool->reactor(next), &bounce, pool, next, hops - 1);
  co_return rest + 1;
}
Task<void> bounce_often(ReactorPool* pool, std::size_t from, int times) {
  for (int i = 0; i < times; ++i) {
    const int hops = co_await submit_to(pool->reactor(from), &bounce, pool, from, 10);
    EXPECT_EQ(hops, 10);
  }
}
Task<void> bounce_everywhere(Nursery& nursery, ReactorPool* pool, int times) {
  for (std::size_t i = 0; i < pool->size() * 4; ++i) nursery.start(bounce_often(pool, i % pool->size(), times));
  co_return;
}

TEST(SubmitTo, ReactorsMayCallEachOtherAtOnce) {
  ReactorPool pool(pool_of(3));
  Reactor reactor;
  reactor.run(with_nursery(&bounce_everywhere, &pool, kRounds / 200));
}

Task<int> nothing_there() { co_return 1; }
Task<void> count(Reactor* target, std::uint64_t* allocations) {
  for (int i = 0; i < 300; ++i) {
    if (i == 100) *allocations = test::allocations_of_this_thread();
    const int one = co_await submit_to(*target, &nothing_there);
    EXPECT_EQ(one, 1);
  }
  *allocations = test::allocations_of_this_thread() - *allocations;
}

TEST(SubmitTo, AllocatesNothingHere) {
  ReactorPool pool(pool_of(1));
  Reactor reactor;
  std::uint64_t allocations = 1;
  reactor.run(count(&pool.reactor(0), &allocations));
  EXPECT_EQ(allocations, 0U);
}

// A reactor that has nothing else to do waits for its guests.
Task<void> set_after(Event* event, Duration time) {
  co_await sleep_for(time);
  event->set();
}
Task<void> ends_at_once() { co_return; }
Task<void> calls_with_event(Reactor* target, std::binary_semaphore* running) {
  co_await submit_to(*target, [](std::binary_semaphore* arrived) -> Task<void> {
    arrived->release();
    co_await sleep_for(5ms);
  }, running);
}

TEST(SubmitTo, RunDoesNotReturnBeforeItsGuestsHaveLeft) {
  Reactor target;
  std::binary_semaphore arrived(0);
  Event keep;
  std::thread host([&] {
    target.run(set_after(&keep, 1ms));
    while (!arrived.try_acquire()) target.run(set_after(&keep, 1ms));
    target.run(ends_at_once());
    EXPECT_EQ(target.guests(), 0U);
  });
  Reactor reactor;
  reactor.run(calls_with_event(&target, &arrived));
  host.join();
}

}  // namespace
}  // namespace weft
