// Goal: ranks that were started differently are told so, all of them, with the name of what differs.
#include "agreement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/world.hpp"

namespace digits {
namespace {

using weft::Communicator;
using weft::RankOutcome;
using weft::Task;
using weft::test::WorldOptions;

// All the same but on rank `odd`, where "--seed" is another.
Task<void> compare(Communicator& world, weft::Rank odd) {
  const std::uint64_t seed = world.rank() == odd ? 9 : 3;
  std::vector<SharedValue> values;
  values.push_back(SharedValue{"--epochs", "30", 30});
  values.push_back(SharedValue{"--seed", std::to_string(seed), seed});
  values.push_back(SharedValue{"--batch", "64", 64});
  std::string subject = "start";
  co_await expect_agreement(world, std::move(subject), std::move(values));
}

TEST(Agreement, IsFoundWhereThereIsOne) {
  for (const std::int32_t ranks : {1, 2, 3, 5}) {
    WorldOptions options;
    options.ranks = ranks;
    weft::test::in_world(options, [](Communicator& world) { return compare(world, -1); });
  }
}

TEST(Agreement, NamesWhatDiffersOnEveryRank) {
  for (const weft::Rank odd : {0, 1, 2}) {
    WorldOptions options;
    options.ranks = 3;
    const std::vector<RankOutcome> outcomes =
        weft::test::run_world(options, [odd](Communicator& world) { return compare(world, odd); });
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_EQ(weft::test::code_of(outcome.failure), weft::Errc::mismatch);
      const std::string here = outcome.rank == odd ? "9" : "3";
      EXPECT_EQ(weft::test::text_of(outcome.failure), "start: ranks of this job differ in --seed (here " + here + ")");
    }
  }
}

}  // namespace
}  // namespace digits
