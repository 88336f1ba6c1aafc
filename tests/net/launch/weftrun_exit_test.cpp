// Field report D23: which exit status a job has, and what is said about the ranks that failed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "net/launch/launched.hpp"

namespace weft::net::launch {
namespace {

using testing::Launched;
using testing::shell_job;

TEST(WeftrunExit, D23ARankThatReturns3EveryTime) {
  for (int i = 0; i < 100; ++i) {
    Launched job(shell_job(4, "[ $RANK = 2 ] && exit 3; exit 0"));
    ASSERT_EQ(job.wait(), 3) << job.err();
    ASSERT_NE(job.err().find("weftrun: rank 2 (pid "), std::string::npos) << job.err();
    ASSERT_NE(job.err().find(") exited with code 3\n"), std::string::npos) << job.err();
  }
}

TEST(WeftrunExit, D23AllRanksReturn0EveryTime) {
  for (int i = 0; i < 100; ++i) {
    Launched job(shell_job(4, "exit 0"));
    ASSERT_EQ(job.wait(), 0);
    ASSERT_EQ(job.err(), "");
  }
}

TEST(WeftrunExit, D23ARankThatDiesOfASignalEveryTime) {
  for (int i = 0; i < 100; ++i) {
    Launched job(shell_job(4, "[ $RANK = 2 ] && kill -SEGV $$; exit 0"));
    ASSERT_EQ(job.wait(), 139) << job.err();
    ASSERT_NE(job.err().find("weftrun: rank 2 (pid "), std::string::npos) << job.err();
    ASSERT_NE(job.err().find(") died of signal 11 (SIGSEGV"), std::string::npos) << job.err();
  }
}

TEST(WeftrunExit, D23ARankMayLeaveEarlyWith0) {
  // Rank 0 reads what is sent long after rank 1 has left.
  Launched job(shell_job(3, "[ $RANK = 1 ] && exit 0; sleep 1; echo done; exit 0"));
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.out().find("[0] done\n"), std::string::npos);
  EXPECT_NE(job.out().find("[2] done\n"), std::string::npos);
}

TEST(WeftrunExit, D23OfTwoFailuresTheFirstDecides) {
  char folder[] = "/tmp/weft_exit_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string fifo = std::string(folder) + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  // Rank 2 fails once the end of rank 1 has been reported and the test has opened its fifo.
  Launched job(shell_job(3, "case $RANK in 1) exit 3;; 2) trap '' TERM; cat " + fifo + "; exit 5;; esac"));
  ASSERT_TRUE(job.wait_for_error("exited with code 3"));
  { const Descriptor opened(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC)); }  // waits for rank 0 to have opened it
  EXPECT_EQ(job.wait(), 3) << job.err();
  EXPECT_EQ(job.left_behind(), "");
  std::filesystem::remove_all(folder);
}

TEST(WeftrunExit, D23TwoFailuresAtOnceAreBothReportedAndOneOfThemDecides) {
  for (int i = 0; i < 100; ++i) {
    Launched job(shell_job(4, "case $RANK in 1) exit 3;; 2) exit 5;; esac"));
    const int code = job.wait();
    ASSERT_TRUE(code == 3 || code == 5) << code;
    ASSERT_NE(job.err().find("exited with code 3"), std::string::npos) << job.err();
    ASSERT_NE(job.err().find("exited with code 5"), std::string::npos) << job.err();
  }
}

TEST(WeftrunExit, D23ARankThatFailsDoesNotLeaveTheOthersHanging) {
  Launched job(shell_job(4, "[ $RANK = 2 ] && exit 3; exec sleep 600"));
  EXPECT_EQ(job.wait(), 3);
  EXPECT_NE(job.err().find("ranks 0-1, 3 did not end within 1 s of the failure: sent SIGTERM"), std::string::npos)
      << job.err();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunExit, D23ARankThatIgnoresTermIsKilledAfterTheFailureOfAnother) {
  Launched job(shell_job(2, "[ $RANK = 1 ] && exit 4; trap '' TERM; while :; do sleep 1; done"));
  EXPECT_EQ(job.wait(), 4);
  EXPECT_NE(job.err().find("rank 0 did not end within 1 s of SIGTERM: sent SIGKILL"), std::string::npos) << job.err();
  EXPECT_EQ(job.left_behind(), "");
}

TEST(WeftrunExit, D23OthersMayEndWithWordsOfTheirOwnAfterAFailure) {
  char folder[] = "/tmp/weft_exit_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string fifo = std::string(folder) + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Launched job(shell_job(
      2, "[ $RANK = 1 ] && kill -KILL $$; trap '' TERM; cat " + fifo + "; echo 'rank 1 was lost' >&2; exit 1"));
  ASSERT_TRUE(job.wait_for_error("died of signal 9 (SIGKILL)"));
  { const Descriptor opened(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC)); }  // waits for rank 0 to have opened it
  EXPECT_EQ(job.wait(), 137) << job.err();
  EXPECT_NE(job.err().find("[0] rank 1 was lost\n"), std::string::npos) << job.err();
  std::filesystem::remove_all(folder);
}

TEST(WeftrunExit, ManyFailuresAreCountedRatherThanListed) {
  Launched job(shell_job(40, "exit 1"));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_NE(job.err().find("weftrun: and 24 more that failed\n"), std::string::npos) << job.err();
}

TEST(WeftrunExit, LastWordsComeBeforeTheReportOfTheDeath) {
  Launched job(shell_job(2, "[ $RANK = 0 ] && exit 0; echo 'last words' >&2; kill -ABRT $$"));
  EXPECT_EQ(job.wait(), 134);
  const std::size_t words = job.err().find("[1] last words\n");
  const std::size_t report = job.err().find("weftrun: rank 1");
  ASSERT_NE(words, std::string::npos) << job.err();
  ASSERT_NE(report, std::string::npos) << job.err();
  EXPECT_LT(words, report);
}

TEST(WeftrunExit, AScriptWithoutItsInterpreterIsRefused) {
  char path[] = "/tmp/weft_exit_XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  const std::string script = "#!/nosuch/interpreter\n";
  ASSERT_EQ(::write(file, script.data(), script.size()), static_cast<ssize_t>(script.size()));
  ::fchmod(file, 0755);
  ::close(file);
  Launched job({"-n", "3", path});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_NE(job.err().find("the interpreter it names does not exist"), std::string::npos) << job.err();
  EXPECT_EQ(job.left_behind(), "");
  ::unlink(path);
}

}  // namespace
}  // namespace weft::net::launch
