#include "weft/net/launch/exit_report.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weft::net::launch {
namespace {

// Wait statuses as Linux encodes them: exit code in the second byte, signal in the first, bit 7 for a core file.
constexpr int exited(int code) {
  return code << 8;
}
constexpr int killed(int signal) {
  return signal;
}
constexpr int dumped(int signal) {
  return signal | 0x80;
}

TEST(ExitReport, AProcessThatReturns0HasSucceeded) {
  EXPECT_TRUE(ProcessEnd(exited(0)).succeeded());
  EXPECT_EQ(ProcessEnd(exited(0)).exit_code(), 0);
  EXPECT_EQ(ProcessEnd(exited(0)).signal(), 0);
}

TEST(ExitReport, NoFailureHasExitCode0) {
  for (int code = 1; code < 256; ++code) {
    EXPECT_FALSE(ProcessEnd(exited(code)).succeeded());
    EXPECT_EQ(ProcessEnd(exited(code)).exit_code(), code);
  }
  for (int signal = 1; signal < 65; ++signal) {
    EXPECT_FALSE(ProcessEnd(killed(signal)).succeeded());
    EXPECT_EQ(ProcessEnd(killed(signal)).exit_code(), 128 + signal);
    EXPECT_EQ(ProcessEnd(dumped(signal)).exit_code(), 128 + signal);
  }
  EXPECT_NE(ProcessEnd(0x7f).exit_code(), 0);    // "stopped": wait was not asked for it
  EXPECT_NE(ProcessEnd(0xffff).exit_code(), 0);  // "continued"
}

TEST(ExitReport, NamesRankPidAndCause) {
  EXPECT_EQ(exit_report(2, 1, 1234, ProcessEnd(killed(SIGKILL))), "rank 2 (pid 1234) died of signal 9 (SIGKILL)");
  EXPECT_EQ(exit_report(0, 1, 7, ProcessEnd(exited(3))), "rank 0 (pid 7) exited with code 3");
  EXPECT_EQ(exit_report(1, 1, 9, ProcessEnd(dumped(SIGSEGV))),
            "rank 1 (pid 9) died of signal 11 (SIGSEGV, core dumped)");
  EXPECT_EQ(exit_report(4, 4, 7, ProcessEnd(exited(1))), "ranks 4-7 (pid 7) exited with code 1");
}

TEST(ExitReport, NamesEverySignal) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(SIGRTMIN), "SIGRTMIN");
  EXPECT_EQ(signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(-5), "signal -5");
  EXPECT_EQ(signal_name(271), "signal 271");
}

}  // namespace
}  // namespace weft::net::launch
