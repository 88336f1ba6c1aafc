#include "weft/net/bootstrap/stranger_log.hpp"

#include <gtest/gtest.h>

namespace weft::net {
namespace {

TEST(StrangerLog, WritesABurstAndThenOneLineInAPause) {
  StrangerLog log;
  Instant now{std::chrono::hours(1)};
  for (int i = 0; i < 1000; ++i)
    log.turned_away("a scanner", now);
  EXPECT_EQ(log.count(), 1000u);
  EXPECT_EQ(log.lines(), StrangerLog::kLines);
  now += StrangerLog::kPause;
  for (int i = 0; i < 1000; ++i)
    log.turned_away("a scanner", now);
  EXPECT_EQ(log.lines(), StrangerLog::kLines + 1);
  // Expect: after a quiet time there is room for a burst again.
  now += StrangerLog::kPause;
  log.turned_away("a scanner", now);
  now += StrangerLog::kPause;
  log.turned_away("a scanner", now);
  EXPECT_EQ(log.lines(), StrangerLog::kLines + 3);
}

}  // namespace
}  // namespace weft::net
