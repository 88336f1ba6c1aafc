// Goal: a HostStream has the order of a CUDA stream: first in, first out, beside the caller, tied to other streams by
// flags and events only; and what its work throws reaches those who wait.
#include "weft/gpu/host_stream.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/gpu/stream.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::gpu {
namespace {

void run(Task<void> (*test)()) {
  Reactor reactor;
  reactor.run(test());
}

TEST(HostStream, WorkRunsInTheOrderOfItsEnqueuing) {
  run([]() -> Task<void> {
    std::vector<int> order;  // before the stream: its destructor waits for work that refers to it
    HostStream stream;
    for (int i = 0; i < 1000; ++i)
      stream.launch([&order, i] { order.push_back(i); });
    co_await stream.synchronize();
    EXPECT_EQ(order.size(), 1000u);
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  });
}

TEST(HostStream, EnqueuingDoesNotWaitForTheWork) {
  run([]() -> Task<void> {
    Flag gate;
    std::atomic<bool> done{false};
    HostStream stream;
    stream.wait_value(gate, 1);
    stream.launch([&done] { done = true; });
    // Expect: the caller is here while the stream stands at its gate, and the caller opens it.
    EXPECT_FALSE(done);
    gate.store(1);
    co_await stream.synchronize();
    EXPECT_TRUE(done);
  });
}

TEST(HostStream, StreamsAreIndependentOfEachOther) {
  run([]() -> Task<void> {
    Flag gate;
    int ran = 0;
    HostStream closed;
    HostStream open;
    closed.wait_value(gate, 1);
    open.launch([&ran] { ran = 1; });
    co_await open.synchronize();
    EXPECT_EQ(ran, 1);
    gate.store(1);
    co_await closed.synchronize();
  });
}

TEST(HostStream, AFlagIsWrittenAfterAllEarlierWork) {
  run([]() -> Task<void> {
    Reactor& reactor = *Reactor::current();
    FlagPoller poller(reactor);
    Flag flag(reactor);
    int value = 0;
    HostStream stream;
    for (std::uint64_t round = 1; round <= 500; ++round) {
      stream.launch([&value] { ++value; });
      stream.write_value(flag, round);
      co_await poller.until(flag, round);
      EXPECT_EQ(value, static_cast<int>(round));
    }
  });
}

TEST(HostStream, AnEventOrdersOneStreamAfterTheOther) {
  run([]() -> Task<void> {
    Flag gate;
    HostEvent event;
    std::vector<int> order;
    HostStream first;
    HostStream second;
    first.wait_value(gate, 1);
    first.launch([&order] { order.push_back(1); });
    first.record(event);
    second.wait(event);
    second.launch([&order] { order.push_back(2); });
    gate.store(1);
    co_await second.synchronize();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
  });
}

TEST(HostStream, AWaitForAnEventThatWasNeverRecordedDoesNothing) {
  run([]() -> Task<void> {
    HostEvent event;
    HostStream stream;
    stream.wait(event);
    co_await stream.synchronize();
  });
}

TEST(HostStream, AWaitMeansTheLatestRecordBeforeIt) {
  run([]() -> Task<void> {
    Flag gate;
    HostEvent event;
    HostStream recorder;
    HostStream waiter;
    recorder.record(event);
    waiter.wait(event);
    recorder.wait_value(gate, 1);
    recorder.record(event);
    // Expect: the second record stands behind a closed gate; the wait does not mean it.
    co_await waiter.synchronize();
    gate.store(1);
    co_await recorder.synchronize();
  });
}

TEST(HostStream, PingPongBetweenTwoStreamsKeepsItsOrder) {
  run([]() -> Task<void> {
    constexpr std::uint64_t kRounds = 2000;
    Flag ping;
    Flag pong;
    std::uint64_t value = 0;  // only the flags keep the two workers apart
    HostStream left;
    HostStream right;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      left.wait_value(pong, round - 1);
      left.launch([&value] { ++value; });
      left.write_value(ping, round);
      right.wait_value(ping, round);
      right.launch([&value] { ++value; });
      right.write_value(pong, round);
    }
    co_await left.synchronize();
    co_await right.synchronize();
    EXPECT_EQ(value, 2 * kRounds);
  });
}

TEST(HostStream, CopyMovesBytesInStreamOrder) {
  run([]() -> Task<void> {
    std::vector<int> from(1000);
    std::vector<int> to(1000);
    HostStream stream;
    stream.launch([&from] { from.assign(from.size(), 17); });
    stream.copy(std::as_writable_bytes(std::span(to)), std::as_bytes(std::span(from)));
    stream.copy({}, {});
    co_await stream.synchronize();
    EXPECT_EQ(to, from);
    EXPECT_EQ(to.back(), 17);
    bool refused = false;
    try {
      stream.copy(std::as_writable_bytes(std::span(to)), std::as_bytes(std::span(from)).first(3));
    } catch (const Error& error) {
      refused = error.code() == Errc::invalid_argument;
    }
    EXPECT_TRUE(refused);
  });
}

Task<std::string> what_synchronize_throws(HostStream& stream) {
  std::string text;
  try {
    co_await stream.synchronize();
  } catch (const std::exception& error) {
    text = error.what();
  }
  co_return text;
}

TEST(HostStream, AnErrorIsStickyAndLaterWorkIsDropped) {
  run([]() -> Task<void> {
    int ran = 0;
    HostStream stream;
    stream.launch([&ran] { ++ran; });
    stream.launch([] { throw std::runtime_error("division by sheep"); });
    stream.launch([&ran] { ++ran; });
    for (int i = 0; i < 3; ++i) {
      const std::string text = co_await what_synchronize_throws(stream);
      EXPECT_EQ(text, "division by sheep");
      stream.launch([&ran] { ++ran; });
    }
    EXPECT_EQ(ran, 1);
  });
}

TEST(HostStream, AnErrorTravelsAlongFlagsToOtherStreams) {
  run([]() -> Task<void> {
    HostEvent event;
    int ran = 0;
    HostStream broken;
    HostStream behind;
    HostStream beside;
    broken.launch([] { throw std::runtime_error("first"); });
    broken.record(event);
    behind.wait(event);
    behind.launch([&ran] { ++ran; });
    const Result<void> result = co_await as_result(behind.synchronize());
    EXPECT_EQ(result.code(), Errc::closed);
    EXPECT_EQ(ran, 0);
    co_await beside.synchronize();
    const std::string text = co_await what_synchronize_throws(broken);
    EXPECT_EQ(text, "first");
  });
}

TEST(HostStream, ADestructorWaitsForQueuedWork) {
  run([]() -> Task<void> {
    int ran = 0;
    {
      HostStream stream;
      for (int i = 0; i < 100; ++i)
        stream.launch([&ran] { ++ran; });
    }
    EXPECT_EQ(ran, 100);
    co_return;
  });
}

TEST(HostStream, ADestructorOfAFailedStreamEndsToo) {
  run([]() -> Task<void> {
    HostStream stream;
    stream.launch([] { throw 42; });
    co_return;
  });
}

TEST(HostStream, ADeadlineEndsSynchronizeAndNotTheWork) {
  run([]() -> Task<void> {
    Flag gate;
    int ran = 0;
    HostStream stream;
    stream.wait_value(gate, 1);
    stream.launch([&ran] { ++ran; });
    Task<void> limited = with_deadline(Duration::zero(), stream.synchronize());
    const Result<void> result = co_await as_result(std::move(limited));
    EXPECT_EQ(result.code(), Errc::timed_out);
    gate.store(1);
    co_await stream.synchronize();
    EXPECT_EQ(ran, 1);
  });
}

TEST(HostStream, CapturesDieWhenTheirWorkHasRun) {
  run([]() -> Task<void> {
    auto held = std::make_shared<int>(1);
    HostStream stream;
    stream.launch([held] { ++*held; });
    stream.launch([held]() noexcept {});
    co_await stream.synchronize();
    EXPECT_EQ(held.use_count(), 1);
  });
}

TEST(HostStream, ItsThreadIsNamedAndBlocksSignals) {
  run([]() -> Task<void> {
    std::string name(16, '\0');
    sigset_t mask;
    ::sigemptyset(&mask);
    HostStreamOptions options;
    options.name = "weft-test";
    HostStream stream(options);
    stream.launch([&name, &mask] {
      ::pthread_getname_np(::pthread_self(), name.data(), name.size());
      ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    });
    co_await stream.synchronize();
    EXPECT_STREQ(name.c_str(), "weft-test");
    EXPECT_EQ(::sigismember(&mask, SIGINT), 1);
    EXPECT_EQ(::sigismember(&mask, SIGTERM), 1);
  });
}

TEST(HostStream, AProcessorThatDoesNotExistIsRefused) {
  run([]() -> Task<void> {
    HostStreamOptions options;
    options.processor = 100000;
    Errc code = Errc::ok;
    try {
      const HostStream stream(options);
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_EQ(code, Errc::invalid_argument);
    co_return;
  });
}

TEST(HostStream, AThreadWithoutAReactorIsRefused) {
  EXPECT_THROW(HostStream(), Error);
}

// Two tasks feed two streams and wait for them at the same time, with a reactor that sleeps whenever it can.
Task<void> feed(int rounds, int* sum) {
  HostStream stream;
  for (int i = 0; i < rounds; ++i) {
    stream.launch([sum] { ++*sum; });
    co_await stream.synchronize();
  }
}

Task<void> feed_two(Nursery& nursery, int rounds, int* first, int* second) {
  nursery.start(feed(rounds, first));
  nursery.start(feed(rounds, second));
  co_return;
}

TEST(HostStream, ManySynchronizationsOfTwoStreamsLoseNone) {
  ReactorOptions options;
  options.idle.mode = IdleMode::block;
  Reactor reactor(options);
  int first = 0;
  int second = 0;
  reactor.run(with_nursery(&feed_two, 5000, &first, &second));
  EXPECT_EQ(first, 5000);
  EXPECT_EQ(second, 5000);
}

}  // namespace
}  // namespace weft::gpu
