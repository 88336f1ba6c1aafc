#include "weft/coll/chunking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace {

using weft::coll::Chunk;
using weft::coll::Partition;

// Chunks follow each other without gap or overlap and end at the last element.
void expect_exact_cover(const Partition& partition) {
  std::size_t next = 0;
  for (std::size_t part = 0; part < partition.parts(); ++part) {
    const Chunk chunk = partition.chunk(part);
    ASSERT_EQ(chunk.offset, next);
    ASSERT_EQ(chunk.offset, partition.offset(part));
    ASSERT_EQ(chunk.count, partition.count(part));
    ASSERT_LE(chunk.count, partition.max_count());
    next = chunk.end();
  }
  ASSERT_EQ(next, partition.elements());
  ASSERT_EQ(partition.offset(partition.parts()), partition.elements());
}

TEST(Partition, CoversExactlyAndGivesTheFirstPartsTheRemainder) {
  for (std::size_t parts = 1; parts <= 17; ++parts) {
    for (std::size_t elements = 0; elements <= 200; ++elements) {
      SCOPED_TRACE(testing::Message() << elements << " elements, " << parts << " parts");
      const Partition partition(elements, parts);
      ASSERT_NO_FATAL_FAILURE(expect_exact_cover(partition));
      for (std::size_t part = 0; part < parts; ++part) {
        ASSERT_EQ(partition.count(part), elements / parts + (part < elements % parts ? 1 : 0));
      }
    }
  }
}

TEST(Partition, AlignedPartsStartAtMultiples) {
  for (const std::size_t alignment : {2u, 3u, 8u, 16u, 64u}) {
    for (std::size_t parts = 1; parts <= 17; ++parts) {
      for (std::size_t elements = 0; elements <= 200; ++elements) {
        SCOPED_TRACE(testing::Message() << elements << " / " << parts << ", alignment " << alignment);
        const Partition partition(elements, parts, alignment);
        ASSERT_NO_FATAL_FAILURE(expect_exact_cover(partition));
        for (std::size_t part = 0; part < parts; ++part) {
          const Chunk chunk = partition.chunk(part);
          // Expect: an aligned start, except for the empty chunks behind the last element.
          ASSERT_TRUE(chunk.offset % alignment == 0 || (chunk.count == 0 && chunk.offset == elements));
          // Expect: no chunk is more than one group shorter than the first, not counting the short last group.
          ASSERT_LE(partition.max_count(), chunk.count + 2 * alignment - 1);
        }
      }
    }
  }
}

TEST(Partition, WorksUpToTheEndOfSizeT) {
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  for (const std::size_t elements :
       {kMax, kMax - 1, kMax / 2 + 1, std::size_t{1} << 40, (std::size_t{1} << 40) + 12345}) {
    for (const std::size_t alignment : {1u, 16u, 64u, 1000u}) {
      for (std::size_t parts = 1; parts <= 17; ++parts) {
        SCOPED_TRACE(testing::Message() << elements << " / " << parts << ", alignment " << alignment);
        ASSERT_NO_FATAL_FAILURE(expect_exact_cover(Partition(elements, parts, alignment)));
      }
    }
  }
}

TEST(Partition, MorePartsThanElementsLeavesEmptyPartsAtTheEnd) {
  const Partition partition(3, 5);
  EXPECT_EQ(partition.chunk(2), (Chunk{2, 1}));
  EXPECT_EQ(partition.chunk(3), (Chunk{3, 0}));
  EXPECT_EQ(partition.chunk(4), (Chunk{3, 0}));
}

// Expect: a partition is a constant expression.
static_assert(Partition(10, 4).chunk(1) == Chunk{3, 3});
static_assert(Partition(10, 4).chunk(3) == Chunk{8, 2});
static_assert(Partition(100, 3, 16).chunk(0) == Chunk{0, 48});
static_assert(Partition(100, 3, 16).chunk(2) == Chunk{80, 20});

TEST(PartitionDeathTest, RefusesZeroPartsAndUnknownParts) {
  EXPECT_DEATH((void)Partition(1, 0), "parts must be at least 1");
  EXPECT_DEATH((void)Partition(1, 1, 0), "alignment must be at least 1");
  EXPECT_DEATH((void)Partition(4, 2).count(2), "no such part");
}

}  // namespace
