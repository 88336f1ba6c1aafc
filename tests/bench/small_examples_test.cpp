// The examples ping_pong and all_reduce as a user runs them: alone, under weftrun, over each transport, and wrongly.
#include <gtest/gtest.h>

#include <string>

#include "bench/shell_command.hpp"

namespace {

using bench::testing::Ended;
using bench::testing::run;

void expect_good(const std::string& command, const std::string& part) {
  const Ended ended = run(command);
  EXPECT_EQ(ended.exit_code, 0) << command << '\n' << ended.err;
  EXPECT_NE(ended.out.find(part), std::string::npos) << command << '\n' << ended.out;
}

void expect_bad_use(const std::string& command, const std::string& part) {
  const Ended ended = run(command);
  EXPECT_EQ(ended.exit_code, 2) << command << '\n' << ended.out;
  EXPECT_NE(ended.err.find(part), std::string::npos) << command << '\n' << ended.err;
}

TEST(PingPong, PlaysOverEveryTransport) {
  for (const char* const how : {"--transport shm", "--transport tcp", "--ranks-per-process 2"}) {
    expect_good(std::string("weftrun -n 2 ") + how + " ping_pong --rounds 5", "arrived unharmed");
  }
}

TEST(PingPong, FurtherRanksLookOn) {
  expect_good("weftrun -n 3 ping_pong --rounds 5", "arrived unharmed");
}

TEST(PingPong, AloneItSaysHowToStartIt) {
  expect_bad_use("ping_pong", "weftrun -n 2 ping_pong");
}

TEST(PingPong, BadUseIsExitCode2) {
  expect_bad_use("ping_pong --rounds 0", "--rounds");
  expect_bad_use("ping_pong --speed", "--speed");
  expect_good("ping_pong --help", "Usage");
}

TEST(AllReduce, EveryRankHasTheSum) {
  for (const char* const how : {"-n 2 --transport shm", "-n 2 --transport tcp", "-n 3", "-n 4 --ranks-per-process 2"}) {
    const Ended ended = run(std::string("weftrun ") + how + " all_reduce --count 10007");
    EXPECT_EQ(ended.exit_code, 0) << how << '\n' << ended.err;
    const int ranks = how[3] - '0';
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string line = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": 10007 sums";
      EXPECT_NE(ended.out.find(line), std::string::npos) << how << '\n' << ended.out;
    }
  }
}

TEST(AllReduce, AWorldOfOneHasItsOwnValues) {
  expect_good("all_reduce", "rank 0 of 1: 1048576 sums");
}

TEST(AllReduce, BadUseIsExitCode2) {
  expect_bad_use("all_reduce --count -1", "--count");
  expect_bad_use("all_reduce 5", "5");
  expect_good("all_reduce --help", "Usage");
}

}  // namespace
