// Goal: a nursery ends when body and children have ended, whatever they do; the first failure cancels the others and is
// the one that is thrown; cancels reach the inside and are not failures.
#include "weft/runtime/nursery.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/lifetime_tracked.hpp"
#include "support/manual_clock.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

Task<void> sleep_and_note(Duration time, std::string name, Log* log) {
  try {
    co_await sleep_for(time);
    log->push_back(name);
  } catch (const Error& error) {
    log->push_back(name + " " + std::string(to_string(error.code())));
    throw;
  }
}
Task<void> sleep_and_fail(Duration time, std::string text) {
  co_await sleep_for(time);
  throw std::runtime_error(text);
}
Task<int> value_nobody_reads() { co_return 5; }

Task<void> two_children(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(20ms, "late", log));
  nursery.start(sleep_and_note(10ms, "early", log));
  nursery.start(value_nobody_reads());
  nursery.start(&value_nobody_reads);
  log->push_back("body");
  EXPECT_EQ(nursery.running(), 4U);
  co_return;
}

TEST(Nursery, EndsWhenTheLastChildHasEnded) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&two_children, &log));
  EXPECT_EQ(log, (Log{"body", "early", "late"}));
}

Task<void> nothing(Nursery& /*nursery*/) { co_return; }

TEST(Nursery, MayHaveNoChildren) {
  Reactor reactor;
  reactor.run(with_nursery(&nothing));
}

Task<void> child_fails_while_body_waits(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "sibling", log));
  nursery.start(sleep_and_fail(1ms, "first"));
  nursery.start(sleep_and_fail(2ms, "second"));
  co_await sleep_and_note(2h, "body", log);
}

TEST(Nursery, TheFirstFailureCancelsBodyAndSiblingsAndIsThrown) {
  test::VirtualTimeReactor reactor;
  Log log;
  const Instant begin = reactor.clock.now();
  try {
    reactor->run(with_nursery(&child_fails_while_body_waits, &log));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(log, (Log{"body cancelled", "sibling cancelled"}));
  EXPECT_LT(reactor.clock.now() - begin, 1s);
}

Task<void> body_fails(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "child", log));
  co_await yield();
  throw std::runtime_error("body");
}
Task<void> body_fails_before_the_child_runs(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "child", log));
  throw std::runtime_error("body");
  co_return;
}
Task<void> not_even_a_coroutine(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "child", log));
  throw std::runtime_error("body");
}

TEST(Nursery, AFailureOfTheBodyCancelsTheChildren) {
  test::VirtualTimeReactor reactor;
  for (auto* body : {&body_fails, &body_fails_before_the_child_runs, &not_even_a_coroutine}) {
    Log log;
    EXPECT_THROW(reactor->run(with_nursery(body, &log)), std::runtime_error);
    EXPECT_EQ(log, (Log{"child cancelled"}));
  }
}

Task<void> cancels_itself(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "child", log));
  co_await yield();
  nursery.cancel();
  nursery.start(sleep_and_note(1h, "after", log));  // starts, and its first wait ends at once
  co_await sleep_and_note(1h, "body", log);
}

TEST(Nursery, CancelEndsEverybodyAndIsNoFailure) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&cancels_itself, &log));
  EXPECT_EQ(log, (Log{"body cancelled", "child cancelled", "after cancelled"}));
}

Task<void> fails_because_of_the_cancel() {
  try {
    co_await sleep_for(1h);
  } catch (const Error&) {
  }
  throw std::runtime_error("clean-up failed");
}
Task<void> cancel_and_fail(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1h, "child", log));
  nursery.start(fails_because_of_the_cancel());
  co_await yield();
  nursery.cancel();
}

TEST(Nursery, ACancelDoesNotHideAFailureThatComesAfterIt) {
  test::VirtualTimeReactor reactor;
  Log log;
  EXPECT_THROW(reactor->run(with_nursery(&cancel_and_fail, &log)), std::runtime_error);
}

Task<void> one_sleeper(Nursery& nursery, Log* log, std::string name) {
  nursery.start(sleep_and_note(1h, name, log));
  co_return;
}
Task<void> nested(Nursery& nursery, Log* log) {
  nursery.start(with_nursery(&one_sleeper, log, std::string("inner child")));
  co_await with_nursery(&one_sleeper, log, std::string("inner body"));
}
Task<void> cancel_from_outside(Nursery& nursery, Log* log) {
  nursery.start(with_nursery(&nested, log));
  co_await yield();
  co_await yield();
  co_await yield();
  nursery.cancel();
}

TEST(Nursery, ACancelReachesNurseriesInside) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&cancel_from_outside, &log));
  EXPECT_EQ(log.size(), 2U);
  for (const std::string& line : log) EXPECT_NE(line.find("cancelled"), std::string::npos);
}

Task<void> sleeps_after_inner(Nursery& nursery, Log* log) {
  nursery.start(sleep_and_note(1ms, "inner", log));
  co_return;
}
Task<void> uses_scope_after_inner(Log* log) {
  co_await with_nursery(&sleeps_after_inner, log);
  co_await sleep_and_note(1h, "after", log);
}
Task<void> cancel_after_inner(Nursery& nursery, Log* log) {
  nursery.start(uses_scope_after_inner(log));
  co_await sleep_for(1s);
  nursery.cancel();
}

TEST(Nursery, GivesTheScopeBackThatItFound) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&cancel_after_inner, &log));
  EXPECT_EQ(log, (Log{"inner", "after cancelled"}));
}

// A child's last act makes the joining body ready; another that starts in between must still be joined.
Task<void> start_late(Nursery* nursery, Log* log) {
  nursery->start(sleep_and_note(1ms, "late", log));
  co_return;
}
Task<void> outer_starts_into(Nursery& outer, Nursery** inner, Event* inner_idle, Log* log) {
  co_await inner_idle->wait();
  (void)outer;
  (*inner)->start(sleep_and_note(1ms, "late", log));
}
struct NotesItsEnd {
  explicit NotesItsEnd(Event* when_destroyed) noexcept : event(when_destroyed) {}
  NotesItsEnd(NotesItsEnd&& other) noexcept : event(std::exchange(other.event, nullptr)) {}
  NotesItsEnd& operator=(NotesItsEnd&&) = delete;
  ~NotesItsEnd() {
    if (event != nullptr) event->set();
  }
  Event* event;
};
Task<void> ends_and_notes(NotesItsEnd /*note*/) { co_return; }
Task<void> inner_body(Nursery& nursery, Nursery** self, Event* idle) {
  *self = &nursery;
  NotesItsEnd note(idle);
  nursery.start(ends_and_notes(std::move(note)));
  co_return;
}
Task<void> late_starter(Nursery& nursery, Log* log) {
  Nursery* inner = nullptr;
  Event idle;
  nursery.start(with_nursery(&outer_starts_into, &inner, &idle, log));
  co_await yield();
  co_await with_nursery(&inner_body, &inner, &idle);
  log->push_back("joined");
}

TEST(Nursery, JoinsAChildThatStartsWhileTheLastOneEnds) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&late_starter, &log));
  EXPECT_EQ(log, (Log{"late", "joined"}));
}

Task<void> start_from_child(Nursery& nursery, Log* log) {
  nursery.start(start_late(&nursery, log));
  co_return;
}

TEST(Nursery, AChildMayStartChildren) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&start_from_child, &log));
  EXPECT_EQ(log, (Log{"late"}));
}

Task<void> with_argument(test::LifetimeTracked value, int expected) {
  co_await yield();
  EXPECT_EQ(value.value(), expected);
}
Task<void> starts_with_arguments(Nursery& nursery, test::LifetimeTracked argument) {
  test::LifetimeTracked copy(2);
  nursery.start(&with_argument, std::move(argument), 1);
  nursery.start(&with_argument, std::move(copy), 2);
  co_return;
}

TEST(Nursery, MovesArgumentsIntoTheirFrames) {
  const auto alive = test::LifetimeTracked::alive();
  Reactor reactor;
  reactor.run(with_nursery(&starts_with_arguments, test::LifetimeTracked(1)));
  EXPECT_EQ(test::LifetimeTracked::alive(), alive);
  EXPECT_EQ(test::LifetimeTracked::double_deaths(), 0);
}

Task<void> descend(Nursery& nursery, int levels, Log* log) {
  if (levels == 0) {
    nursery.start(sleep_and_note(1h, "bottom", log));
    co_return;
  }
  co_await with_nursery(&descend, levels - 1, log);
}
Task<void> cancel_deep(Nursery& nursery, Log* log) {
  nursery.start(with_nursery(&descend, 20'000, log));
  co_await sleep_for(1ms);
  nursery.cancel();
}

TEST(Nursery, ScopesMayBeNestedDeeply) {
  test::VirtualTimeReactor reactor;
  Log log;
  reactor->run(with_nursery(&cancel_deep, &log));
  EXPECT_EQ(log, (Log{"bottom cancelled"}));
}

[[gnu::noinline]] Task<void> short_child() { co_return; }
Task<void> thousand(Nursery& nursery) {
  for (int i = 0; i < 1000; ++i) nursery.start(short_child());
  co_return;
}
Task<void> count_spawns(std::uint64_t* allocations) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    const std::uint64_t before = test::allocations_of_this_thread();
    co_await with_nursery(&thousand);
    *allocations = test::allocations_of_this_thread() - before;
  }
}

TEST(Nursery, SpawnAndJoinAllocatesNothingInSteadyState) {
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: every frame comes from operator new";
  Reactor reactor;
  std::uint64_t allocations = 1;
  reactor.run(count_spawns(&allocations));
  EXPECT_EQ(allocations, 0U);
}

Task<void> starts_an_empty_task(Nursery& nursery) {
  nursery.start(Task<void>());
  co_return;
}

TEST(NurseryDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Reactor().run(with_nursery(&starts_an_empty_task)), "Nursery::start: an empty task");
}

}  // namespace
}  // namespace weft
