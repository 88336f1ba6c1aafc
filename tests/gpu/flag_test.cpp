// Goal: a task that waits for a flag resumes when the flag gets there, whatever the reactor does at that moment, and
// ends in order when it is cancelled or when the flag is aborted.
#include "weft/gpu/flag.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::gpu {
namespace {

ReactorOptions idle(IdleMode mode) {
  ReactorOptions options;
  options.idle.mode = mode;
  return options;
}

Task<void> wait_for(FlagPoller& poller, const Flag& flag, std::uint64_t value, int* resumed) {
  co_await poller.until(flag, value);
  ++*resumed;
}

TEST(Flag, AWaitForAValueThatIsThereDoesNotSuspend) {
  Reactor reactor(idle(IdleMode::block));
  FlagPoller poller(reactor);
  Flag flag(reactor);
  flag.store(7);
  int resumed = 0;
  reactor.run(wait_for(poller, flag, 7, &resumed));
  reactor.run(wait_for(poller, flag, 3, &resumed));
  EXPECT_EQ(resumed, 2);
  EXPECT_EQ(reactor.counters().blocked, 0u);
}

Task<void> three_waiters(Nursery& nursery, FlagPoller* poller, Flag* flag, int* resumed) {
  nursery.start(wait_for(*poller, *flag, 3, resumed));
  nursery.start(wait_for(*poller, *flag, 1, resumed));
  nursery.start(wait_for(*poller, *flag, 2, resumed));
  co_await yield();
  flag->store(1);
  co_await poller->until(*flag, 1);
  while (*resumed < 1)
    co_await yield();
  // Expect: only the one that waited for 1.
  EXPECT_EQ(*resumed, 1);
  flag->store(3);
}

TEST(Flag, EachWaiterResumesWhenItsOwnValueIsReached) {
  Reactor reactor(idle(IdleMode::spin));
  FlagPoller poller(reactor);
  Flag flag(reactor);
  int resumed = 0;
  reactor.run(with_nursery(&three_waiters, &poller, &flag, &resumed));
  EXPECT_EQ(resumed, 3);
}

Task<Result<void>> wait_until_cancelled(FlagPoller& poller, const Flag& flag) {
  int resumed = 0;
  Task<void> limited = with_deadline(Duration::zero(), wait_for(poller, flag, 1, &resumed));
  Result<void> result = co_await as_result(std::move(limited));
  co_return result;
}

TEST(Flag, ADeadlineEndsTheWaitAndLeavesTheFlagUsable) {
  Reactor reactor(idle(IdleMode::block));
  FlagPoller poller(reactor);
  Flag flag(reactor);
  EXPECT_EQ(reactor.run(wait_until_cancelled(poller, flag)).code(), Errc::timed_out);
  flag.store(1);
  int resumed = 0;
  reactor.run(wait_for(poller, flag, 1, &resumed));
  EXPECT_EQ(resumed, 1);
}

TEST(Flag, AnAbortedFlagEndsEveryWaitWithAnError) {
  Reactor reactor(idle(IdleMode::block));
  FlagPoller poller(reactor);
  Flag flag(reactor);
  flag.store(kFlagAborted);
  int resumed = 0;
  const Result<void> result = reactor.run(as_result(wait_for(poller, flag, 5, &resumed)));
  EXPECT_EQ(result.code(), Errc::closed);
  EXPECT_EQ(resumed, 0);
}

// The reactor answers each value, so that it goes to sleep at about the time of the next store: that is where a lost
// wake-up would hang the test.
Task<void> answer(FlagPoller& poller, const Flag& question, Flag& answered, std::uint64_t rounds) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    co_await poller.until(question, round);
    answered.store(round);
  }
}

void hammer(IdleMode mode) {
  constexpr std::uint64_t kRounds = 10000;
  Reactor reactor(idle(mode));
  FlagPoller poller(reactor);
  Flag question(reactor);
  Flag answered;
  std::uint64_t payload = 0;  // travels behind the flags: a race for the thread sanitizer if they did not order it
  std::thread asker([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      ++payload;
      question.store(round);
      answered.block_until(round);
    }
  });
  reactor.run(answer(poller, question, answered, kRounds));
  asker.join();
  EXPECT_EQ(payload, kRounds);
}

TEST(Flag, NoWakeUpIsLostWhenTheReactorBlocksAtOnce) {
  hammer(IdleMode::block);
}
TEST(Flag, NoWakeUpIsLostWhenTheReactorSpinsBeforeItBlocks) {
  hammer(IdleMode::automatic);
}

TEST(Flag, AReactorThatWaitsForASilentWriterDoesNotSleep) {
  constexpr std::uint64_t kRounds = 200;
  Reactor reactor(idle(IdleMode::block));
  FlagPoller poller(reactor);
  Flag question(reactor);
  question.set_silent(true);
  Flag answered;
  std::thread hardware([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      question.word().store(round, std::memory_order_release);  // wakes nobody
      answered.block_until(round);
    }
  });
  reactor.run(answer(poller, question, answered, kRounds));
  hardware.join();
  EXPECT_EQ(reactor.counters().blocked, 0u);
}

TEST(Flag, TheTimeOfAStoreIsThatOfTheReactorsClock) {
  class FixedClock final : public Clock {
   public:
    Instant now() noexcept override { return Instant(std::chrono::seconds(5)); }
  } clock;
  ReactorOptions options;
  options.clock = &clock;
  Reactor reactor(options);
  Flag flag(reactor);
  flag.store(1);
  EXPECT_EQ(flag.stored_at(), Instant(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace weft::gpu
