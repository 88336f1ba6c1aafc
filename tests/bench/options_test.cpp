// The command line: what is understood, and what is refused with exit code 2.
#include "options.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

ParsedOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weft-bench");
  return parse_options(static_cast<int>(words.size()), words.data());
}

// Standard output and error of what was parsed, so that complaints can be looked at.
struct Complaint {
  std::optional<int> exit_code;
  std::string text;
};

Complaint complaint(const std::vector<const char*>& words) {
  testing::internal::CaptureStderr();
  Complaint found;
  found.exit_code = parse(words).exit_code;
  found.text = testing::internal::GetCapturedStderr();
  return found;
}

TEST(ParseSize, ReadsPowersOf1024) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("8"), 8U);
  EXPECT_EQ(parse_size("8B"), 8U);
  EXPECT_EQ(parse_size("1K"), 1024U);
  EXPECT_EQ(parse_size("64k"), 65536U);
  EXPECT_EQ(parse_size("3KiB"), 3072U);
  EXPECT_EQ(parse_size("4MB"), 4U << 20);
  EXPECT_EQ(parse_size("4G"), std::size_t{4} << 30);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* const text : {"", "K", "-1", "1.5K", "8 ", " 8", "1X", "1KK", "1Bi", "8BB", "5G", "4294967297",
                                 "18446744073709551616", "17179869184G"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(SizeText, ReadsBack) {
  for (const std::size_t bytes : {0U, 1U, 8U, 1000U, 1024U, 1536U, 65536U, 1U << 20, 3U << 20, 1U << 30}) {
    EXPECT_EQ(parse_size(size_text(bytes)), bytes) << size_text(bytes);
  }
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(65536), "64K");
}

TEST(BenchOptions, EverySubcommandHasSizesByDefault) {
  for (const char* const name : {"floor", "latency", "bandwidth", "rate", "all_reduce", "overlap"}) {
    const ParsedOptions parsed = parse({name});
    EXPECT_FALSE(parsed.exit_code.has_value()) << name;
    EXPECT_STREQ(to_string(parsed.options.benchmark), name);
    EXPECT_FALSE(parsed.options.sizes.empty()) << name;
  }
}

TEST(BenchOptions, EverythingIsUnderstood) {
  const ParsedOptions parsed =
      parse({"bandwidth", "--ranks", "3",        "--transport", "tcp",      "--sizes", "8,1K,64k", "--iters", "7",
             "--warmup",  "0",       "--window", "5",           "--repeat", "2",       "--batch",  "4",       "--check",
             "--json",    "-",       "--bind",   "none",        "--idle",   "block",   "--threads"});
  ASSERT_FALSE(parsed.exit_code.has_value());
  const Options& options = parsed.options;
  EXPECT_EQ(options.benchmark, Benchmark::bandwidth);
  EXPECT_EQ(options.ranks, 3);
  EXPECT_TRUE(options.threads);
  EXPECT_EQ(options.transport, weft::net::TransportChoice::tcp);
  EXPECT_EQ(options.sizes, (std::vector<std::size_t>{8, 1024, 65536}));
  EXPECT_EQ(options.iterations, 7U);
  EXPECT_EQ(options.warmup, std::optional<std::size_t>(0));
  EXPECT_EQ(options.window, 5U);
  EXPECT_EQ(options.repeats, 2U);
  EXPECT_EQ(options.batch, 4U);
  EXPECT_TRUE(options.check);
  EXPECT_EQ(options.json, "-");
  EXPECT_EQ(options.bind, weft::net::BindChoice::none);
  EXPECT_EQ(options.idle, weft::IdleMode::block);
}

TEST(BenchOptions, WhatIsNotGivenIsLeftOpen) {
  const Options options = parse({"latency"}).options;
  EXPECT_EQ(options.ranks, std::nullopt);
  EXPECT_EQ(options.transport, std::nullopt);
  EXPECT_EQ(options.bind, std::nullopt);
  EXPECT_EQ(options.idle, std::nullopt);
  EXPECT_EQ(options.warmup, std::nullopt);
  EXPECT_EQ(options.iterations, 0U);
}

TEST(BenchOptions, BadUseIsExitCode2AndSaysWhatIsWrong) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases = {
      {{}, "subcommand"},
      {{"speed"}, "speed"},
      {{"latency", "--fast"}, "--fast"},
      {{"latency", "--ranks", "0"}, "--ranks"},
      {{"latency", "--ranks", "-1"}, "--ranks"},
      {{"latency", "--ranks", "two"}, "two"},
      {{"latency", "--ranks", "1"}, "at least 2"},
      {{"latency", "--transport", "verbs"}, "verbs"},
      {{"latency", "--sizes", "8,1X"}, "1X"},
      {{"latency", "--sizes", ""}, "--sizes"},
      {{"latency", "--iters", "0"}, "--iters"},
      {{"latency", "--repeat", "0"}, "--repeat"},
      {{"latency", "--batch", "1e3"}, "1e3"},
      {{"bandwidth", "--window", "0"}, "--window"},
      {{"latency", "--bind", "socket"}, "socket"},
      {{"latency", "--idle", "sleep"}, "sleep"},
      {{"all_reduce", "--sizes", "6"}, "f32"},
      {{"all_reduce", "--sizes", "0"}, "f32"},
      {{"overlap", "--layers", "0"}, "--layers"},
      {{"latency", "extra"}, "extra"},
  };
  for (const auto& [words, part] : cases) {
    const Complaint found = complaint(words);
    const std::string line = words.empty() ? "(nothing)" : words.back();
    EXPECT_EQ(found.exit_code, 2) << line << '\n' << found.text;
    EXPECT_NE(found.text.find(part), std::string::npos) << line << '\n' << found.text;
  }
}

TEST(BenchOptions, HelpIsExitCode0OnStandardOutput) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--help"}, {"latency", "--help"}, {"overlap", "-h"}}) {
    testing::internal::CaptureStdout();
    const ParsedOptions parsed = parse(words);
    EXPECT_EQ(parsed.exit_code, 0);
    EXPECT_NE(testing::internal::GetCapturedStdout().find("Usage"), std::string::npos);
  }
}

TEST(BenchOptions, CollectivesMayRunAlone) {
  EXPECT_FALSE(parse({"all_reduce", "--ranks", "1"}).exit_code.has_value());
  EXPECT_FALSE(parse({"overlap", "--ranks", "1"}).exit_code.has_value());
}

}  // namespace
}  // namespace bench
