// Goal: run() turns whatever becomes of the ranks into one exit code, and leaves nothing behind.
#include "weft/net/run.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/world.hpp"

namespace weft {
namespace {

/// Runs a program of one rank, started by hand.
int run_alone(const RankMain& main, std::string& said) {
  std::string name = "/some/where/program";
  char* argv[] = {name.data(), nullptr};
  testing::internal::CaptureStderr();
  const int code = run(1, argv, main);
  said = testing::internal::GetCapturedStderr();
  return code;
}

TEST(Run, GivesZeroWhenAllRanksEndInOrder) {
  std::string said;
  EXPECT_EQ(run_alone(
                [](Communicator& world) -> Task<void> {
                  EXPECT_EQ(world.size(), 1);
                  co_return;
                },
                said),
            0);
  EXPECT_EQ(said, "");
}

Task<void> fail_with(Errc code) {
  throw Error(code, "recv", "some reason");
  co_return;
}
Task<void> fail_as_user() {
  throw std::runtime_error("out of data");
  co_return;
}
Task<void> fail_oddly() {
  throw 42;
  co_return;
}

TEST(Run, GivesOneForAFailureAndTwoForBadUse) {
  std::string said;
  EXPECT_EQ(run_alone([](Communicator&) { return fail_with(Errc::peer_lost); }, said), kExitFailure);
  EXPECT_EQ(said, "program: recv: some reason\n");
  EXPECT_EQ(run_alone([](Communicator&) { return fail_with(Errc::bad_environment); }, said), kExitBadUse);
}

TEST(Run, ReportsExceptionsOfEveryType) {
  std::string said;
  EXPECT_EQ(run_alone([](Communicator&) { return fail_as_user(); }, said), kExitFailure);
  EXPECT_EQ(said, "program: out of data\n");
  EXPECT_EQ(run_alone([](Communicator&) { return fail_oddly(); }, said), kExitFailure);
  EXPECT_NE(said.find("no std::exception"), std::string::npos) << said;
}

TEST(Run, MayBeCalledAgainAndLeavesTheThreadWhereItWas) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (int i = 0; i < 3; ++i) {
    test::in_world(test::WorldOptions{2}, [](Communicator& world) -> Task<void> {
      EXPECT_EQ(world.size(), 2);
      co_return;
    });
    std::string said;
    EXPECT_EQ(run_alone([](Communicator&) -> Task<void> { co_return; }, said), 0);
  }
  cpu_set_t after;
  CPU_ZERO(&after);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace weft
