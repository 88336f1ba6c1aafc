// Goal: a pool starts what was asked for, stops only when what was submitted has ended, and leaves nothing behind.
#include "weft/runtime/reactor_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>

#include <string>
#include <thread>
#include <type_traits>

#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"
#include "weft/runtime/submit_to.hpp"
#include "weft/runtime/topology.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

ReactorPoolOptions pool_of(std::size_t reactors) {
  ReactorPoolOptions options;
  options.reactors = reactors;
  options.bind = false;
  return options;
}

TEST(ReactorPool, HasOneReactorPerCoreUnlessToldOtherwise) {
  EXPECT_EQ(ReactorPool().size(), available_cores());
  EXPECT_EQ(ReactorPool(pool_of(5)).size(), 5U);
}

TEST(ReactorPool, DoesNotSpinWhereThereAreMoreReactorsThanCores) {
  ReactorPool pool(pool_of(available_cores() + 1));
  EXPECT_EQ(pool.reactor(0).idle_policy().spin, Duration::zero());
}

TEST(ReactorPool, StopsAtOnceWhenNobodyHasUsedIt) {
  ReactorPool pool(pool_of(3));
  pool.stop();
  pool.stop();
}

/// Submits from a thread of its own and lets go of it: what a program does that stops a pool which is still at work.
class Submitter {
 public:
  template <typename... Arguments>
  Submitter(Reactor& target, Task<void> (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
    std::promise<void> sent;
    std::future<void> is_sent = sent.get_future();
    thread_ = std::thread([&target, function, arguments..., &sent] {
      Reactor reactor;
      reactor.run(call<Arguments...>(&target, function, &sent, arguments...));
    });
    is_sent.wait();
  }
  ~Submitter() { thread_.join(); }

 private:
  template <typename... Arguments>
  static Task<void> tell_first(std::promise<void>* sent, Task<void> (*function)(Arguments...), Arguments... arguments) {
    sent->set_value();
    co_await function(arguments...);
  }
  template <typename... Arguments>
  static Task<void> call(Reactor* target, Task<void> (*function)(Arguments...), std::promise<void>* sent,
                         Arguments... arguments) {
    co_await submit_to(*target, &tell_first<Arguments...>, sent, function, arguments...);
  }
  std::thread thread_;
};

Task<void> sleep_and_count(std::atomic<int>* count) {
  co_await sleep_for(20ms);
  ++*count;
}

TEST(ReactorPool, StopWaitsForWhatWasSubmitted) {
  std::atomic<int> count = 0;
  ReactorPool pool(pool_of(2));
  Submitter first(pool.reactor(0), &sleep_and_count, &count);
  Submitter second(pool.reactor(1), &sleep_and_count, &count);
  pool.stop();
  EXPECT_EQ(count, 2);
}

Task<void> submit_on(ReactorPool* pool, std::size_t index, int hops, std::atomic<int>* count) {
  co_await sleep_for(1ms);
  ++*count;
  if (hops == 0) co_return;
  const std::size_t next = (index + 1) % pool->size();
  co_await submit_to(pool->reactor(next), &submit_on, pool, next, hops - 1, count);
}

TEST(ReactorPool, StopWaitsForWhatTheSubmittedSubmitToReactorsThatWereIdle) {
  std::atomic<int> count = 0;
  ReactorPool pool(pool_of(3));
  Submitter submitter(pool.reactor(2), &submit_on, &pool, std::size_t{2}, 7, &count);
  pool.stop();
  EXPECT_EQ(count, 8);
}

Task<void> nothing() { co_return; }
Task<void> short_calls(ReactorPool* pool) {
  for (std::size_t i = 0; i < pool->size(); ++i) co_await submit_to(pool->reactor(i), &nothing);
}

TEST(ReactorPool, MayBeStartedAndStoppedOftenWithCallsInBetween) {
  Reactor reactor;
  for (int i = 0; i < 50; ++i) {
    ReactorPool pool(pool_of(2));
    reactor.run(short_calls(&pool));
  }
}

TEST(ReactorPool, FailsAsAWholeWhenAThreadCannotStart) {
  ReactorPoolOptions options = pool_of(3);
  ASSERT_EQ(::setenv("WEFT_IO_ENGINE", "nonsense", 1), 0);
  EXPECT_THROW(ReactorPool pool(options), Error);
  ASSERT_EQ(::unsetenv("WEFT_IO_ENGINE"), 0);
}

TEST(ReactorPoolDeathTest, AnIndexOutOfRangeIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)ReactorPool(pool_of(1)).reactor(1), "no such reactor");
}

}  // namespace
}  // namespace weft
