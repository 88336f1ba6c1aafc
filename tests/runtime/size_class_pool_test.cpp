// Goal: blocks have the promised size and alignment, come back from the cache, and may be given to another pool; the
// cache is bounded.
#include "weft/runtime/size_class_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace weft {
namespace {

#define SKIP_WITHOUT_POOLING() \
  if (!SizeClassPool::kPooling) GTEST_SKIP() << "AddressSanitizer: every block comes from operator new"

TEST(SizeClassPool, BlockSizesStepBy64UpTo1KiBThenDoubleUpTo64KiB) {
  EXPECT_EQ(SizeClassPool::block_bytes(0), 64u);
  EXPECT_EQ(SizeClassPool::block_bytes(1), 64u);
  EXPECT_EQ(SizeClassPool::block_bytes(64), 64u);
  EXPECT_EQ(SizeClassPool::block_bytes(65), 128u);
  EXPECT_EQ(SizeClassPool::block_bytes(1000), 1024u);
  EXPECT_EQ(SizeClassPool::block_bytes(1024), 1024u);
  EXPECT_EQ(SizeClassPool::block_bytes(1025), 2048u);
  EXPECT_EQ(SizeClassPool::block_bytes(2049), 4096u);
  EXPECT_EQ(SizeClassPool::block_bytes(32769), 65536u);
  EXPECT_EQ(SizeClassPool::block_bytes(65536), 65536u);
  EXPECT_EQ(SizeClassPool::block_bytes(65537), 65537u);

  std::set<std::size_t> sizes;
  for (std::size_t bytes = 0; bytes <= SizeClassPool::kLargestBytes; ++bytes) {
    ASSERT_GE(SizeClassPool::block_bytes(bytes), bytes);
    sizes.insert(SizeClassPool::block_bytes(bytes));
  }
  EXPECT_EQ(sizes.size(), SizeClassPool::kClasses);
}

TEST(SizeClassPool, EveryBlockIsWritableToItsEndAndAligned) {
  SizeClassPool pool;
  for (std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 2048u, 40'000u, 65'536u, 65'537u, 1'000'000u}) {
    void* block = pool.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % SizeClassPool::kAlignment, 0u) << bytes;
    std::memset(block, 0x5a, bytes);
    pool.deallocate(block, bytes);
  }
}

TEST(SizeClassPool, GivesBackTheLastBlockOfTheSameClass) {
  SKIP_WITHOUT_POOLING();
  SizeClassPool pool;
  for (std::size_t bytes : {48u, 200u, 1024u, 1026u, 5000u, 65'536u}) {
    void* first = pool.allocate(bytes);
    pool.deallocate(first, bytes);
    void* second = pool.allocate(bytes - 1);
    EXPECT_EQ(first, second) << bytes;
    pool.deallocate(second, bytes - 1);
  }
  EXPECT_EQ(pool.counters().misses, 6u);
  EXPECT_EQ(pool.counters().hits, 6u);
  EXPECT_EQ(pool.counters().oversize, 0u);
  EXPECT_EQ(pool.cached_bytes(), 64u + 256u + 1024u + 2048u + 8192u + 65'536u);
}

TEST(SizeClassPool, AnotherSizeClassIsAnotherBlock) {
  SizeClassPool pool;
  void* small = pool.allocate(64);
  pool.deallocate(small, 64);
  const std::uint64_t misses = pool.counters().misses;
  void* larger = pool.allocate(65);
  EXPECT_EQ(pool.counters().misses, misses + 1);
  pool.deallocate(larger, 65);
}

TEST(SizeClassPool, LargerThanTheLargestClassIsCountedAndNotKept) {
  SizeClassPool pool;
  void* block = pool.allocate(SizeClassPool::kLargestBytes + 1);
  pool.deallocate(block, SizeClassPool::kLargestBytes + 1);
  EXPECT_EQ(pool.counters().oversize, 1u);
  EXPECT_EQ(pool.counters().misses, 0u);
  EXPECT_EQ(pool.cached_bytes(), 0u);
}

TEST(SizeClassPool, KeepsNoMoreThanItsBoundPerClass) {
  SKIP_WITHOUT_POOLING();
  SizeClassPool pool;
  for (std::size_t bytes : {std::size_t{960}, SizeClassPool::kLargestBytes}) {
    const std::size_t limit = SizeClassPool::kCachedBytesPerClass / bytes;
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < limit + 10; ++i)
      blocks.push_back(pool.allocate(bytes));
    for (void* block : blocks)
      pool.deallocate(block, bytes);
    EXPECT_EQ(pool.cached_bytes(), limit * bytes);
    pool.trim();
    EXPECT_EQ(pool.cached_bytes(), 0u);
  }
}

TEST(SizeClassPool, TrimmedPoolsServeAgain) {
  SizeClassPool pool;
  pool.deallocate(pool.allocate(100), 100);
  pool.trim();
  void* block = pool.allocate(100);
  std::memset(block, 1, 100);
  pool.deallocate(block, 100);
  EXPECT_EQ(pool.counters().misses, 2u);
}

TEST(SizeClassPool, ABlockMayEndInAnotherPoolThatOutlivesItsOwn) {
  SizeClassPool survivor;
  void* pooled = nullptr;
  {
    SizeClassPool maker;
    pooled = maker.allocate(300);
  }
  survivor.deallocate(pooled, 300);
  survivor.deallocate(SizeClassPool::allocate_unpooled(300), 300);
  SizeClassPool::deallocate_unpooled(survivor.allocate(300), 300);
  EXPECT_EQ(survivor.counters().hits, SizeClassPool::kPooling ? 1u : 0u);
}

TEST(SizeClassPool, RandomUseNeverHandsOutOverlappingBlocks) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  SizeClassPool pool;
  std::map<std::byte*, std::pair<std::size_t, std::byte>> live;
  std::uint64_t served = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() < 200 && random() % 2 == 0) {
      const std::size_t bytes = random() % 8 == 0 ? random() % 70'000 : random() % 1500;
      auto* block = static_cast<std::byte*>(pool.allocate(bytes));
      ++served;
      const auto mark = static_cast<std::byte>(random());
      std::memset(block, static_cast<int>(mark), bytes);
      ASSERT_TRUE(live.emplace(block, std::pair(bytes, mark)).second) << "a live block was handed out again";
    } else if (!live.empty()) {
      auto victim = live.lower_bound(static_cast<std::byte*>(live.begin()->first + random() % 100'000));
      if (victim == live.end()) victim = live.begin();
      const auto [bytes, mark] = victim->second;
      for (std::size_t i = 0; i < bytes; ++i)
        ASSERT_EQ(victim->first[i], mark) << "another block wrote here";
      pool.deallocate(victim->first, bytes);
      live.erase(victim);
    }
  }
  for (const auto& [block, use] : live)
    pool.deallocate(block, use.first);
  EXPECT_EQ(pool.counters().hits + pool.counters().misses + pool.counters().oversize, served);
}

TEST(SizeClassPoolDeathTest, OutOfMemoryAbortsWithAMessage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator ends the program by itself";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer's allocator ends the program by itself";
#endif
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SizeClassPool pool;
  volatile std::size_t absurd_bytes = PTRDIFF_MAX;
  EXPECT_DEATH(static_cast<void>(pool.allocate(absurd_bytes)), "out of memory");
}

}  // namespace
}  // namespace weft
