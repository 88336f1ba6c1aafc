// What weftrun hands to the ranks, and what it refuses before it starts any.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "net/launch/launched.hpp"
#include "weft/net/launch/store_socket.hpp"

namespace weft::net::launch {
namespace {

using testing::Launched;
using testing::shell_job;

TEST(WeftrunStart, EveryRankSeesItsPlaceInTheJob) {
  Launched::Options options;
  options.environment = {"RANK=7", "WORLD_SIZE=1", "MASTER_ADDR=nosuch.invalid", "WEFT_STORE_FD=99"};
  Launched job(
      {"-n", "3", "--transport", "tcp", "--order", "canonical", "--timeout", "2.5", "--bind", "none", "sh", "-c",
       "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $WEFT_RANKS_PER_PROCESS $MASTER_ADDR "
       "$WEFT_TRANSPORT $WEFT_ORDER $WEFT_TIMEOUT $WEFT_BIND ${#WEFT_JOB_TOKEN} ${WEFT_STORE_FD:+store}"},
      options);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.out().find("[0] 0 3 0 3 1 127.0.0.1 tcp canonical 2.5 none 64 store\n"), std::string::npos)
      << job.out();
  EXPECT_NE(job.out().find("[1] 1 3 1 3 1 127.0.0.1 tcp canonical 2.5 none 64\n"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("[2] 2 3 2 3 1 127.0.0.1 tcp canonical 2.5 none 64\n"), std::string::npos) << job.out();
}

TEST(WeftrunStart, TokenAndPortAreTheSameForAllRanksAndNewForEveryJob) {
  const auto identity = [] {
    Launched job({"-n", "2", "--prefix", "off", "sh", "-c", "echo $WEFT_JOB_TOKEN $MASTER_PORT"});
    EXPECT_EQ(job.wait(), 0);
    std::istringstream lines(job.out());
    std::string first;
    std::string second;
    std::getline(lines, first);
    std::getline(lines, second);
    EXPECT_EQ(first, second);
    return first;
  };
  EXPECT_NE(identity(), identity());
}

TEST(WeftrunStart, SeveralRanksShareAProcess) {
  Launched job({"-n", "5", "--ranks-per-process", "2", "sh", "-c", "echo $RANK $WORLD_SIZE $WEFT_RANKS_PER_PROCESS"});
  EXPECT_EQ(job.wait(), 0);
  for (const char* line : {"[0] 0 5 2\n", "[2] 2 5 2\n", "[4] 4 5 2\n"}) {
    EXPECT_NE(job.out().find(line), std::string::npos) << job.out();
  }
  EXPECT_EQ(std::count(job.out().begin(), job.out().end(), '\n'), 3);
}

TEST(WeftrunStart, ADeathInAProcessOfSeveralRanksNamesThemAll) {
  Launched job({"-n", "4", "--ranks-per-process", "2", "sh", "-c", "[ $RANK = 2 ] && exit 9; exit 0"});
  EXPECT_EQ(job.wait(), 9);
  EXPECT_NE(job.err().find("weftrun: ranks 2-3 (pid "), std::string::npos) << job.err();
}

TEST(WeftrunStart, NoDescriptorLeaksIntoTheRanks) {
  const Descriptor extra(::dup(0));
  ASSERT_TRUE(extra);
  Launched::Options options;
  options.extra_fd = extra.get();
  // `ls` looks at the shell that waits for it, and that has no descriptor of its own for a command string.
  const std::string list = "ls -m /proc/$$/fd; echo store $WEFT_STORE_FD";
  Launched job(shell_job(2, list), options);
  EXPECT_EQ(job.wait(), 0) << job.err();
  const auto lines_of = [&](const std::string& prefix) {
    std::vector<std::string> lines;
    std::istringstream all(job.out());
    for (std::string line; std::getline(all, line);) {
      if (line.rfind(prefix, 0) == 0) lines.push_back(line.substr(prefix.size()));
    }
    return lines;
  };
  EXPECT_EQ(lines_of("[1] "), (std::vector<std::string>{"0, 1, 2", "store"}));
  const auto first = lines_of("[0] ");
  ASSERT_EQ(first.size(), 2U) << job.out();
  ASSERT_EQ(first[1].rfind("store ", 0), 0U) << job.out();
  EXPECT_EQ(first[0], "0, 1, 2, " + first[1].substr(6));
}

TEST(WeftrunStart, Rank0InheritsTheListeningSocketAndNobodyElseHoldsIt) {
  Launched job(shell_job(2, "[ $RANK = 0 ] && ls -l /proc/$$/fd/$WEFT_STORE_FD; echo ready; read x; exit 0"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_NE(job.out().find("socket:["), std::string::npos) << job.out();
}

TEST(WeftrunStart, SignalsAreAsInAFreshProcess) {
  Launched job({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_NE(job.out().find("SigBlk:\t0000000000000000"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("SigIgn:\t0000000000000000"), std::string::npos) << job.out();
}

TEST(WeftrunStart, RanksGetTheLimitOnDescriptorsThatTheLauncherWasGiven) {
  Launched job(shell_job(40, "[ $RANK = 0 ] && ulimit -Sn; exit 0"));
  EXPECT_EQ(job.wait(), 0);
  std::ifstream limits("/proc/self/limits");
  std::string soft;
  for (std::string line; std::getline(limits, line);) {
    if (line.rfind("Max open files", 0) == 0) std::istringstream(line.substr(14)) >> soft;
  }
  EXPECT_EQ(job.out(), "[0] " + soft + "\n");
}

TEST(WeftrunStart, ABusyPortIsRefused) {
  const auto taken = open_store_socket(0);
  ASSERT_TRUE(taken);
  Launched::Options options;
  options.environment = {"MASTER_PORT=" + std::to_string(taken->port)};
  Launched job(shell_job(2, "echo started"), options);
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(job.out(), "");
  EXPECT_NE(job.err().find("MASTER_PORT " + std::to_string(taken->port)), std::string::npos) << job.err();
}

TEST(WeftrunStart, AFreePortThatTheUserChoseIsTaken) {
  std::string port;
  {
    const auto free = open_store_socket(0);
    ASSERT_TRUE(free);
    port = std::to_string(free->port);
  }
  Launched::Options options;
  options.environment = {"MASTER_PORT=" + port};
  Launched job(shell_job(1, "echo $MASTER_PORT"), options);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.out(), "[0] " + port + "\n");
}

TEST(WeftrunStart, AJobWithinARankIsRefused) {
  Launched::Options options;
  options.environment = {"WEFT_JOB_TOKEN=00"};
  Launched job(shell_job(2, "echo started"), options);
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(job.out(), "");
  EXPECT_NE(job.err().find("WEFT_JOB_TOKEN is set"), std::string::npos) << job.err();
}

TEST(WeftrunStart, BadUseHasExitCode2ASentenceAndStartsNothing) {
  const std::vector<std::string> cases[] = {
      {"--foo", "echo", "started"},
      {"-n", "0", "echo", "started"},
      {"-n", "4097", "echo", "started"},
      {"-n", "2", "no-such-program"},
      {"-n", "2", "/tmp"},
      {"--transport", "foo", "echo", "started"},
      {"--transport", "verbs", "echo", "x"},
      {"--timeout", "-1", "echo", "started"},
      {"-n", "2"},
      {},
  };
  for (const auto& words : cases) {
    Launched job(words);
    EXPECT_EQ(job.wait(), 2);
    EXPECT_EQ(job.out(), "");
    EXPECT_EQ(job.err().rfind("weftrun: ", 0), 0U) << job.err();
  }
}

TEST(WeftrunStart, HelpGoesToStandardOutput) {
  Launched job({"--help"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_NE(job.out().find("--ranks-per-process"), std::string::npos);
  EXPECT_EQ(job.err(), "");
}

TEST(WeftrunStart, TooFewDescriptorsAreExplained) {
  Launched job(shell_job(1, std::string("ulimit -n 80; unset WEFT_JOB_TOKEN MASTER_PORT; exec ") + WEFT_TEST_BIN_DIR +
                                "/weftrun -n 64 echo started"));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_NE(job.err().find("ulimit -n"), std::string::npos) << job.err();
  EXPECT_EQ(job.out(), "");
}

}  // namespace
}  // namespace weft::net::launch
