// What weftrun does with its own standard descriptors.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "net/launch/launched.hpp"

namespace weft::net::launch {
namespace {

using testing::kHangMs;
using testing::Launched;
using testing::shell_job;

TEST(WeftrunOutput, LinesOfAllRanksAreLabelledAndNeverMixed) {
  Launched job(shell_job(4, "i=0; while [ $i -lt 2000 ]; do echo \"$RANK line $i of $RANK\"; i=$((i+1)); done"));
  EXPECT_EQ(job.wait(), 0);
  std::vector<int> next(4, 0);
  std::istringstream lines(job.out());
  for (std::string line; std::getline(lines, line);) {
    ASSERT_GT(line.size(), 4U);
    const std::size_t rank = static_cast<std::size_t>(line[1] - '0');
    ASSERT_LT(rank, next.size()) << line;
    const std::string name = std::to_string(rank);
    ASSERT_EQ(line, "[" + name + "] " + name + " line " + std::to_string(next[rank]) + " of " + name);
    ++next[rank];
  }
  EXPECT_EQ(next, std::vector<int>(4, 2000));
}

TEST(WeftrunOutput, TheTwoOutputsStayApart) {
  Launched job(shell_job(2, "echo out; echo err >&2"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_NE(job.out().find("[1] out\n"), std::string::npos);
  EXPECT_EQ(job.out().find("err"), std::string::npos);
  EXPECT_NE(job.err().find("[1] err\n"), std::string::npos);
  EXPECT_EQ(job.err().find("out"), std::string::npos);
}

TEST(WeftrunOutput, AnUnfinishedLineIsShownAtTheEnd) {
  Launched job(shell_job(1, "printf 'no newline'"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "[0] no newline\n");
}

TEST(WeftrunOutput, WithoutPrefixesBytesArePassedThroughUnchanged) {
  std::string bytes;
  for (int i = 0; i < 1 << 20; ++i)
    bytes += static_cast<char>((static_cast<unsigned>(i) * 2654435761U) >> 24);
  Launched::Options options;
  options.input = bytes;
  Launched job({"-n", "1", "--prefix", "off", "cat"}, options);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_TRUE(job.out() == bytes) << job.out().size() << " of " << bytes.size() << " bytes";
}

TEST(WeftrunOutput, ALineWithoutEndIsCutAndNothingIsLost) {
  Launched job(shell_job(2, "head -c 1000000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(std::count(job.out().begin(), job.out().end(), 'x'), 2'000'000);
  std::istringstream lines(job.out());
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 65536U + 4U);
}

TEST(WeftrunOutput, OnlyRank0HasTheStandardInput) {
  Launched::Options options;
  options.input = "one\ntwo\n";
  Launched job(shell_job(3, "cat; echo end"), options);
  EXPECT_EQ(job.wait(), 0);
  EXPECT_NE(job.out().find("[0] one\n"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("[0] two\n"), std::string::npos) << job.out();
  EXPECT_EQ(std::count(job.out().begin(), job.out().end(), '\n'), 5) << job.out();
  EXPECT_EQ(job.out().find("[1] one"), std::string::npos);
  EXPECT_NE(job.out().find("[1] end\n"), std::string::npos);
}

TEST(WeftrunOutput, AClosedStandardOutputEndsTheJobInOrder) {
  Launched job(shell_job(3, "trap '' PIPE; sleep 600 & while :; do echo $RANK; done"));
  ASSERT_TRUE(job.wait_for("[2] 2\n"));
  job.close_output();
  EXPECT_EQ(job.wait(), 141) << job.err();
  EXPECT_NE(job.err().find("standard output was closed"), std::string::npos) << job.err();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunOutput, AReaderThatHasStoppedDoesNotHoldUpASignal) {
  Launched job(shell_job(2, "echo started >&2; while :; do echo $RANK; done"));
  ASSERT_TRUE(job.wait_for_error("started", 2));
  // Nothing reads weftrun's output from here on.
  job.signal(SIGTERM);
  ASSERT_TRUE(job.ended_within(kHangMs));
  EXPECT_EQ(job.wait(), 143);
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunOutput, ASlowReaderStillGetsEverything) {
  // Far more than the launcher holds in memory; the ranks have to wait in between.
  Launched job(shell_job(2, "head -c 8000000 /dev/zero | tr '\\0' 'x' | fold -w 79; echo; echo end"));
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(std::count(job.out().begin(), job.out().end(), 'x'), 16'000'000);
  EXPECT_NE(job.out().find("[0] end\n"), std::string::npos);
  EXPECT_NE(job.out().find("[1] end\n"), std::string::npos);
}

}  // namespace
}  // namespace weft::net::launch
