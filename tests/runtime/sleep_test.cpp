// Goal: sleeps end in the order of their deadlines, never early, at the extremes too, and can be cancelled; yield lets
// others run.
#include "weft/runtime/sleep.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/manual_clock.hpp"
#include "weft/runtime/nursery.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

Task<void> nap(Duration time, std::string name, Log* log) {
  PromiseBase& self = co_await detail::this_coroutine();
  const Instant begin = self.reactor->clock().now();
  co_await sleep_for(time);
  EXPECT_GE(self.reactor->clock().now() - begin, time);
  log->push_back(name);
}

Task<void> naps(Nursery& nursery, Log* log) {
  nursery.start(nap(24h * 365 * 20, "decades", log));
  nursery.start(nap(10ms, "ms", log));
  nursery.start(nap(1h, "hour", log));
  nursery.start(nap(Duration(1), "ns", log));
  nursery.start(nap(Duration::zero(), "zero", log));
  nursery.start(nap(Duration::min(), "negative", log));
  co_return;
}

TEST(Sleep, EndsInTheOrderOfDeadlines) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&naps, &log));
  EXPECT_EQ(log, (Log{"zero", "negative", "ns", "ms", "hour", "decades"}));
}

Task<void> until(Instant deadline) { co_await sleep_until(deadline); }

TEST(Sleep, UntilAnInstantThatHasPassedEndsAtOnce) {
  test::VirtualTimeReactor reactor;
  const Instant now = reactor.clock.now();
  for (const Instant deadline : {Instant::min(), Instant{}, now - 1h, now}) {
    reactor->run(until(deadline));
    EXPECT_EQ(reactor.clock.now(), now);
  }
  reactor->run(until(now + 1h));
  EXPECT_GE(reactor.clock.now(), now + 1h);
}

Task<void> nap_and_note_failure(Duration time, Errc* code) {
  try {
    co_await sleep_for(time);
  } catch (const Error& error) {
    *code = error.code();
  }
}
Task<void> cancel_naps(Nursery& nursery, Errc* forever, Errc* done) {
  nursery.start(nap_and_note_failure(Duration::max(), forever));
  nursery.start(nap_and_note_failure(1ms, done));
  co_await sleep_for(1s);
  nursery.cancel();
}

TEST(Sleep, AnEndlessSleepEndsWhenItIsCancelled) {
  test::VirtualTimeReactor reactor;
  Errc forever = Errc::ok;
  Errc done = Errc::ok;
  reactor->run(with_nursery(&cancel_naps, &forever, &done));
  EXPECT_EQ(forever, Errc::cancelled);
  EXPECT_EQ(done, Errc::ok);
}

Task<void> real_nap(Duration time) { co_await sleep_for(time); }

TEST(Sleep, IsNeverEarlyInRealTime) {
  for (const IoEngineKind engine : {IoEngineKind::automatic, IoEngineKind::epoll}) {
    for (const IdleMode mode : {IdleMode::automatic, IdleMode::spin, IdleMode::yield, IdleMode::block}) {
      ReactorOptions options;
      options.io = engine;
      options.idle.mode = mode;
      Reactor reactor(options);
      for (const Duration time : {Duration(1), Duration(100us), Duration(1100us)}) {
        const Instant begin = steady_clock().now();
        reactor.run(real_nap(time));
        EXPECT_GE(steady_clock().now() - begin, time);
      }
    }
  }
}

Task<void> tick(char name, std::string* log) {
  for (int i = 0; i < 3; ++i) {
    log->push_back(name);
    co_await yield();
  }
}
Task<void> two_tickers(Nursery& nursery, std::string* log) {
  nursery.start(tick('a', log));
  nursery.start(tick('b', log));
  co_return;
}

TEST(Yield, LetsEverybodyElseRunFirst) {
  Reactor reactor;
  std::string log;
  reactor.run(with_nursery(&two_tickers, &log));
  EXPECT_EQ(log, "ababab");
}

Task<void> count(std::uint64_t* yields, std::uint64_t* sleeps) {
  co_await yield();
  std::uint64_t before = test::allocations_of_this_thread();
  for (int i = 0; i < 1000; ++i) co_await yield();
  *yields = test::allocations_of_this_thread() - before;
  before = test::allocations_of_this_thread();
  for (int i = 0; i < 1000; ++i) co_await sleep_for(1ms);
  *sleeps = test::allocations_of_this_thread() - before;
}

TEST(Sleep, ArmAndFireAndYieldAllocateNothing) {
  test::VirtualTimeReactor reactor;
  std::uint64_t yields = 1;
  std::uint64_t sleeps = 1;
  reactor->run(count(&yields, &sleeps));
  EXPECT_EQ(yields, 0U);
  EXPECT_EQ(sleeps, 0U);
}

}  // namespace
}  // namespace weft
