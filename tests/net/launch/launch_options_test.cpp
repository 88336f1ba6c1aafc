#include "weft/net/launch/launch_options.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace weft::net::launch {
namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

Result<LaunchOptions> parse(const Words& words, const Variables& variables = {}) {
  return parse_launch_options(words, [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const Words& words, const Variables& variables = {}) {
  const auto options = parse(words, variables);
  if (options) return "accepted";
  EXPECT_EQ(options.code(), Errc::invalid_argument);
  return options.error().what();
}

TEST(LaunchOptions, TheProgramAloneIsOneRankWithEveryDefault) {
  const auto options = parse({"a.out"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks, 1);
  EXPECT_EQ(options->ranks_per_process, 1);
  EXPECT_EQ(options->transport, "auto");
  EXPECT_EQ(options->order, "consistent");
  EXPECT_EQ(options->timeout_s, "0");
  EXPECT_EQ(options->bind, Bind::automatic);
  EXPECT_TRUE(options->prefix);
  EXPECT_EQ(options->port, 0);
  EXPECT_EQ(options->command, Words{"a.out"});
}

TEST(LaunchOptions, WhatFollowsTheProgramIsNotTouched) {
  const auto options = parse({"-n", "2", "a.out", "-n", "0", "--help", "--", "--foo", ""});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks, 2);
  EXPECT_FALSE(options->help);
  EXPECT_EQ(options->command, (Words{"a.out", "-n", "0", "--help", "--", "--foo", ""}));
}

TEST(LaunchOptions, TwoDashesEndTheFlags) {
  const auto options = parse({"-n", "2", "--", "-strange-name", "x"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->command, (Words{"-strange-name", "x"}));
}

TEST(LaunchOptions, EveryFormOfAFlagIsRead) {
  const Words forms[] = {{"-n", "4", "p"}, {"-n4", "p"}, {"-n=4", "p"}};
  for (const Words& words : forms) {
    const auto options = parse(words);
    ASSERT_TRUE(options) << words.front();
    EXPECT_EQ(options->ranks, 4);
  }
  const auto options = parse({"--ranks-per-process=2", "--transport", "tcp", "--order=canonical", "--timeout", "2.5",
                              "--bind=none", "--prefix", "off", "p"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks_per_process, 2);
  EXPECT_EQ(options->transport, "tcp");
  EXPECT_EQ(options->order, "canonical");
  EXPECT_EQ(options->timeout_s, "2.5");
  EXPECT_EQ(options->bind, Bind::none);
  EXPECT_FALSE(options->prefix);
}

TEST(LaunchOptions, EveryFlagHasAVariableAndTheFlagWins) {
  const Variables variables = {{"WEFT_NUM_RANKS", "3"},     {"WEFT_RANKS_PER_PROCESS", "2"}, {"WEFT_TRANSPORT", "shm"},
                               {"WEFT_ORDER", "canonical"}, {"WEFT_TIMEOUT", "7"},           {"WEFT_BIND", "core"},
                               {"WEFT_PREFIX", "off"},      {"MASTER_PORT", "29500"}};
  auto options = parse({"p"}, variables);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks, 3);
  EXPECT_EQ(options->ranks_per_process, 2);
  EXPECT_EQ(options->transport, "shm");
  EXPECT_EQ(options->order, "canonical");
  EXPECT_EQ(options->timeout_s, "7");
  EXPECT_EQ(options->bind, Bind::core);
  EXPECT_FALSE(options->prefix);
  EXPECT_EQ(options->port, 29500);

  options = parse({"-n", "4", "--transport", "tcp", "p"}, variables);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->transport, "tcp");
}

TEST(LaunchOptions, AnEmptyVariableIsNotSet) {
  EXPECT_TRUE(parse({"p"}, {{"WEFT_NUM_RANKS", ""}, {"WEFT_TRANSPORT", ""}, {"MASTER_PORT", ""}}));
}

TEST(LaunchOptions, BadCountsAreRefusedByFlagAndValue) {
  for (const char* value : {"0", "-1", "4097", "two", "", "2x", " 2", "1.5", "99999999999999999999", "+2", "0x2"}) {
    const std::string wanted = std::string("-n: '") + value + "' is not a whole number from 1 to 4096";
    EXPECT_EQ(refusal({"-n", value, "p"}), wanted);
    EXPECT_NE(refusal({"--ranks-per-process", value, "p"}), "accepted");
  }
  EXPECT_TRUE(parse({"-n", "4096", "p"}));
}

TEST(LaunchOptions, BadTimeoutsAreRefused) {
  for (const char* value : {"-1", "-0.001", "nan", "inf", "1e10", "", "1s", "1,5"}) {
    EXPECT_NE(refusal({"--timeout", value, "p"}).find("--timeout: '" + std::string(value)), std::string::npos) << value;
  }
}

TEST(LaunchOptions, TimeoutsAreExportedInOneForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"1e2", "100"}, {"-0", "0"}, {"0.250", "0.25"}, {"1e9", "1000000000"}};
  for (const auto& [given, exported] : cases) {
    const auto options = parse({"--timeout", given, "p"});
    ASSERT_TRUE(options) << given;
    EXPECT_EQ(options->timeout_s, exported);
  }
}

TEST(LaunchOptions, ATransportThatIsNotBuiltIsRefusedWithASentence) {
  EXPECT_EQ(refusal({"--transport", "verbs", "p"}),
            "--transport: this build of Weft has no verbs transport; use auto, shm or tcp");
  EXPECT_EQ(refusal({"p"}, {{"WEFT_TRANSPORT", "sim"}}),
            "WEFT_TRANSPORT: this build of Weft has no sim transport; use auto, shm or tcp");
}

TEST(LaunchOptions, OtherBadValuesNameTheirSource) {
  EXPECT_NE(refusal({"--transport", "foo", "p"}).find("--transport: 'foo' is not"), std::string::npos);
  EXPECT_NE(refusal({"--order", "any", "p"}).find("--order: 'any' is not"), std::string::npos);
  EXPECT_NE(refusal({"--bind", "socket", "p"}).find("--bind: 'socket' is not"), std::string::npos);
  EXPECT_NE(refusal({"--prefix", "yes", "p"}).find("--prefix: 'yes' is not"), std::string::npos);
  EXPECT_NE(refusal({"p"}, {{"WEFT_NUM_RANKS", "many"}}).find("WEFT_NUM_RANKS: 'many' is not"), std::string::npos);
  EXPECT_NE(refusal({"-n", "2", "p"}, {{"WEFT_NUM_RANKS", "many"}}).find("WEFT_NUM_RANKS"), std::string::npos);
  for (const char* port : {"65536", "-1", "http", "1 "}) {
    EXPECT_NE(refusal({"p"}, {{"MASTER_PORT", port}}).find("MASTER_PORT"), std::string::npos) << port;
  }
}

TEST(LaunchOptions, UnknownFlagsAndMissingPartsAreRefused) {
  for (const char* flag : {"--foo", "-np", "--transports", "-N", "--timeout-s", "-nx"}) {
    EXPECT_EQ(refusal({flag, "2", "p"}), std::string(flag) + ": unknown flag; weftrun --help lists what there is");
  }
  EXPECT_EQ(refusal({"-n"}), "-n: needs a value after it");
  EXPECT_NE(refusal({}).find("PROGRAM"), std::string::npos);
  EXPECT_NE(refusal({"-n", "2"}).find("PROGRAM"), std::string::npos);
  EXPECT_NE(refusal({"-n", "2", "--"}).find("PROGRAM"), std::string::npos);
}

TEST(LaunchOptions, HelpWinsOverWhatFollowsAndNamesEveryFlagAndVariable) {
  const auto options = parse({"--help", "--foo"}, {{"WEFT_NUM_RANKS", "many"}});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->help);
  for (const char* word : {"-n N", "--ranks-per-process", "--transport", "--order", "--timeout", "--bind", "--prefix",
                           "WEFT_NUM_RANKS", "WEFT_RANKS_PER_PROCESS", "WEFT_TRANSPORT", "WEFT_ORDER", "WEFT_TIMEOUT",
                           "WEFT_BIND", "WEFT_PREFIX", "MASTER_PORT"}) {
    EXPECT_NE(launch_help().find(word), std::string::npos) << word;
  }
}

TEST(LaunchOptions, BindsToCoresWhereEveryRankCanHaveOne) {
  const auto exported_bind = [](const Words& words, std::int32_t cores) {
    for (const auto& [name, value] : exported_settings(*parse(words), cores)) {
      if (name == "WEFT_BIND") return value;
    }
    return std::string("absent");
  };
  EXPECT_EQ(exported_bind({"-n", "2", "p"}, 2), "core");
  EXPECT_EQ(exported_bind({"-n", "3", "p"}, 2), "none");
  EXPECT_EQ(exported_bind({"-n", "3", "--bind", "core", "p"}, 2), "core");
  EXPECT_EQ(exported_bind({"-n", "1", "--bind", "none", "p"}, 2), "none");
}

}  // namespace
}  // namespace weft::net::launch
