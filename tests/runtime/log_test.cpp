#include "weft/runtime/log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace weft {
namespace {

TEST(Log, LevelsHaveTheNamesThatWeftLogTakes) {
  EXPECT_EQ(parse_log_level("trace"), LogLevel::trace);
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("info"), LogLevel::info);
  EXPECT_EQ(parse_log_level("warning"), LogLevel::warning);
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  for (const char* const text : {"", "Warning", "warn", "0", "trace "})
    EXPECT_FALSE(parse_log_level(text)) << text;
}

TEST(Log, WritesWarningsToStderrAndKeepsQuietBelow) {
  if (std::getenv("WEFT_LOG") != nullptr) GTEST_SKIP() << "WEFT_LOG is set: the level is not the default one";
  ::testing::internal::CaptureStderr();
  log(LogLevel::info, "too small to mention");
  log(LogLevel::warning, "first\nsecond \x1b[31m");
  log(LogLevel::off, "never");
  const std::string written = ::testing::internal::GetCapturedStderr();
  // Expect: one line, and what a peer may have put into it cannot start another one or colour the terminal.
  EXPECT_NE(written.find("warning: first\\x0asecond \\x1b[31m\n"), std::string::npos) << written;
  EXPECT_EQ(written.find('\n'), written.size() - 1) << written;
}

}  // namespace
}  // namespace weft
