// Goal: a call that can be awaited is as good as a task wherever one is wanted.
#include "weft/runtime/as_task.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

/// Waits for an event when it is awaited; may be moved and awaited again, as the calls of net.
struct EventCall {
  Event* event;
  int* started;
  [[nodiscard]] Event::Waiter operator co_await() const {
    ++*started;
    return event->wait();
  }
};
static_assert(AwaitableCall<EventCall>);
static_assert(!AwaitableCall<Task<void>>);
static_assert(!AwaitableCall<int>);

Task<void> limited() {
  Event event;
  int started = 0;
  const EventCall call{&event, &started};
  // Expect: nothing starts before it is awaited.
  Task<void> task = as_task(call);
  EXPECT_EQ(started, 0);
  task = Task<void>();
  const Result<void> late = co_await as_result(with_deadline(std::chrono::milliseconds(1), call));
  EXPECT_EQ(late.code(), Errc::timed_out);
  EXPECT_EQ(started, 1);
  event.set();
  const Result<void> now = co_await as_result(call);
  EXPECT_TRUE(now);
  co_await call;
  EXPECT_EQ(started, 3);
}

TEST(AsTask, ACallTakesADeadlineAndGivesAResult) {
  Reactor reactor;
  reactor.run(limited());
}

Task<void> start_call(Nursery& nursery, Event* event, int* started) {
  nursery.start(as_task(EventCall{event, started}));
  co_await yield();
  EXPECT_EQ(*started, 1);
  event->set();
}

Task<void> in_nursery() {
  Event event;
  int started = 0;
  co_await with_nursery(start_call, &event, &started);
  EXPECT_EQ(started, 1);
}

TEST(AsTask, ACallRunsInANursery) {
  Reactor reactor;
  reactor.run(in_nursery());
}

}  // namespace
}  // namespace weft
