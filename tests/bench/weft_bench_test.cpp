// weft-bench as a user runs it: every benchmark, over both transports, as processes, as threads and under weftrun. What
// is looked at is the form of what it says, never how fast anything was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/shell_command.hpp"

namespace {

using bench::testing::Ended;
using bench::testing::run;
using bench::testing::slurp;
using bench::testing::TemporaryFile;
using nlohmann::json;

constexpr std::array kBenchmarks = {"floor", "latency", "bandwidth", "rate", "all_reduce", "overlap"};

std::string tiny(const std::string& benchmark) {
  std::string options = " --iters 3 --warmup 1 --repeat 2";
  if (benchmark == "rate") return benchmark + options + " --check --window 4";
  if (benchmark == "bandwidth") return benchmark + options + " --check --window 4 --sizes 8,100K";
  if (benchmark == "overlap") return benchmark + options + " --check --sizes 64K --layers 3";
  if (benchmark == "floor") return benchmark + options + " --sizes 8,4K";
  return benchmark + options + " --check --sizes 8,100K";
}

/// Reads the lines, each of which must be an object with all that scripts rely on.
std::vector<json> records(const Ended& ended) {
  std::vector<json> all;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line, nullptr, false);
    EXPECT_TRUE(object.is_object()) << line;
    if (!object.is_object()) continue;
    for (const char* const key :
         {"name", "transport", "ranks", "threads", "bytes", "iters", "median_us", "p99_us", "min_us", "GBps", "Mmsgps",
          "floor_us", "over_floor", "allocs_per_op", "syscalls_per_op", "compiler", "commit"}) {
      EXPECT_TRUE(object.contains(key)) << key << " is missing in " << line;
    }
    EXPECT_GT(object.value("median_us", -1.0), 0) << line;
    EXPECT_GE(object.value("p99_us", -1.0), object.value("min_us", 0.0)) << line;
    EXPECT_GE(object.value("median_us", -1.0), object.value("min_us", 0.0)) << line;
    all.push_back(object);
  }
  return all;
}

void expect_counts(const json& record) {
  EXPECT_TRUE(record["allocs_per_op"].is_number()) << record;
  // A machine that does not let us count must say so.
  EXPECT_TRUE(record["syscalls_per_op"].is_number() || !record["notes"].empty()) << record;
  EXPECT_TRUE(record["floor_us"].is_number() || record["name"] == "overlap" || !record["notes"].empty()) << record;
}

void expect_run(const std::string& command, const std::string& benchmark, int ranks, bool threads,
                const std::string& transport) {
  SCOPED_TRACE(command);
  const Ended ended = run(command);
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  const std::vector<json> all = records(ended);
  EXPECT_FALSE(all.empty());
  for (const json& record : all) {
    EXPECT_EQ(record["ranks"], ranks);
    EXPECT_EQ(record["threads"], threads);
    if (benchmark == "floor") {
      EXPECT_EQ(record["name"].get<std::string>().find("floor_"), 0U);
      continue;
    }
    EXPECT_EQ(record["name"], benchmark);
    EXPECT_EQ(record["transport"], transport);
    expect_counts(record);
  }
  // The table is for people and must not get between the objects.
  EXPECT_EQ(ended.err.find(benchmark + ": "), 0U) << ended.err;
}

TEST(WeftBench, EveryBenchmarkRunsItsOwnProcesses) {
  for (const char* const benchmark : kBenchmarks) {
    for (const char* const transport : {"shm", "tcp"}) {
      const std::string command = "weft-bench " + tiny(benchmark) + " --json - --transport " + transport;
      expect_run(command, benchmark, 2, false, transport);
    }
  }
}

TEST(WeftBench, EveryBenchmarkRunsThreads) {
  for (const char* const benchmark : kBenchmarks) {
    expect_run("weft-bench " + tiny(benchmark) + " --threads --json -", benchmark, 2, true, "shm");
  }
  expect_run("weft-bench " + tiny("latency") + " --threads --transport tcp --json -", "latency", 2, true, "tcp");
}

TEST(WeftBench, EveryBenchmarkTakesTheRanksOfALauncher) {
  for (const char* const benchmark : kBenchmarks) {
    expect_run("weftrun -n 2 --prefix off weft-bench " + tiny(benchmark) + " --json -", benchmark, 2, false, "shm");
  }
  expect_run("weftrun -n 2 --prefix off --ranks-per-process 2 weft-bench " + tiny("latency") + " --json -", "latency",
             2, true, "shm");
  expect_run("weftrun -n 2 --prefix off --transport tcp weft-bench " + tiny("rate") + " --json -", "rate", 2, false,
             "tcp");
}

TEST(WeftBench, MoreRanksThanTwoWork) {
  expect_run("weft-bench " + tiny("latency") + " --ranks 3 --json -", "latency", 3, false, "shm");
  expect_run("weft-bench " + tiny("all_reduce") + " --ranks 4 --json -", "all_reduce", 4, false, "shm");
  expect_run("weft-bench " + tiny("all_reduce") + " --ranks 3 --threads --json -", "all_reduce", 3, true, "shm");
}

TEST(WeftBench, ACollectiveOfOneRankWorks) {
  const Ended ended = run("weft-bench " + tiny("all_reduce") + " --ranks 1 --json -");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  for (const json& record : records(ended))
    EXPECT_EQ(record["transport"], "self");
}

TEST(WeftBench, TheTableGoesToStandardOutputAndJsonToItsFile) {
  const TemporaryFile file;
  const Ended ended = run("weft-bench " + tiny("latency") + " --json " + file.path());
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out.find("latency: 2 ranks, processes, shm\n"), 0U) << ended.out;
  EXPECT_EQ(ended.err, "");
  Ended lines;
  lines.out = slurp(file.path());
  EXPECT_EQ(records(lines).size(), 2U) << lines.out;
}

TEST(WeftBench, BadUseIsExitCode2AndStartsNothing) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"weft-bench", "subcommand"},
      {"weft-bench latency --fast", "--fast"},
      {"weft-bench latency --ranks 1", "at least 2"},
      {"weft-bench latency --json /nowhere/at/all", "/nowhere/at/all"},
      {"WEFT_IDLE=perhaps weft-bench latency", "WEFT_IDLE"},
      {"RANK=5 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 weft-bench latency", "RANK"},
      {"weftrun -n 2 weft-bench latency --ranks 3", "--ranks"},
      {"weftrun -n 2 weft-bench latency --threads", "--threads"},
      {"weftrun -n 1 weft-bench latency", "at least 2"},
  };
  for (const auto& [command, part] : cases) {
    const Ended ended = run(command);
    EXPECT_EQ(ended.exit_code, 2) << command << '\n' << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << command << '\n' << ended.err;
    EXPECT_EQ(ended.out, "") << command;
  }
}

TEST(WeftBench, HelpIsExitCode0) {
  for (const char* const benchmark : kBenchmarks) {
    const Ended ended = run(std::string("weft-bench ") + benchmark + " --help");
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_NE(ended.out.find("Usage"), std::string::npos);
  }
}

TEST(WeftBench, AFullOutputIsAFailure) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "skipped: there is no /dev/full";
  const Ended ended = run("weft-bench " + tiny("latency") + " --threads --json - >/dev/full");
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
}

}  // namespace
