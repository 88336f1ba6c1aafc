// Goal: a reactor runs what is ready, polls and sleeps by its rules, loses no wake-up, and names misuse.
#include "weft/runtime/reactor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/manual_clock.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

Task<int> give(int value) { co_return value; }
Task<Reactor*> current_in_task() { co_return Reactor::current(); }

TEST(Reactor, IsTheCurrentOneWhereItRuns) {
  std::thread([] {
    EXPECT_EQ(Reactor::current(), nullptr);
    {
      Reactor reactor;
      EXPECT_EQ(Reactor::current(), nullptr);
      EXPECT_EQ(reactor.run(current_in_task()), &reactor);
    }
    EXPECT_EQ(Reactor::current(), nullptr);
  }).join();
}

TEST(Reactor, RunsOneTaskAfterTheOther) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(give(1)), 1);
  EXPECT_EQ(reactor.run(give(2)), 2);
}

class CountingPoller final : public Poller {
 public:
  bool poll() noexcept override {
    ++polls;
    if (event != nullptr && polls == set_at) event->set();
    return false;
  }
  bool prepare_to_block() noexcept override {
    ++prepared;
    EXPECT_FALSE(blocking);
    if (refusals > 0) {
      --refusals;
      return false;
    }
    blocking = true;
    return true;
  }
  void after_block() noexcept override {
    EXPECT_TRUE(blocking);
    blocking = false;
  }
  int polls = 0;
  int prepared = 0;
  int refusals = 0;
  bool blocking = false;
  int set_at = -1;
  Event* event = nullptr;
};

Task<void> wait_for(Event* event) { co_await event->wait(); }

TEST(Reactor, PollsInEveryTurnAndResumesWhoAPollerWoke) {
  ReactorOptions options;
  options.idle.mode = IdleMode::spin;
  Reactor reactor(options);
  Event event;
  CountingPoller poller;
  poller.event = &event;
  poller.set_at = 100;
  reactor.add_poller(poller);
  reactor.run(wait_for(&event));
  reactor.remove_poller(poller);
  EXPECT_EQ(poller.polls, 100);
  EXPECT_EQ(poller.prepared, 0);
  EXPECT_EQ(reactor.counters().blocked, 0U);
}

Task<void> keep_yielding(bool* stop) {
  while (!*stop) co_await yield();
}
Task<void> busy_with_poller(Nursery& nursery, Event* event) {
  auto stop = std::make_unique<bool>(false);
  nursery.start(keep_yielding(stop.get()));
  nursery.start(keep_yielding(stop.get()));
  co_await event->wait();
  *stop = true;
  co_await yield();
  co_await yield();
}

TEST(Reactor, CoroutinesThatAreAlwaysReadyDoNotStarvePollersOrTimers) {
  Reactor reactor;
  Event event;
  CountingPoller poller;
  poller.event = &event;
  poller.set_at = 50;
  reactor.add_poller(poller);
  reactor.run(with_nursery(&busy_with_poller, &event));
  reactor.remove_poller(poller);

  Event by_timer;
  class SetLater final : public Timer {
   public:
    explicit SetLater(Event& set) : event_(set) {}
    void on_timer() noexcept override { event_.set(); }

   private:
    Event& event_;
  } timer(by_timer);
  reactor.timers().arm(timer, steady_clock().now() + 1ms);
  reactor.run(with_nursery(&busy_with_poller, &by_timer));
}

Task<void> nap() { co_await sleep_for(2ms); }

TEST(Reactor, ArmsEveryPollerBeforeItBlocksAndDisarmsThoseThatWereArmed) {
  ReactorOptions options;
  options.idle.mode = IdleMode::block;
  Reactor reactor(options);
  CountingPoller first;
  CountingPoller second;
  second.refusals = 3;
  reactor.add_poller(first);
  reactor.add_poller(second);
  reactor.run(nap());
  EXPECT_FALSE(first.blocking);
  EXPECT_FALSE(second.blocking);
  EXPECT_EQ(first.prepared, second.prepared);
  EXPECT_GE(second.prepared, 4);
  EXPECT_EQ(reactor.counters().blocked, static_cast<std::uint64_t>(second.prepared - 3));
  reactor.remove_poller(first);
  reactor.remove_poller(second);
}

// Ping-pong of mail between a sleeping reactor and a thread: a lost wake-up would hang.
class Ping final : public MailboxItem {
 public:
  void deliver() noexcept override { event.set(); }
  Event event;
};
Task<void> answer(Ping* ping, std::atomic<int>* answered, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    co_await ping->event.wait();
    ping->event.reset();
    answered->store(i + 1, std::memory_order_release);
    answered->notify_one();
  }
}

TEST(Reactor, NoMailIsLostWhileItFallsAsleep) {
  for (const IoEngineKind engine : {IoEngineKind::automatic, IoEngineKind::epoll}) {
    for (const Duration spin : {Duration::zero(), Duration(20us)}) {
      ReactorOptions options;
      options.idle.spin = spin;
      options.io = engine;
      Reactor reactor(options);
      Ping ping;
      std::atomic<int> answered = 0;
      constexpr int kRounds = 2000;
      std::thread sender([&] {
        for (int i = 0; i < kRounds; ++i) {
          reactor.post(ping);
          for (int before = answered.load(std::memory_order_acquire); before <= i;
               before = answered.load(std::memory_order_acquire)) {
            answered.wait(before, std::memory_order_acquire);
          }
        }
      });
      reactor.run(answer(&ping, &answered, kRounds));
      sender.join();
    }
  }
}

// The item ends the reactor while its poster may still be inside post().
Task<void> run_until(Ping* ping) { co_await ping->event.wait(); }

TEST(Reactor, MayEndWhileThePosterOfItsLastMailIsStillAtIt) {
  for (int i = 0; i < 300; ++i) {
    auto reactor = std::make_unique<Reactor>();
    Ping ping;
    std::thread poster([target = reactor.get(), &ping] { target->post(ping); });
    reactor->run(run_until(&ping));
    reactor.reset();
    poster.join();
  }
}

TEST(Reactor, WakeEndsABlockingWait) {
  class FlagPoller final : public Poller {
   public:
    bool poll() noexcept override {
      if (!flag.exchange(false)) return false;
      event.set();
      return true;
    }
    bool prepare_to_block() noexcept override { return !flag.load(); }
    void after_block() noexcept override {}
    std::atomic<bool> flag{false};
    Event event;
  } poller;
  ReactorOptions options;
  options.idle.mode = IdleMode::block;
  Reactor reactor(options);
  reactor.add_poller(poller);
  for (int i = 0; i < 200; ++i) {
    poller.event.reset();
    std::thread waker([&] {
      poller.flag = true;
      reactor.wake();
    });
    reactor.run(wait_for(&poller.event));
    waker.join();
  }
  reactor.remove_poller(poller);
}

Task<void> run_inside(Reactor* reactor) {
  (void)reactor->run(give(1));
  co_return;
}

TEST(ReactorDeathTest, MisuseIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Reactor().run(Task<void>()), "Reactor::run: an empty task");
  EXPECT_DEATH(
      {
        Reactor reactor;
        reactor.run(run_inside(&reactor));
      },
      "called while the reactor runs");
  EXPECT_DEATH(
      {
        Reactor first;
        Reactor second;
        first.run(give(1));
        second.run(give(1));
      },
      "this thread has another reactor");
  EXPECT_DEATH(
      {
        Reactor reactor;
        reactor.run(give(1));
        std::thread([&] { reactor.run(give(1)); }).join();
      },
      "belongs to another thread");
  EXPECT_DEATH(
      {
        CountingPoller poller;
        Reactor reactor;
        reactor.add_poller(poller);
      },
      "destroyed with pollers");
  EXPECT_DEATH(
      {
        Ping ping;
        Reactor reactor;
        reactor.post(ping);
      },
      "undelivered mail");
}

}  // namespace
}  // namespace weft
