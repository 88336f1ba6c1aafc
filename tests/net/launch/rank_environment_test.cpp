#include "weft/net/launch/rank_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace weft::net::launch {
namespace {

TEST(RankEnvironment, RanksAreSpreadInBlocksAndTheLastTakesWhatIsLeft) {
  const auto blocks = rank_blocks(5, 2);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[1].first, 2);
  EXPECT_EQ(blocks[1].count, 2);
  EXPECT_EQ(blocks[2].first, 4);
  EXPECT_EQ(blocks[2].count, 1);
  EXPECT_EQ(rank_blocks(2, 4).size(), 1U);
  EXPECT_EQ(rank_blocks(2, 4)[0].count, 2);
  EXPECT_EQ(rank_blocks(4096, 1).size(), 4096U);
}

TEST(RankEnvironment, EveryTokenIsNew) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const auto token = make_job_token();
    ASSERT_TRUE(token);
    EXPECT_EQ(token->size(), 64U);
    EXPECT_EQ(token->find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(*token);
  }
  EXPECT_EQ(tokens.size(), 100U);
}

TEST(RankEnvironment, ReplacesWhatItSetsAndKeepsTheRest) {
  JobIdentity job;
  job.ranks = 5;
  job.ranks_per_process = 2;
  job.port = 4242;
  job.token = "ab";
  job.settings = {{"WEFT_TRANSPORT", "tcp"}};
  const std::vector<std::string> base = {"HOME=/root",
                                         "TORCHELASTIC_USE_AGENT_STORE=True",
                                         "WEFT_STORE_PORT=1",
                                         "RANK=9",
                                         "WORLD_SIZE=1",
                                         "EMPTY=",
                                         "WEFT_STORE_FD=7",
                                         "RANKS=kept",
                                         "WEFT_TRANSPORT=shm",
                                         "no_equal_sign",
                                         "MASTER_ADDR=nosuch.invalid"};
  const auto environment = rank_environment(base, job, {2, 2}, -1);
  const std::vector<std::string> expected = {"HOME=/root",
                                             "EMPTY=",
                                             "RANKS=kept",
                                             "no_equal_sign",
                                             "RANK=2",
                                             "WORLD_SIZE=5",
                                             "LOCAL_RANK=2",
                                             "LOCAL_WORLD_SIZE=5",
                                             "MASTER_ADDR=127.0.0.1",
                                             "MASTER_PORT=4242",
                                             "WEFT_NUM_RANKS=5",
                                             "WEFT_RANKS_PER_PROCESS=2",
                                             "WEFT_JOB_TOKEN=ab",
                                             "WEFT_TRANSPORT=tcp"};
  EXPECT_EQ(environment, expected);
  EXPECT_EQ(rank_environment(base, job, {0, 2}, 5).back(), "WEFT_STORE_FD=5");
}

}  // namespace
}  // namespace weft::net::launch
