// Goal: with_deadline ends every wait below it in time, gives the value where there is one, and nests.
#include "weft/runtime/deadline.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "support/manual_clock.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

Task<int> value_after(Duration time, int value) {
  co_await sleep_for(time);
  co_return value;
}
Task<int> value_at_once(int value) { co_return value; }

TEST(Deadline, GivesTheValueOfATaskThatIsInTime) {
  test::VirtualTimeReactor reactor;
  EXPECT_EQ(reactor->run(with_deadline(10ms, value_after(5ms, 1))), 1);
  EXPECT_EQ(reactor->run(with_deadline(reactor.clock.now() + 10ms, value_after(5ms, 2))), 2);
  EXPECT_EQ(reactor->timers().armed(), 0U);
}

TEST(Deadline, EndsATaskThatIsLate) {
  test::VirtualTimeReactor reactor;
  const Instant begin = reactor.clock.now();
  const Result<int> result = reactor->run(as_result(with_deadline(10ms, value_after(1h, 1))));
  EXPECT_EQ(result.code(), Errc::timed_out);
  EXPECT_GE(reactor.clock.now() - begin, 10ms);
  EXPECT_LT(reactor.clock.now() - begin, 1s);
}

TEST(Deadline, ZeroAndLessGiveNoTimeToWait) {
  test::VirtualTimeReactor reactor;
  const Instant begin = reactor.clock.now();
  for (const Duration none : {Duration::zero(), Duration(-1), Duration::min()}) {
    EXPECT_EQ(reactor->run(as_result(with_deadline(none, value_after(1ms, 1)))).code(), Errc::timed_out);
    EXPECT_EQ(reactor->run(as_result(with_deadline(none, value_at_once(1)))).value(), 1);
  }
  EXPECT_EQ(reactor->run(as_result(with_deadline(Instant::min(), value_after(1ms, 1)))).code(), Errc::timed_out);
  EXPECT_EQ(reactor.clock.now(), begin);
}

TEST(Deadline, MaxAndNeverAreNoLimit) {
  test::VirtualTimeReactor reactor;
  EXPECT_EQ(reactor->run(with_deadline(Duration::max(), value_after(24h * 365, 1))), 1);
  EXPECT_EQ(reactor->run(with_deadline(kNever, value_after(24h * 365, 2))), 2);
}

Task<int> ignores_the_deadline() {
  try {
    co_await sleep_for(1h);
  } catch (const Error&) {
  }
  co_return 3;
}

TEST(Deadline, AValueThatWasMadeAllTheSameIsTheResult) {
  test::VirtualTimeReactor reactor;
  EXPECT_EQ(reactor->run(with_deadline(1ms, ignores_the_deadline())), 3);
}

TEST(Deadline, TheNearerOfTwoCounts) {
  test::VirtualTimeReactor reactor;
  const Instant begin = reactor.clock.now();
  EXPECT_EQ(reactor->run(as_result(with_deadline(1h, with_deadline(1ms, value_after(2h, 1))))).code(), Errc::timed_out);
  EXPECT_EQ(reactor->run(as_result(with_deadline(1ms, with_deadline(1h, value_after(2h, 1))))).code(), Errc::timed_out);
  EXPECT_LT(reactor.clock.now() - begin, 1s);
}

Task<void> wait_for(Event* event) { co_await event->wait(); }
Task<void> late_inside_then_on(Event* event, int* reached) {
  const Result<void> first = co_await as_result(with_deadline(1ms, wait_for(event)));
  EXPECT_EQ(first.code(), Errc::timed_out);
  co_await sleep_for(1h);  // the outer scope is unharmed
  ++*reached;
}

TEST(Deadline, HarmsNobodyOutside) {
  test::VirtualTimeReactor reactor;
  Event event;
  int reached = 0;
  reactor->run(late_inside_then_on(&event, &reached));
  EXPECT_EQ(reached, 1);
}

Task<void> fails() {
  co_await yield();
  throw std::runtime_error("own failure");
}

TEST(Deadline, PassesOtherFailuresOn) {
  test::VirtualTimeReactor reactor;
  EXPECT_THROW(reactor->run(with_deadline(1h, fails())), std::runtime_error);
  EXPECT_EQ(reactor->timers().armed(), 0U);
}

Task<void> with_two_limits(Nursery& nursery, Errc* code) {
  nursery.start([](Errc* out) -> Task<void> {
    const Result<int> result = co_await as_result(with_deadline(1h, value_after(2h, 1)));
    *out = result.code();
  }(code));
  co_await yield();
  nursery.cancel();
}

TEST(Deadline, ACancelFromOutsideComesFirst) {
  test::VirtualTimeReactor reactor;
  Errc code = Errc::ok;
  reactor->run(with_nursery(&with_two_limits, &code));
  EXPECT_EQ(code, Errc::cancelled);
}

Task<std::unique_ptr<int>> movable() { co_return std::make_unique<int>(4); }

TEST(Deadline, MovesTheValue) {
  Reactor reactor;
  EXPECT_EQ(*reactor.run(with_deadline(1h, movable())), 4);
}

}  // namespace
}  // namespace weft
