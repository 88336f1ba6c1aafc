// Field report D24: Ctrl-C, TERM, HUP and KILL to the launcher, a terminal that closes, ranks that do not want to end
// and ranks with children. Nothing of the job may survive, what was written is shown, the status is 128 + signal.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <tuple>

#include "net/launch/launched.hpp"
#include "weft/net/launch/exit_report.hpp"

namespace weft::net::launch {
namespace {

using testing::kHangMs;
using testing::Launched;
using testing::shell_job;

struct Habit {
  const char* name;
  const char* script;  // says "ready" and then does not end by itself
};

constexpr Habit kHabits[] = {
    {"Sleeps", "echo ready; exec sleep 600"},
    {"IgnoresSignals", "trap '' TERM INT HUP QUIT; echo ready; while :; do sleep 1; done"},
    {"HasAChild", "sleep 600 & echo ready; wait"},
    {"HasAChildInASessionOfItsOwn", "setsid sleep 600 & echo ready; wait"},
    {"HasAChildWithoutOutput", "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo ready; wait"},
    {"Spins", "echo ready; while :; do :; done"},
    {"IsStopped", "echo ready; kill -STOP $$"},
};

class WeftrunSignal : public ::testing::TestWithParam<std::tuple<int, Habit>> {};

TEST_P(WeftrunSignal, D24EndsTheWholeJob) {
  const auto& [signal, habit] = GetParam();
  Launched job(shell_job(2, habit.script));
  ASSERT_TRUE(job.wait_for("ready", 2)) << job.err();
  job.signal(signal);
  if (signal == SIGKILL) {
    EXPECT_EQ(job.wait(), 137);
    EXPECT_EQ(job.left_behind_at_last(), "");
  } else {
    EXPECT_EQ(job.wait(), 128 + signal) << job.err();
    EXPECT_EQ(job.left_behind(), "");
    EXPECT_NE(job.err().find("weftrun: got " + signal_name(signal)), std::string::npos) << job.err();
  }
}

INSTANTIATE_TEST_SUITE_P(Habits, WeftrunSignal,
                         ::testing::Combine(::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGKILL),
                                            ::testing::ValuesIn(kHabits)),
                         [](const auto& test) {
                           return signal_name(std::get<0>(test.param)) + std::get<1>(test.param).name;
                         });

TEST(WeftrunSignals, D24ASecondCtrlCEndsAtOnce) {
  Launched job(shell_job(2, "trap '' TERM INT; echo ready; while :; do sleep 1; done"));
  ASSERT_TRUE(job.wait_for("ready", 2));
  job.signal(SIGINT);
  ASSERT_TRUE(job.wait_for_error("got SIGINT, passed it on to ranks 0-1"));
  // Again until it counts as a second one: the first repetitions may be taken for the same Ctrl-C.
  for (int i = 0; i < kHangMs / 50 && !job.ended_within(50); ++i)
    job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 130);
  EXPECT_NE(job.err().find("got SIGINT again: sent SIGKILL"), std::string::npos) << job.err();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunSignals, D24OutputWrittenBeforeAndInTheTrapIsShown) {
  Launched job(
      shell_job(1, "trap 'echo goodbye; exit 7' TERM; printf 'ready\\nhalf a line'; while :; do sleep 0.1; done"));
  ASSERT_TRUE(job.wait_for("ready"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143) << job.err();
  EXPECT_NE(job.out().find("half a line"), std::string::npos);
  EXPECT_NE(job.out().find("goodbye\n"), std::string::npos);
}

TEST(WeftrunSignals, D24KillingTheGroupOfTheLauncherLeavesNothing) {
  Launched job(shell_job(2, "setsid sleep 600 & sleep 600 & echo ready; wait"));
  ASSERT_TRUE(job.wait_for("ready", 2));
  job.signal_group(SIGKILL);
  EXPECT_EQ(job.wait(), 137);
  EXPECT_EQ(job.left_behind_at_last(), "");
}

TEST(WeftrunSignals, D24KillEndsAlsoChildrenThatHaveLeftTheGroupOrTheEnvironment) {
  Launched job(shell_job(2, "env -i sleep 600 & setsid sleep 600 & echo ready; wait"));
  ASSERT_TRUE(job.wait_for("ready", 2));
  const auto children = job.family();
  ASSERT_GE(children.size(), 6U);  // two shells with two children each, and the guard
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(), 137);
  EXPECT_EQ(job.left_behind_at_last(), "");
  EXPECT_TRUE(testing::all_gone(children));
}

TEST(WeftrunSignals, D24KillRightAfterTheStartLeavesNothing) {
  // No synchronisation on purpose: the signal meets the launcher somewhere within its start.
  for (int i = 0; i < 50; ++i) {
    Launched job(shell_job(8, "sleep 600 & wait"));
    job.ended_within(i / 2);
    job.signal(SIGKILL);
    ASSERT_EQ(job.wait(), 137);
    ASSERT_EQ(job.left_behind_at_last(), "");
  }
}

TEST(WeftrunSignals, D24ChildrenOfRanksThatReturned0AreEnded) {
  Launched job(shell_job(2, "sleep 600 & setsid sleep 600 >/dev/null 2>&1 & exit 0"));
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunSignals, AChildThatStillHasLinesToWriteMayFinish) {
  Launched job(shell_job(1, "(sleep 0.2; echo late) & exit 0"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "[0] late\n");
}

TEST(WeftrunSignals, D24CtrlCAtATerminalGoesThroughTheLauncher) {
  Launched::Options options;
  options.terminal = true;
  Launched job(shell_job(2, "echo ready; exec sleep 600"), options);
  ASSERT_TRUE(job.wait_for("ready", 2));
  job.type("\x03");
  EXPECT_EQ(job.wait(), 130) << job.out();
  EXPECT_NE(job.out().find("got SIGINT"), std::string::npos) << job.out();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunSignals, D24AClosedTerminalEndsTheJob) {
  Launched::Options options;
  options.terminal = true;
  Launched job(shell_job(2, "sleep 600 & echo ready; wait"), options);
  ASSERT_TRUE(job.wait_for("ready", 2));
  job.close_terminal();
  EXPECT_EQ(job.wait(), 128 + SIGHUP);
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunSignals, WhatIsTypedReachesRank0) {
  Launched::Options options;
  options.terminal = true;
  Launched job(
      shell_job(2, "[ $RANK = 1 ] && exit 0; echo ready; read line; echo \"read <$line>\"; read more || echo end"),
      options);
  ASSERT_TRUE(job.wait_for("ready"));
  job.type("hello\n");
  ASSERT_TRUE(job.wait_for("read <hello>")) << job.out();
  job.type("\x04");  // Ctrl-D
  ASSERT_TRUE(job.wait_for("[0] end")) << job.out();
  EXPECT_EQ(job.wait(), 0);
}

TEST(WeftrunSignals, UserSignalsReachTheRanksAndEndNothing) {
  Launched job(shell_job(2, "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.1; done"));
  ASSERT_TRUE(job.wait_for("ready", 2));
  job.signal(SIGUSR1);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.out().find("[0] got it\n"), std::string::npos);
  EXPECT_NE(job.out().find("[1] got it\n"), std::string::npos);
}

}  // namespace
}  // namespace weft::net::launch
