// Goal: the eventfd is rung only for a sleeper, and between the two sides no wake-up is lost.
#include "weft/runtime/wakeup.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace weft {
namespace {

bool rung(int fd) {
  pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(Wakeup, RingsOnlyForASleeper) {
  const UniqueFd fd = make_event_fd();
  SleepWord word;
  wake_if_asleep(word, fd.get());
  EXPECT_FALSE(rung(fd.get()));
  go_to_sleep(word);
  wake_if_asleep(word, fd.get());
  wake_if_asleep(word, fd.get());
  EXPECT_TRUE(rung(fd.get()));
  stay_awake(word);
  drain_event_fd(fd.get());
  EXPECT_FALSE(rung(fd.get()));
  drain_event_fd(fd.get());  // empty: does not block
}

TEST(Wakeup, ASleeperThatSawNoWorkIsRung) {
  const UniqueFd fd = make_event_fd();
  SleepWord word;
  std::atomic<int> work{0};
  constexpr int kRounds = 20'000;
  std::thread producer([&] {
    for (int i = 1; i <= kRounds; ++i) {
      work.store(i, std::memory_order_release);
      wake_if_asleep(word, fd.get());
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  int seen = 0;
  while (seen < kRounds) {
    go_to_sleep(word);
    if (work.load(std::memory_order_acquire) == seen) {
      pollfd watched{.fd = fd.get(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&watched, 1, 20'000), 1) << "a wake-up was lost after " << seen;
      drain_event_fd(fd.get());
    }
    stay_awake(word);
    seen = work.load(std::memory_order_acquire);
  }
  producer.join();
}

}  // namespace
}  // namespace weft
