// Goal: per key first in, first out, whatever the hash does, through growth and removal from any place.
#include "weft/net/match/keyed_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace weft::net {
namespace {

struct Item;
struct ByKey {
  static MatchKey key(const Item& item) noexcept;
};

struct Item : KeyedHook<ByKey> {
  MatchKey key;
  int id = 0;
};

MatchKey ByKey::key(const Item& item) noexcept {
  return item.key;
}

using Queue = KeyedQueue<Item, ByKey>;

std::unique_ptr<Item> make(const MatchKey& key, int id) {
  auto item = std::make_unique<Item>();
  item->key = key;
  item->id = id;
  return item;
}

TEST(KeyedQueue, EmptyQueueFindsNothing) {
  Queue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.oldest({1, 2, 3}), nullptr);
  EXPECT_EQ(queue.visited(), 0u);
}

TEST(KeyedQueue, ObjectsOfOneKeyComeOldestFirst) {
  Queue queue;
  std::vector<std::unique_ptr<Item>> items;
  for (int id = 0; id < 5; ++id)
    queue.push_back(*items.emplace_back(make({1, 2, 3}, id)));
  for (int id = 0; id < 5; ++id) {
    Item* oldest = queue.oldest({1, 2, 3});
    ASSERT_NE(oldest, nullptr);
    EXPECT_EQ(oldest->id, id);
    queue.erase(*oldest);
    EXPECT_FALSE(oldest->queued());
  }
  EXPECT_TRUE(queue.empty());
}

TEST(KeyedQueue, ErasingTheOldestTheYoungestAndOneBetweenKeepsTheOrderOfTheRest) {
  for (std::size_t victim : {0u, 1u, 3u}) {
    Queue queue;
    std::vector<std::unique_ptr<Item>> items;
    for (int id = 0; id < 4; ++id)
      queue.push_back(*items.emplace_back(make({}, id)));
    queue.erase(*items[victim]);
    for (int id = 0; id < 4; ++id) {
      if (static_cast<std::size_t>(id) == victim) continue;
      ASSERT_EQ(queue.oldest({})->id, id);
      queue.erase(*queue.oldest({}));
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(KeyedQueue, GrowsWithItsKeysAndNotWithItsObjects) {
  Queue queue;
  std::vector<std::unique_ptr<Item>> items;
  for (int id = 0; id < 5000; ++id)
    queue.push_back(*items.emplace_back(make({}, id)));
  EXPECT_EQ(queue.buckets(), Queue::kFirstBuckets);
  for (int id = 0; id < 5000; ++id) {
    const MatchKey key{1, 0, static_cast<std::uint64_t>(id)};
    queue.push_back(*items.emplace_back(make(key, id)));
  }
  EXPECT_EQ(queue.buckets(), 8192u);
  for (auto& item : items) {
    ASSERT_EQ(queue.oldest(item->key), item.get());
    queue.erase(*item);
  }
}

TEST(KeyedQueue, RandomUseAgreesWithAMapOfDeques) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto order = [](const MatchKey& a, const MatchKey& b) {
    return std::tie(a.context, a.source, a.tag) < std::tie(b.context, b.source, b.tag);
  };
  std::map<MatchKey, std::deque<std::unique_ptr<Item>>, decltype(order)> model(order);
  Queue queue;
  std::size_t live = 0;
  for (int step = 0; step < 60'000; ++step) {
    const MatchKey key{static_cast<std::uint32_t>(random() % 2), static_cast<std::int32_t>(random() % 3),
                       std::uint64_t{random() % 200} << 40};
    auto& entry = model[key];
    const auto action = random() % 100;
    if (action < 52) {
      queue.push_back(*entry.emplace_back(make(key, step)));
      ++live;
    } else if (action < 99) {
      ASSERT_EQ(queue.oldest(key), entry.empty() ? nullptr : entry.front().get());
      if (entry.empty()) continue;
      const auto victim = entry.begin() + (action < 80 ? 0 : static_cast<std::ptrdiff_t>(random() % entry.size()));
      queue.erase(**victim);
      entry.erase(victim);
      --live;
    } else {
      // Expect: a walk meets each object once, those of one key in order, and may erase as it goes.
      std::set<Item*> erased;
      std::map<MatchKey, int, decltype(order)> last(order);
      std::size_t met = 0;
      queue.for_each([&](Item& item) {
        ++met;
        const auto [place, first] = last.try_emplace(item.key, item.id);
        EXPECT_TRUE(first || place->second < item.id);
        place->second = item.id;
        if (random() % 3 != 0) return;
        queue.erase(item);
        erased.insert(&item);
      });
      ASSERT_EQ(met, live);
      live -= erased.size();
      for (auto& [any, items] : model) {
        std::erase_if(items, [&](const std::unique_ptr<Item>& item) { return erased.count(item.get()) != 0; });
      }
    }
  }
  for (auto& [key, items] : model) {
    for (auto& item : items) {
      ASSERT_EQ(queue.oldest(key), item.get());
      queue.erase(*item);
    }
  }
  EXPECT_TRUE(queue.empty());
}

TEST(MatchKeyHash, SpreadsTheKeysThatProgramsUse) {
  // Goal: with as many keys as buckets, chains stay as short as chance makes them (longest about 8 of 4096).
  constexpr std::size_t kKeys = 4096;
  const auto longest_chain = [](auto key_of) {
    std::vector<int> chains(kKeys);
    for (std::size_t i = 0; i < kKeys; ++i)
      ++chains[key_of(static_cast<std::uint32_t>(i)).hash() >> (64 - 12)];
    return *std::max_element(chains.begin(), chains.end());
  };
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{1, 0, i}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{1, 0, std::uint64_t{i} << 12}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{1, 0, std::uint64_t{i} << 32}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{1, 0, std::uint64_t{i} << 52}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{1, static_cast<std::int32_t>(i), 7}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{i, 0, 7}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{i, static_cast<std::int32_t>(i), i}; }), 12);
  EXPECT_LE(longest_chain([](std::uint32_t i) { return MatchKey{2, static_cast<std::int32_t>(i % 64), i / 64}; }), 12);
}

}  // namespace
}  // namespace weft::net
