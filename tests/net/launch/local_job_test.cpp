// LocalJob as a program other than weftrun uses it: in this very process.
#include "weft/net/launch/local_job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "weft/net/launch/descriptor.hpp"
#include "weft/net/launch/job_sweep.hpp"
#include "weft/net/launch/store_socket.hpp"

namespace weft::net::launch {
namespace {

class LocalJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/weft_local_job_XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    output_ = Descriptor(::open((folder_ + "/out").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
    error_ = Descriptor(::open((folder_ + "/err").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
    input_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    children_before_ = child_processes();
  }
  void TearDown() override {
    EXPECT_EQ(child_processes(), children_before_) << "every child is reaped";
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] JobSpec shell(int ranks, std::string script) const {
    JobSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"sh", "-c", std::move(script)};
    spec.environment = current_environment();
    spec.ranks = ranks;
    spec.input_fd = input_.get();
    spec.output_fd = output_.get();
    spec.error_fd = error_.get();
    spec.name = "tester";
    return spec;
  }
  [[nodiscard]] std::string text(const char* name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string folder_;
  Descriptor input_;
  Descriptor output_;
  Descriptor error_;
  std::vector<pid_t> children_before_;
};

TEST_F(LocalJobTest, RunsAJobAndLeavesTheCallerAsItWas) {
  struct sigaction before {};
  ::sigaction(SIGPIPE, nullptr, &before);
  JobSpec spec = shell(3, "echo hello $WEFT_TRANSPORT");
  spec.settings = {{"WEFT_TRANSPORT", "tcp"}};
  const auto code = LocalJob(std::move(spec)).run();
  ASSERT_TRUE(code) << code.error().what();
  EXPECT_EQ(*code, 0);
  EXPECT_NE(text("out").find("[2] hello tcp\n"), std::string::npos);
  struct sigaction after {};
  ::sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST_F(LocalJobTest, SpeaksUnderTheNameOfItsProgram) {
  const auto code = LocalJob(shell(1, "exit 3")).run();
  ASSERT_TRUE(code);
  EXPECT_EQ(*code, 3);
  EXPECT_EQ(text("err").rfind("tester: rank 0 (pid ", 0), 0U) << text("err");
}

TEST_F(LocalJobTest, D23AKillDecidesBeforeTheExitCodesThatItCauses) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (int i = 0; i < 50; ++i) {
    JobSpec spec = shell(3, "case $RANK in 1) exec 9>" + fifo + "; kill -KILL $$;; 2) cat " + fifo + "; exit 5;; esac");
    spec.times.same_moment = spec.times.notice = std::chrono::milliseconds(60'000);
    const auto code = LocalJob(std::move(spec)).run();
    ASSERT_TRUE(code);
    ASSERT_EQ(*code, 137) << text("err");
  }
}

TEST_F(LocalJobTest, ABusyPortIsAnErrorAndNothingIsStarted) {
  const auto taken = open_store_socket(0);
  ASSERT_TRUE(taken);
  JobSpec spec = shell(2, "echo started");
  spec.port = taken->port;
  const auto code = LocalJob(std::move(spec)).run();
  ASSERT_FALSE(code);
  EXPECT_EQ(code.code(), Errc::address_in_use);
  EXPECT_EQ(exit_code_for_start_error(code.error()), 2);
  EXPECT_EQ(text("out"), "");
}

TEST_F(LocalJobTest, AProgramThatTheKernelRefusesIsAnError) {
  JobSpec spec = shell(3, "");
  spec.program = folder_ + "/out";  // exists, is empty and not executable
  const auto code = LocalJob(std::move(spec)).run();
  ASSERT_FALSE(code);
  EXPECT_EQ(code.code(), Errc::invalid_argument);
  EXPECT_EQ(text("err"), "") << "the caller words it";
}

TEST_F(LocalJobTest, NoDescriptorIsLeftOpen) {
  const auto count = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = count();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(LocalJob(shell(4, "exit 0")).run());
  EXPECT_EQ(count(), before);
}

TEST_F(LocalJobTest, AFullDiskEndsTheJob) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "no /dev/full here";
  JobSpec spec = shell(2, "echo text; exec sleep 600");
  spec.output_fd = full.get();
  const auto code = LocalJob(std::move(spec)).run();
  ASSERT_TRUE(code);
  EXPECT_EQ(*code, 1);
  EXPECT_NE(text("err").find("cannot write standard output: No space left"), std::string::npos) << text("err");
}

TEST_F(LocalJobTest, RunsHundredsOfRanks) {
  const auto code = LocalJob(shell(300, "echo here; exit 0")).run();
  ASSERT_TRUE(code) << code.error().what();
  EXPECT_EQ(*code, 0) << text("err");
  const std::string out = text("out");
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 300);
}

}  // namespace
}  // namespace weft::net::launch
