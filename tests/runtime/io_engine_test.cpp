// Goal: both io engines keep the contract of IoEngine, so nothing above needs to know which one it has.
#include "weft/runtime/io_engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "weft/runtime/unique_fd.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

class Recorder final : public IoHandler {
 public:
  void on_io(IoEvents events) noexcept override {
    ++calls;
    last = events;
    readable += events.readable ? 1 : 0;
    writable += events.writable ? 1 : 0;
    hangup += events.hangup ? 1 : 0;
    if (then) then();
  }
  void forget() { calls = readable = writable = hangup = 0; }

  int calls = 0;
  int readable = 0;
  int writable = 0;
  int hangup = 0;
  IoEvents last;
  std::function<void()> then;
};

struct Pair {
  UniqueFd a;
  UniqueFd b;
};

Pair make_socket_pair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return Pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Pair make_pipe() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
  return Pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void put(int fd, const char* text = "x") {
  ASSERT_EQ(::write(fd, text, std::char_traits<char>::length(text)), ssize_t(std::char_traits<char>::length(text)));
}

std::size_t drain(int fd) {
  std::array<char, 4096> buffer;
  std::size_t total = 0;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return total;
    total += std::size_t(got);
  }
}

class IoEngineTest : public testing::TestWithParam<IoEngineKind> {
 protected:
  void SetUp() override {
    try {
      engine_ = make_io_engine(GetParam());
    } catch (const Error& error) {
      if (GetParam() == IoEngineKind::io_uring && error.code() == Errc::unsupported) GTEST_SKIP() << error.what();
      throw;
    }
  }

  /// Polls until nothing is delivered any more; what is already true is reported by then.
  void settle() {
    while (engine_->poll()) {
    }
  }
  /// Waits until `done`, within what a broken engine would never reach.
  template <typename Done>
  [[nodiscard]] bool wait_until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      engine_->wait(100ms);
    }
    return true;
  }
  void add(int fd, IoHandler& handler) { ASSERT_TRUE(engine_->add(fd, handler).ok()); }

  std::unique_ptr<IoEngine> engine_;
};

TEST_P(IoEngineTest, HasTheNameThatWasAskedFor) {
  EXPECT_STREQ(engine_->name(), GetParam() == IoEngineKind::epoll ? "epoll" : "io_uring");
}

TEST_P(IoEngineTest, ReportsOnceWhatHoldsWhenADescriptorIsAdded) {
  Pair pair = make_socket_pair();
  put(pair.b.get());
  Recorder recorder;
  add(pair.a.get(), recorder);
  settle();
  EXPECT_EQ(recorder.calls, 1);
  EXPECT_TRUE(recorder.last.readable);
  EXPECT_TRUE(recorder.last.writable);
  EXPECT_FALSE(recorder.last.hangup);
  // Expect: no second report of the same state, although the byte is still there.
  EXPECT_FALSE(engine_->poll());
  EXPECT_FALSE(engine_->wait(1ms));
  EXPECT_EQ(recorder.calls, 1);
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, ReportsEachNewArrival) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  add(pair.a.get(), recorder);
  settle();
  for (int round = 0; round < 1000; ++round) {
    recorder.forget();
    put(pair.b.get());
    ASSERT_TRUE(wait_until([&] { return recorder.readable != 0; })) << "round " << round;
    EXPECT_EQ(drain(pair.a.get()), 1U);
    settle();
  }
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, AnArrivalDuringTheReportOfAnotherIsNotLost) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  std::size_t received = 0;
  int to_send = 100;
  recorder.then = [&] {
    received += drain(pair.a.get());
    if (to_send > 0) {
      --to_send;
      put(pair.b.get());
    }
  };
  add(pair.a.get(), recorder);
  EXPECT_TRUE(wait_until([&] { return received == 100; })) << received;
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, ReportsRoomAfterAWriterWasBlocked) {
  for (auto make : {make_socket_pair, make_pipe}) {
    Pair pair = make();
    const int writer = pair.b.get();
    Recorder recorder;
    add(writer, recorder);
    settle();
    EXPECT_GE(recorder.writable, 1);
    std::array<char, 4096> block{};
    while (::write(writer, block.data(), block.size()) > 0) {
    }
    ASSERT_EQ(errno, EAGAIN);
    settle();
    recorder.forget();
    EXPECT_FALSE(engine_->wait(1ms));
    drain(pair.a.get());
    EXPECT_TRUE(wait_until([&] { return recorder.writable != 0; }));
    engine_->remove(writer);
  }
}

TEST_P(IoEngineTest, ReportsTheOtherEndsDeathAsReadableAndHangup) {
  for (auto make : {make_socket_pair, make_pipe}) {
    Pair pair = make();
    Recorder recorder;
    add(pair.a.get(), recorder);
    settle();
    recorder.forget();
    pair.b.reset();
    EXPECT_TRUE(wait_until([&] { return recorder.hangup != 0; }));
    EXPECT_GE(recorder.readable, 1);
    engine_->remove(pair.a.get());
  }
}

TEST_P(IoEngineTest, RemoveFromInsideItsOwnReportEndsReports) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  recorder.then = [&] { engine_->remove(pair.a.get()); };
  add(pair.a.get(), recorder);
  settle();
  EXPECT_EQ(recorder.calls, 1);
  put(pair.b.get());
  EXPECT_FALSE(engine_->wait(1ms));
  EXPECT_EQ(recorder.calls, 1);
}

TEST_P(IoEngineTest, RemoveFromInsideAnotherReportDropsWhatWasAlreadyReaped) {
  // Goal: all descriptors are ready in one batch; the first report removes all others.
  constexpr std::size_t kCount = 20;
  std::vector<Pair> pairs;
  std::vector<Recorder> recorders(kCount);
  int calls = 0;
  for (std::size_t i = 0; i < kCount; ++i)
    pairs.push_back(make_socket_pair());
  for (std::size_t i = 0; i < kCount; ++i) {
    recorders[i].then = [&, i] {
      ++calls;
      for (std::size_t other = 0; other < kCount; ++other) {
        if (other != i) engine_->remove(pairs[other].a.get());
      }
    };
    add(pairs[i].a.get(), recorders[i]);
  }
  settle();
  EXPECT_EQ(calls, 1);
  for (Pair& pair : pairs)
    engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, AddFromInsideAReport) {
  Pair outer = make_socket_pair();
  std::vector<Pair> inner;
  for (int i = 0; i < 200; ++i)
    inner.push_back(make_socket_pair());
  Recorder recorder;
  Recorder inner_recorder;
  recorder.then = [&] {
    if (recorder.calls > 1) return;
    for (Pair& pair : inner)
      EXPECT_TRUE(engine_->add(pair.a.get(), inner_recorder).ok());
  };
  add(outer.a.get(), recorder);
  EXPECT_TRUE(wait_until([&] { return inner_recorder.calls == 200; })) << inner_recorder.calls;
  for (Pair& pair : inner)
    engine_->remove(pair.a.get());
  engine_->remove(outer.a.get());
}

TEST_P(IoEngineTest, ANumberUsedAgainGetsNoEventOfItsFormerDescriptor) {
  for (int round = 0; round < 100; ++round) {
    Pair old = make_socket_pair();
    Recorder old_recorder;
    add(old.a.get(), old_recorder);
    settle();
    put(old.b.get());  // an event that nobody has reaped
    const int number = old.a.get();
    engine_->remove(number);
    old_recorder.forget();
    old.a.reset();

    Pair fresh = make_pipe();
    if (fresh.a.get() != number) {
      ASSERT_EQ(::dup3(fresh.a.get(), number, O_CLOEXEC), number);
      fresh.a.reset(number);
    }
    Recorder recorder;
    add(number, recorder);
    settle();
    EXPECT_EQ(old_recorder.calls, 0);
    EXPECT_EQ(recorder.readable, 0) << "the event belongs to the socket that had this number before";
    put(fresh.b.get());
    EXPECT_TRUE(wait_until([&] { return recorder.readable != 0; }));
    engine_->remove(number);
  }
}

TEST_P(IoEngineTest, AfterRemoveACloseReachesThePeerAtOnce) {
  // Goal: the engine holds no reference to the open file.
  Pair pair = make_socket_pair();
  Recorder recorder;
  add(pair.a.get(), recorder);
  settle();
  engine_->remove(pair.a.get());
  pair.a.reset();
  char byte = 0;
  EXPECT_EQ(::read(pair.b.get(), &byte, 1), 0) << "end of stream";
}

TEST_P(IoEngineTest, RemoveOfWhatIsNotWatchedDoesNothing) {
  Pair pair = make_pipe();
  engine_->remove(pair.a.get());
  engine_->remove(100000);
  engine_->remove(-1);
  EXPECT_FALSE(engine_->poll());
}

TEST_P(IoEngineTest, RefusesADescriptorThatIsNotOpen) {
  Pair pair = make_pipe();
  const int number = pair.a.get();
  pair.a.reset();
  Recorder recorder;
  const Outcome outcome = engine_->add(number, recorder);
  EXPECT_EQ(outcome.code, Errc::io);
  EXPECT_EQ(outcome.native, EBADF);
  // Expect: nothing remains of the attempt.
  Pair fresh = make_pipe();
  EXPECT_TRUE(engine_->add(fresh.a.get(), recorder).ok());
  engine_->remove(fresh.a.get());
}

TEST_P(IoEngineTest, AWaitWithNothingToReportIsNotEarly) {
  for (const Duration timeout : {Duration(200us), Duration(3ms), Duration(1500us)}) {
    // A wait may end early (the kernel still has to tear down the ring of the test before), but not every time.
    bool waited_enough = false;
    for (int attempt = 0; attempt < 20 && !waited_enough; ++attempt) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(engine_->wait(timeout));
      waited_enough = std::chrono::steady_clock::now() - begin >= timeout;
    }
    EXPECT_TRUE(waited_enough) << timeout.count() << " ns";
  }
  EXPECT_FALSE(engine_->wait(Duration::zero()));
  EXPECT_FALSE(engine_->wait(-1s));
}

TEST_P(IoEngineTest, AnEventfdWrittenByAnotherThreadEndsAWaitWithoutLimit) {
  UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  Recorder recorder;
  add(event.get(), recorder);
  settle();
  for (int round = 0; round < 200; ++round) {
    recorder.forget();
    std::thread other([&] {
      const std::uint64_t one = 1;
      ASSERT_EQ(::write(event.get(), &one, sizeof one), ssize_t(sizeof one));
    });
    while (recorder.readable == 0)
      engine_->wait(Duration::max());
    other.join();
    drain(event.get());
  }
  engine_->remove(event.get());
}

TEST_P(IoEngineTest, ManyDescriptorsAllReport) {
  constexpr std::size_t kCount = 1000;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 3 * kCount) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 3 * kCount);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  if (limit.rlim_cur < 3 * kCount) GTEST_SKIP() << "RLIMIT_NOFILE is " << limit.rlim_cur;
  std::vector<Pair> pairs;
  std::vector<Recorder> recorders(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    pairs.push_back(make_socket_pair());
    add(pairs[i].a.get(), recorders[i]);
  }
  // Goal: more edges than the ring of the io_uring engine holds, twice, before anybody looks.
  for (int round = 0; round < 3; ++round) {
    settle();
    for (Recorder& recorder : recorders)
      recorder.forget();
    for (Pair& pair : pairs)
      put(pair.b.get());
    ASSERT_TRUE(wait_until([&] {
      for (const Recorder& recorder : recorders) {
        if (recorder.readable == 0) return false;
      }
      return true;
    })) << "round "
        << round;
    for (Pair& pair : pairs)
      EXPECT_EQ(drain(pair.a.get()), 1U);
  }
  for (Pair& pair : pairs)
    engine_->remove(pair.a.get());
  pairs.clear();
  EXPECT_FALSE(engine_->poll());
}

TEST_P(IoEngineTest, ASignalDoesNotBreakAWait) {
  // Goal: SIGALRM with a handler and without SA_RESTART interrupts waits; events still come, and nothing fails.
  static std::atomic<int> alarms;
  alarms = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { ++alarms; };
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{.it_interval = {0, 500}, .it_value = {0, 500}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);

  Pair pair = make_socket_pair();
  Recorder recorder;
  add(pair.a.get(), recorder);
  settle();
  while (alarms < 20)
    engine_->wait(Duration::max());
  for (int round = 0; round < 50; ++round) {
    recorder.forget();
    const int seen = alarms;
    while (alarms == seen)
      engine_->wait(1s);
    put(pair.b.get());
    EXPECT_TRUE(wait_until([&] { return recorder.readable != 0; }));
    drain(pair.a.get());
  }
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, MayBeMadeOnAnotherThreadThanTheOneItRunsOn) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  std::thread maker([&] { add(pair.a.get(), recorder); });
  maker.join();
  put(pair.b.get());
  EXPECT_TRUE(wait_until([&] { return recorder.readable != 0; }));
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, MayBeTakenDownAfterTheThreadThatRanItHasEnded) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  std::thread runner([&] {
    add(pair.a.get(), recorder);
    EXPECT_TRUE(wait_until([&] { return recorder.calls != 0; }));
  });
  runner.join();
  engine_->remove(pair.a.get());
  pair.a.reset();
  // Expect: nothing in the kernel holds the socket open.
  ASSERT_EQ(::fcntl(pair.b.get(), F_SETFL, 0), 0);
  char byte = 0;
  EXPECT_EQ(::read(pair.b.get(), &byte, 1), 0) << "end of stream";
}

TEST_P(IoEngineTest, GoesOnWhenAnotherThreadTakesOver) {
  Pair pair = make_socket_pair();
  Recorder recorder;
  std::thread first([&] {
    add(pair.a.get(), recorder);
    EXPECT_TRUE(wait_until([&] { return recorder.calls != 0; }));
  });
  first.join();
  recorder.forget();
  put(pair.b.get());
  EXPECT_TRUE(wait_until([&] { return recorder.readable != 0; }));
  engine_->remove(pair.a.get());
}

TEST_P(IoEngineTest, RunningOutOfDescriptorsIsAnErrorThatSaysSo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Errc code = Errc::ok;
  std::string text;
  try {
    const auto engine = make_io_engine(GetParam());
  } catch (const Error& error) {
    code = error.code();
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, Errc::exhausted) << text;
}

INSTANTIATE_TEST_SUITE_P(Engines, IoEngineTest, testing::Values(IoEngineKind::io_uring, IoEngineKind::epoll),
                         [](const auto& test) { return test.param == IoEngineKind::epoll ? "Epoll" : "IoUring"; });

class IoEngineChoice : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("WEFT_IO_ENGINE"); }
};

TEST_F(IoEngineChoice, TheEnvironmentDecidesWhenTheProgramDoesNot) {
  ::setenv("WEFT_IO_ENGINE", "epoll", 1);
  EXPECT_STREQ(make_io_engine(IoEngineKind::automatic)->name(), "epoll");
  ::setenv("WEFT_IO_ENGINE", "auto", 1);
  std::string notice;
  const auto engine = make_io_engine(IoEngineKind::automatic, &notice);
  // Expect: a notice exactly when io_uring was refused.
  EXPECT_EQ(std::string(engine->name()) == "epoll", !notice.empty()) << notice;
}

TEST_F(IoEngineChoice, AMistypedEnvironmentIsAnErrorThatNamesIt) {
  ::setenv("WEFT_IO_ENGINE", "iouring", 1);
  try {
    const auto engine = make_io_engine(IoEngineKind::automatic);
    FAIL() << engine->name();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_environment);
    EXPECT_NE(std::string(error.what()).find("WEFT_IO_ENGINE"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("iouring"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft
