// Which samples a rank works on.
#include "batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace digits {
namespace {

TEST(EpochOrder, IsAPermutationOfItsSeedAndEpoch) {
  std::vector<std::uint32_t> order(1437);
  std::vector<std::uint32_t> other(order.size());
  epoch_order(order, 1, 5);
  epoch_order(other, 1, 5);
  EXPECT_EQ(order, other);
  epoch_order(other, 1, 6);
  EXPECT_NE(order, other);
  epoch_order(other, 2, 5);
  EXPECT_NE(order, other);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> all(order.size());
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(order, all);
}

TEST(PartOf, CutsWithoutGapsIntoPartsThatDifferByOne) {
  for (const std::size_t count : {0U, 1U, 3U, 29U, 64U}) {
    for (const std::size_t parts : {1U, 2U, 3U, 4U, 8U, 65U}) {
      std::size_t next = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        const Range range = part_of(count, part, parts);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.size(), count / parts);
        EXPECT_LE(range.size(), count / parts + 1);
        next = range.last;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace digits
