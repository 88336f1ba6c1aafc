// The command line of train_digits, and where it finds its data.
#include "options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "data_file.hpp"
#include "weft/runtime/error.hpp"

namespace digits {
namespace {

struct Captured {
  ParsedOptions parsed;
  std::string out;
  std::string err;
};

Captured parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "train_digits");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Captured captured;
  captured.parsed = parse_options(static_cast<int>(arguments.size()), arguments.data());
  captured.out = testing::internal::GetCapturedStdout();
  captured.err = testing::internal::GetCapturedStderr();
  return captured;
}

TEST(Options, HaveDefaults) {
  const Captured captured = parse({});
  EXPECT_FALSE(captured.parsed.exit_code.has_value());
  EXPECT_EQ(captured.parsed.options.epochs, 30U);
  EXPECT_EQ(captured.parsed.options.bucket_kib, 32U);
  EXPECT_TRUE(captured.parsed.options.data.empty());
  EXPECT_EQ(captured.out + captured.err, "");
}

TEST(Options, AreRead) {
  const Captured captured = parse({"--epochs", "2", "--hidden=7", "--batch", "12", "--seed", "18446744073709551615",
                                   "--lr", "1e-3", "--bucket-kib", "4", "--data", "some file.csv"});
  ASSERT_FALSE(captured.parsed.exit_code.has_value()) << captured.err;
  const Options& options = captured.parsed.options;
  EXPECT_EQ(options.epochs, 2U);
  EXPECT_EQ(options.hidden, 7U);
  EXPECT_EQ(options.batch, 12U);
  EXPECT_EQ(options.seed, 18446744073709551615U);
  EXPECT_EQ(options.rate, 1e-3);
  EXPECT_EQ(options.bucket_kib, 4U);
  EXPECT_EQ(options.data, "some file.csv");
}

TEST(Options, ASilentProcessGivesTheExitCodeOnly) {
  for (const auto& [flag, code] : {std::pair("--help", 0), std::pair("--no-such-flag", 2), std::pair("--lr=nan", 2)}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const char* const arguments[] = {"train_digits", flag};
    const ParsedOptions parsed = parse_options(2, arguments, Voice::silent);
    const std::string said = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    EXPECT_EQ(parsed.exit_code, code);
    EXPECT_EQ(said, "");
  }
}

TEST(Options, HelpNamesEveryFlagAndEndsWithZero) {
  const Captured captured = parse({"--help"});
  EXPECT_EQ(captured.parsed.exit_code, 0);
  for (const char* flag : {"--epochs", "--hidden", "--batch", "--seed", "--lr", "--bucket-kib", "--data"}) {
    EXPECT_NE(captured.out.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(captured.err, "");
}

TEST(Options, BadUseEndsWithTwoAndAMessageThatNamesTheFlag) {
  const std::vector<std::vector<const char*>> faults = {
      {"--epochs", "0"},
      {"--epochs", "-1"},
      {"--epochs", "x"},
      {"--epochs"},
      {"--hidden", "0"},
      {"--batch", "0"},
      {"--batch", "1.5"},
      {"--batch", "1000001"},
      {"--seed", "-1"},
      {"--seed", "one"},
      {"--lr", "0"},
      {"--lr", "-0.1"},
      {"--lr", "nan"},
      {"--lr", "inf"},
      {"--lr", "0.1x"},
      {"--bucket-kib", "0"},
      {"--data", ""},
      {"--data"},
      {"--unknown", "1"},
      {"--epoch", "1"},
      {"--seed", "18446744073709551616"},
      {"--epochs", "-18446744073709551615"},
  };
  for (const auto& fault : faults) {
    const Captured captured = parse(fault);
    const std::string line = std::string(fault[0]) + " " + (fault.size() > 1 ? fault[1] : "");
    EXPECT_EQ(captured.parsed.exit_code, 2) << line;
    EXPECT_NE(captured.err.find(fault[0]), std::string::npos) << line << ": " << captured.err;
    EXPECT_EQ(captured.out, "") << line;
  }
  EXPECT_EQ(parse({"surplus"}).parsed.exit_code, 2);
}

class DataFile : public testing::Test {
 protected:
  DataFile() { std::filesystem::create_directories(root_ / "build" / "release" / "bin"); }
  ~DataFile() override { std::filesystem::remove_all(root_); }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("weft_data_file_" + std::to_string(getpid()));
  const std::filesystem::path program_ = root_ / "build" / "release" / "bin" / "train_digits";
};

TEST_F(DataFile, IsFoundAboveTheProgram) {
  const std::filesystem::path expected = root_ / "examples" / "data" / "digits.csv";
  std::filesystem::create_directories(expected.parent_path());
  std::ofstream(expected) << "1\n";
  EXPECT_EQ(find_data_file(program_, "/nowhere/digits.csv"), expected);
}

TEST_F(DataFile, IsFoundWhereItLayWhenTheProgramWasBuilt) {
  const std::filesystem::path expected = root_ / "source.csv";
  std::ofstream(expected) << "1\n";
  EXPECT_EQ(find_data_file(program_, expected), expected);
  EXPECT_EQ(find_data_file("", expected), expected);
}

TEST_F(DataFile, MissingListsEveryPlace) {
  try {
    (void)find_data_file(program_, "/nowhere/digits.csv");
    ADD_FAILURE() << "found";
  } catch (const weft::Error& error) {
    EXPECT_EQ(error.code(), weft::Errc::invalid_argument);
    const std::string text = error.what();
    EXPECT_NE(text.find("--data FILE"), std::string::npos) << text;
    EXPECT_NE(text.find((root_ / "examples" / "data" / "digits.csv").string()), std::string::npos) << text;
    EXPECT_NE(text.find("/nowhere/digits.csv"), std::string::npos) << text;
  }
}

TEST(DataFileOfThisBuild, IsTheOneOfTheSourceTree) {
  EXPECT_TRUE(std::filesystem::equivalent(find_data_file(), WEFT_TEST_SOURCE_DIR "/examples/data/digits.csv"));
}

}  // namespace
}  // namespace digits
