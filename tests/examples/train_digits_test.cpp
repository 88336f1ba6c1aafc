// Goal: the whole way from a command line to trained parameters, with the real programs: it learns, the number of ranks
// changes nothing but rounding, the canonical order not even that; bad use starts nothing; a rank that dies ends the
// job.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "net/launch/launched.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace {

using weft::net::launch::testing::Launched;

struct Epoch {
  double loss = 0.0;
  double accuracy = 0.0;
  double hidden = 0.0;
};

struct Training {
  int exit_code = -1;
  std::string out;
  std::string err;
  std::vector<Epoch> epochs;
  std::string parameters;  ///< the hash, or empty
};

// Every line of the output must be one that the program promises.
Training finish(Launched& job) {
  static const std::regex epoch_line(
      R"((?:\[0\] )?epoch (\d+) loss (\d+\.\d{8}) accuracy ([01]\.\d{4}) step_ms \d+\.\d\d hidden ([01]\.\d\d))");
  static const std::regex parameters_line(R"((?:\[0\] )?parameters ([0-9a-f]{16}))");
  Training training;
  training.exit_code = job.wait();
  training.out = job.out();
  training.err = job.err();
  std::istringstream lines(training.out);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (training.parameters.empty() && std::regex_match(line, match, epoch_line)) {
      EXPECT_EQ(match[1].str(), std::to_string(training.epochs.size() + 1));
      training.epochs.push_back(Epoch{std::stod(match[2]), std::stod(match[3]), std::stod(match[4])});
    } else if (training.parameters.empty() && std::regex_match(line, match, parameters_line)) {
      training.parameters = match[1].str();
    } else {
      ADD_FAILURE() << "unexpected line: " << line;
    }
  }
  return training;
}

// weftrun LAUNCHER... train_digits PROGRAM...
std::vector<std::string> command(std::vector<std::string> launcher, const std::vector<std::string>& program) {
  launcher.push_back(std::string(WEFT_TEST_BIN_DIR) + "/train_digits");
  launcher.insert(launcher.end(), program.begin(), program.end());
  return launcher;
}

Training train(const std::vector<std::string>& launcher, const std::vector<std::string>& program) {
  Launched job(command(launcher, program));
  Training training = finish(job);
  EXPECT_EQ(training.exit_code, 0) << training.err;
  EXPECT_EQ(training.err, "");
  EXPECT_NE(training.parameters, "");
  EXPECT_EQ(job.left_behind(), "");
  return training;
}

// train_digits PROGRAM... without a launcher, in this environment.
Training by_hand(std::vector<std::string> environment, const std::vector<std::string>& program) {
  Launched::Options options;
  options.program = "train_digits";
  options.environment = std::move(environment);
  Launched job(program, options);
  return finish(job);
}

void expect_refusal(const Training& training, const std::vector<std::string>& said) {
  EXPECT_EQ(training.exit_code, 2) << training.err;
  EXPECT_EQ(training.out, "");
  for (const std::string& text : said)
    EXPECT_NE(training.err.find(text), std::string::npos) << "not said: " << text << "\n" << training.err;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// The process of the job that hosts `rank`.
pid_t process_of_rank(const Launched& job, int rank) {
  const std::string wanted = '\0' + ("RANK=" + std::to_string(rank)) + '\0';
  for (const pid_t pid : job.family()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    const std::string environment = '\0' + std::string(std::istreambuf_iterator<char>(file), {});
    if (environment.find(wanted) != std::string::npos) return pid;
  }
  return -1;
}

TEST(TrainDigits, LearnsWithinThirtyEpochsAndTheNumberOfRanksChangesOnlyRounding) {
  const Training alone = train({"-n", "1"}, {});
  ASSERT_EQ(alone.epochs.size(), 30U);
  for (const Epoch& epoch : alone.epochs)
    EXPECT_EQ(epoch.hidden, 1.0) << "one rank has nothing to communicate";
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    const Training together = train({"-n", std::to_string(ranks)}, {});
    ASSERT_EQ(together.epochs.size(), 30U);
    double best = 0.0;
    for (std::size_t i = 0; i < 30; ++i) {
      best = std::max(best, together.epochs[i].accuracy);
      EXPECT_LE(std::abs(together.epochs[i].loss - alone.epochs[i].loss), 1e-4 * alone.epochs[i].loss)
          << "epoch " << i + 1;
    }
    EXPECT_GE(best, 0.96);
    EXPECT_GE(together.epochs.back().accuracy, 0.96);
  }
}

// Batches of 3 over 5 ranks: two ranks have no sample in any step, and 1437 = 479 * 3. With 4 the last batch is short.
TEST(TrainDigits, RanksWithoutSamplesAndAShortLastBatchTakePart) {
  for (const char* const batch : {"3", "4"}) {
    SCOPED_TRACE(std::string("batch ") + batch);
    const std::vector<std::string> flags = {"--epochs", "1", "--hidden", "16", "--batch", batch, "--lr", "0.01"};
    const Training alone = train({}, flags);
    const Training together = train({"-n", "5"}, flags);
    ASSERT_EQ(together.epochs.size(), 1U);
    EXPECT_NEAR(together.epochs[0].loss, alone.epochs[0].loss, 1e-4 * alone.epochs[0].loss);
  }
}

TEST(TrainDigits, CanonicalOrderGivesTheSameBitsOverEveryTransportAndBucketSize) {
  std::string expected;
  for (const char* const transport : {"shm", "tcp"}) {
    for (const char* const ranks_per_process : {"1", "2", "3"}) {
      for (const char* const bucket : {"1", "8", "32", "1000"}) {
        SCOPED_TRACE(std::string(transport) + ", " + ranks_per_process + " a process, buckets of " + bucket + " KiB");
        const Training training = train(
            {"-n", "3", "--order", "canonical", "--transport", transport, "--ranks-per-process", ranks_per_process},
            {"--epochs", "2", "--bucket-kib", bucket});
        if (expected.empty()) expected = training.parameters;
        EXPECT_EQ(training.parameters, expected);
      }
    }
  }
}

TEST(TrainDigits, TheEnvironmentChoosesAsTheFlagsDo) {
  const std::vector<std::string> flags = {"--epochs", "1"};
  const Training launched = train({"-n", "3", "--order", "canonical", "--transport", "tcp"}, flags);
  const Training threads =
      by_hand({"WEFT_NUM_RANKS=3", "WEFT_RANKS_PER_PROCESS=3", "WEFT_ORDER=canonical", "WEFT_TRANSPORT=shm"}, flags);
  EXPECT_EQ(threads.exit_code, 0) << threads.err;
  EXPECT_EQ(threads.parameters, launched.parameters);
}

TEST(TrainDigits, EightRanksOnFewCoresComplete) {
  const Training training = train({"-n", "8"}, {"--epochs", "3"});
  ASSERT_EQ(training.epochs.size(), 3U);
  EXPECT_LT(training.epochs[2].loss, training.epochs[0].loss);
}

TEST(TrainDigits, BadFlagsAreRefusedOnceForTheWholeJob) {
  expect_refusal(by_hand({}, {"--no-such-flag"}), {"--no-such-flag"});
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--no-such-flag"}, {"--epochs", "0"}, {"--lr", "nan"}}) {
    Launched job(command({"-n", "3"}, flags));
    const Training training = finish(job);
    expect_refusal(training, {flags[0]});
    EXPECT_EQ(occurrences(training.err, flags[0]), 1U) << training.err;
  }
}

TEST(TrainDigits, BadDataIsRefusedOnceForTheWholeJob) {
  const std::string folder = ::testing::TempDir() + "train_digits_test." + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string bad = folder + "/bad.csv";
  {
    std::ifstream good(std::string(WEFT_TEST_SOURCE_DIR) + "/examples/data/digits.csv");
    std::ofstream file(bad);
    std::string line;
    for (int row = 1; row <= 20 && std::getline(good, line); ++row) {
      if (row == 7) line.replace(0, line.find(','), "17");
      file << line << '\n';
    }
  }
  const std::string missing = folder + "/missing.csv";
  for (const auto& [file, said] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {bad, {bad, "row 7, column 1", "17"}}, {missing, {missing, "No such file"}}}) {
    expect_refusal(by_hand({}, {"--data", file}), said);
    Launched job(command({"-n", "3"}, {"--data", file}));
    const Training training = finish(job);
    expect_refusal(training, said);
    EXPECT_EQ(occurrences(training.err, "train_digits: "), 1U) << training.err;
  }
  std::filesystem::remove_all(folder);
}

TEST(TrainDigits, AContradictoryEnvironmentIsRefused) {
  expect_refusal(by_hand({"RANK=5", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"}, {}),
                 {"RANK", "5", "WORLD_SIZE", "2"});
  expect_refusal(by_hand({"RANK=1"}, {}), {"WORLD_SIZE"});
  expect_refusal(by_hand({"WEFT_TRANSPORT=pigeon"}, {}), {"WEFT_TRANSPORT", "pigeon"});
}

TEST(TrainDigits, ABusyPortIsRefused) {
  const weft::UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  expect_refusal(by_hand({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, {}), {port});
}

TEST(TrainDigits, AMasterThatDoesNotResolveIsRefused) {
  for (const char* const rank : {"RANK=0", "RANK=1"}) {
    SCOPED_TRACE(rank);
    const std::string host = "no-such-host.invalid";
    expect_refusal(by_hand({rank, "WORLD_SIZE=2", "MASTER_ADDR=" + host, "MASTER_PORT=29577"}, {}), {host});
  }
}

TEST(TrainDigits, RanksThatWereStartedDifferentlyAreAllTold) {
  const std::string program = std::string(WEFT_TEST_BIN_DIR) + "/train_digits";
  Launched job({"-n", "3", "sh", "-c", "exec \"$0\" --epochs 1 --seed $((RANK / 2))", program});
  const Training training = finish(job);
  EXPECT_EQ(training.exit_code, 1) << training.err;
  EXPECT_EQ(training.out, "");
  EXPECT_EQ(occurrences(training.err, "ranks of this job differ in --seed (here 0)"), 2U) << training.err;
  EXPECT_EQ(occurrences(training.err, "ranks of this job differ in --seed (here 1)"), 1U) << training.err;
}

class TrainDigitsDeath : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(TrainDigitsDeath, OfOneRankEndsAllOthersWithItsName) {
  const auto& [transport, victim] = GetParam();
  Launched job(command({"-n", "3", "--transport", transport}, {"--epochs", "1000000"}));
  ASSERT_TRUE(job.wait_for("epoch 2 ")) << job.err();
  const pid_t pid = process_of_rank(job, victim);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(job.wait(), 128 + SIGKILL) << job.err();
  const std::string dead = "rank " + std::to_string(victim);
  EXPECT_NE(job.err().find(dead + " (pid " + std::to_string(pid) + ") died of signal 9 (SIGKILL"), std::string::npos)
      << job.err();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const std::regex told("train_digits: rank " + std::to_string(rank) + ": [^\n]*(step|all_reduce)[^\n]*" + dead);
    EXPECT_TRUE(std::regex_search(job.err(), told)) << "rank " << rank << " in:\n" << job.err();
  }
  EXPECT_EQ(job.left_behind(), "");
}

INSTANTIATE_TEST_SUITE_P(Each, TrainDigitsDeath,
                         ::testing::Combine(::testing::Values("shm", "tcp"), ::testing::Values(0, 1, 2)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "Rank" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST(TrainDigits, CtrlCEndsTheJob) {
  for (const char* const transport : {"shm", "tcp"}) {
    SCOPED_TRACE(transport);
    Launched job(command({"-n", "3", "--transport", transport}, {"--epochs", "1000000"}));
    ASSERT_TRUE(job.wait_for("epoch 2 ")) << job.err();
    job.signal(SIGINT);
    EXPECT_EQ(job.wait(), 128 + SIGINT) << job.err();
    EXPECT_EQ(job.left_behind(), "");
  }
}

}  // namespace
