// Goal: an event wakes everybody in order, is not missed when set before the wait, and can be left by cancelling.
#include "weft/runtime/event.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

Task<void> wait_and_note(Event* event, std::vector<int>* order, int name) {
  co_await event->wait();
  order->push_back(name);
}

Task<void> three_waiters(Nursery& nursery, Event* event, std::vector<int>* order) {
  for (int i = 0; i < 3; ++i) nursery.start(wait_and_note(event, order, i));
  co_await yield();
  EXPECT_TRUE(order->empty());
  event->set();
  EXPECT_TRUE(order->empty());  // not from inside set()
  event->reset();               // too late to hold anybody back
}

TEST(Event, WakesItsWaitersInTheirOrder) {
  Reactor reactor;
  Event event;
  std::vector<int> order;
  reactor.run(with_nursery(&three_waiters, &event, &order));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(event.is_set());
}

TEST(Event, DoesNotSuspendWhenItIsSet) {
  Reactor reactor;
  Event event;
  event.set();
  std::vector<int> order;
  reactor.run(wait_and_note(&event, &order, 1));
  EXPECT_EQ(order.size(), 1U);
}

Task<void> note_failure(Event* event, Errc* code) {
  try {
    co_await event->wait();
  } catch (const Error& error) {
    *code = error.code();
  }
}

Task<void> cancel_one(Nursery& nursery, Event* event, Errc* code, bool set_first, bool cancel_before_wait) {
  nursery.start(note_failure(event, code));
  if (!cancel_before_wait) co_await yield();
  if (set_first) event->set();
  nursery.cancel();
}

TEST(Event, AWaitEndsWhenItIsCancelledBeforeOrWhileItWaits) {
  Reactor reactor;
  for (const bool before : {true, false}) {
    Event event;
    Errc code = Errc::ok;
    reactor.run(with_nursery(&cancel_one, &event, &code, false, before));
    EXPECT_EQ(code, Errc::cancelled);
  }
}

TEST(Event, AnEventThatWasSetBeforeTheCancelWins) {
  Reactor reactor;
  for (const bool before : {true, false}) {
    Event event;
    Errc code = Errc::ok;
    reactor.run(with_nursery(&cancel_one, &event, &code, true, before));
    EXPECT_EQ(code, Errc::ok);
  }
}

Task<void> player(Event* mine, Event* other, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    co_await mine->wait();
    mine->reset();
    other->set();
  }
}

Task<void> count_hand_offs(Nursery& nursery, std::uint64_t* allocations) {
  Event ping;
  Event pong;
  nursery.start(player(&ping, &pong, 1100));
  for (int i = 0; i < 1100; ++i) {
    if (i == 100) *allocations = test::allocations_of_this_thread();
    ping.set();
    co_await pong.wait();
    pong.reset();
  }
  *allocations = test::allocations_of_this_thread() - *allocations;
  co_await yield();
}

TEST(Event, HandOffAllocatesNothing) {
  Reactor reactor;
  std::uint64_t allocations = 1;
  reactor.run(with_nursery(&count_hand_offs, &allocations));
  EXPECT_EQ(allocations, 0U);
}

Task<void> destroy_with_waiter(Nursery& nursery) {
  auto event = std::make_unique<Event>();
  std::vector<int> order;
  nursery.start(wait_and_note(event.get(), &order, 0));
  co_await yield();
  event.reset();
}

TEST(EventDeathTest, MustOutliveItsWaiters) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Reactor().run(with_nursery(&destroy_with_waiter)), "died while objects were still waiting");
}

}  // namespace
}  // namespace weft
