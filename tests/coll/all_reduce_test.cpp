// Goal: every algorithm gives the reduction of what all ranks bring, with the same bits on all of them.
#include "weft/coll/all_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <random>
#include <vector>

#include "support/world.hpp"
#include "weft/coll/barrier.hpp"
#include "weft/coll/broadcast.hpp"
#include "weft/coll/reduce_kernels.hpp"
#include "weft/runtime/nursery.hpp"

namespace weft {
namespace {

using coll::AllReduceAlgorithm;
using coll::Dtype;
using coll::ReduceOp;
using net::TransportChoice;
using test::in_world;
using test::WorldOptions;

constexpr std::array kAlgorithms = {AllReduceAlgorithm::automatic,        AllReduceAlgorithm::recursive_doubling,
                                    AllReduceAlgorithm::halving_doubling, AllReduceAlgorithm::ring,
                                    AllReduceAlgorithm::gather_local,     AllReduceAlgorithm::direct};

bool possible(AllReduceAlgorithm algorithm, Rank ranks) {
  return algorithm != AllReduceAlgorithm::halving_doubling || std::has_single_bit(static_cast<unsigned>(ranks));
}

struct Case {
  Rank ranks;
  TransportChoice transport;
};

class AllReduceTest : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static WorldOptions world() {
    WorldOptions options;
    options.ranks = GetParam().ranks;
    options.transport = GetParam().transport;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Worlds, AllReduceTest,
                         testing::Values(Case{1, TransportChoice::shm}, Case{2, TransportChoice::shm},
                                         Case{3, TransportChoice::shm}, Case{4, TransportChoice::shm},
                                         Case{5, TransportChoice::shm}, Case{7, TransportChoice::shm},
                                         Case{8, TransportChoice::shm}, Case{2, TransportChoice::tcp},
                                         Case{3, TransportChoice::tcp}, Case{4, TransportChoice::tcp}),
                         [](const auto& instance) {
                           return test::name_of(instance.param.transport) + std::to_string(instance.param.ranks);
                         });

std::int64_t value_at(Rank rank, std::size_t i) { return static_cast<std::int64_t>(i * 7 % 1000) * (rank + 1) - 300; }

template <typename T>
Task<void> integers(Communicator& world) {
  const Rank ranks = world.size();
  const auto p = static_cast<std::size_t>(ranks);
  const std::array<std::size_t, 9> counts = {0, 1, p - 1, p, p + 1, 2 * p - 1, 1000, 5000, 99991};
  for (const AllReduceAlgorithm algorithm : kAlgorithms) {
    if (!possible(algorithm, ranks)) continue;
    for (const ReduceOp op : coll::kAllReduceOps) {
      for (const std::size_t count : counts) {
        std::vector<T> in(count);
        for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<T>(value_at(world.rank(), i));
        std::vector<T> out(count + 8, T{77});
        const std::span<const T> source(in);
        co_await coll::all_reduce(world, source, std::span(out).first(count), op, algorithm);
        std::vector<T> in_place = in;
        co_await coll::all_reduce(world, std::span(in_place), op, algorithm);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          std::int64_t wanted = value_at(0, i);
          for (Rank rank = 1; rank < ranks; ++rank) {
            const std::int64_t next = value_at(rank, i);
            if (op == ReduceOp::min) wanted = std::min(wanted, next);
            else if (op == ReduceOp::max) wanted = std::max(wanted, next);
            else wanted += next;
          }
          if (op == ReduceOp::avg) wanted /= ranks;
          wrong += out[i] != static_cast<T>(wanted) || in_place[i] != out[i] ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0u) << to_string(algorithm) << " " << to_string(op) << " of " << count;
        EXPECT_TRUE(std::all_of(out.end() - 8, out.end(), [](T x) { return x == T{77}; }))
            << "written past the end: " << to_string(algorithm) << " of " << count;
      }
    }
  }
}

// Field reports D01, D03, D04, D05: in place, odd counts and ranks, nothing at all, integer averages.
TEST_P(AllReduceTest, D01D03D04D05IntegersAreExactForEveryAlgorithmCountAndOperation) {
  in_world(world(), integers<std::int32_t>);
  in_world(world(), integers<std::int64_t>);
}

/// What each rank got, to be compared when all are done.
class Answers {
 public:
  void add(std::vector<std::byte> answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  /// All of them, which must be equal; an empty vector when they are not.
  [[nodiscard]] std::vector<std::byte> the_one() const {
    for (const std::vector<std::byte>& answer : answers_) {
      if (answer != answers_.front()) return {};
    }
    return answers_.front();
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> answers_;
};

template <typename T>
std::vector<T> floats_of(Rank rank, std::size_t count) {
  std::mt19937_64 random(1234 + static_cast<std::uint64_t>(rank));
  std::vector<T> values(count);
  for (T& value : values) {
    const double magnitude = std::exp2(static_cast<double>(random() % 20) - 10.0);
    value = static_cast<T>(static_cast<float>((static_cast<double>(random() % 2001) - 1000.0) * magnitude / 1000.0));
  }
  return values;
}

struct BitsCase {
  ReduceOp op;
  std::size_t count;
  AllReduceAlgorithm algorithm;
  Answers* answers;
};

template <typename T>
Task<void> floats(Communicator& world, std::vector<BitsCase>* cases) {
  for (const BitsCase& item : *cases) {
    std::vector<T> values = floats_of<T>(world.rank(), item.count);
    co_await coll::all_reduce(world, std::span(values), item.op, item.algorithm);
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    item.answers->add(std::move(bytes));
  }
}

template <typename T>
std::vector<std::byte> left_to_right(Rank ranks, std::size_t count, ReduceOp op) {
  std::vector<std::vector<T>> all;
  std::vector<const std::byte*> inputs;
  for (Rank rank = 0; rank < ranks; ++rank) all.push_back(floats_of<T>(rank, count));
  for (const std::vector<T>& values : all) inputs.push_back(reinterpret_cast<const std::byte*>(values.data()));
  std::vector<std::byte> result(count * sizeof(T));
  coll::reduce_ranks(coll::dtype_of<T>, op, result.data(), inputs, count, static_cast<std::uint32_t>(ranks));
  return result;
}

/// Every operation, three counts, and each of `algorithms`.
std::vector<BitsCase> bits_cases(std::span<const AllReduceAlgorithm> algorithms, std::deque<Answers>& answers) {
  std::vector<BitsCase> cases;
  for (const ReduceOp op : coll::kAllReduceOps) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{1000}, std::size_t{40003}}) {
      for (const AllReduceAlgorithm algorithm : algorithms) {
        cases.push_back(BitsCase{op, count, algorithm, &answers.emplace_back()});
      }
    }
  }
  return cases;
}

template <typename T>
void check_bits(const WorldOptions& options) {
  constexpr std::array kAutomatic = {AllReduceAlgorithm::automatic};
  constexpr std::array kInOrder = {AllReduceAlgorithm::automatic, AllReduceAlgorithm::gather_local,
                                   AllReduceAlgorithm::direct};
  // Expect: whatever is chosen, all ranks hold the same bits.
  std::deque<Answers> consistent;
  std::vector<BitsCase> cases = bits_cases(kAutomatic, consistent);
  in_world(options, [&](Communicator& comm) { return floats<T>(comm, &cases); });
  for (const BitsCase& item : cases) EXPECT_FALSE(item.answers->the_one().empty()) << "ranks differ";
  // Expect: in canonical order, those of the sum from left to right.
  std::deque<Answers> canonical;
  cases = bits_cases(kInOrder, canonical);
  WorldOptions in_order = options;
  in_order.canonical_order = true;
  in_world(in_order, [&](Communicator& comm) { return floats<T>(comm, &cases); });
  if (options.ranks == 1) return;
  for (const BitsCase& item : cases) {
    EXPECT_EQ(item.answers->the_one(), left_to_right<T>(options.ranks, item.count, item.op))
        << to_string(item.algorithm) << " " << to_string(item.op) << " of " << item.count;
  }
}

// Field report D07: same input, other bits.
TEST_P(AllReduceTest, D07AllRanksHoldTheSameBitsAndCanonicalOrderIsLeftToRight) {
  check_bits<float>(world());
  check_bits<double>(world());
  check_bits<f16>(world());
  check_bits<bf16>(world());
}

Task<void> halves(Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  for (const std::size_t count : {std::size_t{1}, std::size_t{20000}}) {
    std::vector<f16> large(count, f16(60000.0F));
    co_await coll::all_reduce(world, std::span(large), coll::avg);
    EXPECT_EQ(static_cast<float>(large.back()), static_cast<float>(f16(60000.0F)));
    std::vector<bf16> mixed(count, bf16(world.rank() == 0 ? 256.0F : 1.0F));
    co_await coll::all_reduce(world, std::span(mixed), coll::sum);
    EXPECT_EQ(static_cast<float>(mixed.back()), static_cast<float>(bf16(256.0F + (ranks - 1))));
    std::vector<float> nan(count, world.rank() == world.size() - 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
    co_await coll::all_reduce(world, std::span(nan), coll::max);
    EXPECT_TRUE(std::isnan(nan.back()));
  }
}

// Field report D06: half types: sum overflows, small terms vanish; NaN reaches every rank.
TEST_P(AllReduceTest, D06HalfTypesAccumulateInF32AndNanReachesEveryRank) { in_world(world(), halves); }

Task<void> one_of_many(Communicator* world, std::vector<std::int64_t>* values) {
  co_await coll::all_reduce(*world, std::span(*values), coll::sum);
}

Task<void> many(Nursery& nursery, Communicator* world, std::vector<std::vector<std::int64_t>>* all) {
  for (std::vector<std::int64_t>& values : *all) nursery.start(one_of_many(world, &values));
  co_return;
}

Task<void> sixteen_at_once(Communicator& world) {
  std::vector<std::vector<std::int64_t>> all;
  for (std::size_t i = 0; i < 16; ++i) all.emplace_back(1 + i * 1777, static_cast<std::int64_t>(i) + world.rank());
  co_await with_nursery(many, &world, &all);
  const std::int64_t ranks = world.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t wanted = static_cast<std::int64_t>(i) * ranks + ranks * (ranks - 1) / 2;
    EXPECT_EQ(all[i].front(), wanted);
    EXPECT_EQ(all[i].back(), wanted);
  }
}

// Field report D08: two collectives at once on one group mix their packets.
TEST_P(AllReduceTest, D08SixteenAtOnceDoNotMix) { in_world(world(), sixteen_at_once); }

Task<void> broadcasts(Communicator& world) {
  for (Rank root = 0; root < world.size(); ++root) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300001}}) {
      std::vector<std::uint32_t> values(count, world.rank() == root ? 7u + static_cast<unsigned>(root) : 0u);
      co_await coll::broadcast(world, std::span(values), root);
      EXPECT_EQ(std::count(values.begin(), values.end(), 7u + static_cast<unsigned>(root)),
                static_cast<std::ptrdiff_t>(count));
    }
  }
}

TEST_P(AllReduceTest, BroadcastReachesEveryRankFromEveryRoot) { in_world(world(), broadcasts); }

Task<void> count_in(Communicator& world, std::atomic<int>* arrived) {
  for (int round = 1; round <= 20; ++round) {
    arrived->fetch_add(1);
    co_await coll::barrier(world);
    EXPECT_GE(arrived->load(), round * world.size());
  }
}

TEST_P(AllReduceTest, NobodyLeavesABarrierBeforeEverybodyHasCome) {
  std::atomic<int> arrived{0};
  in_world(world(), [&](Communicator& comm) { return count_in(comm, &arrived); });
}

Task<void> disagree(Communicator& world, int how) {
  std::vector<float> values(how == 1 && world.rank() == 1 ? 10 : 12);
  if (how == 0 && world.rank() == 1) {
    co_await coll::barrier(world);
  } else if (how == 2 && world.rank() == 1) {
    co_await coll::all_reduce(world, std::span(values), coll::max);
  } else {
    co_await coll::all_reduce(world, std::span(values), coll::sum);
  }
}

TEST_P(AllReduceTest, RanksThatDisagreeAreToldWhatTheOtherCalled) {
  if (GetParam().ranks == 1) return;
  for (int how = 0; how < 3; ++how) {
    int mismatches = 0;
    int explained = 0;
    const auto main = [how](Communicator& comm) { return disagree(comm, how); };
    for (const RankOutcome& outcome : test::run_world(world(), main)) {
      const Errc code = test::code_of(outcome.failure);
      const std::string text = test::text_of(outcome.failure);
      // Expect: no success and no hang; ranks that did not meet each other hear of it from those who did.
      EXPECT_TRUE(code == Errc::mismatch || code == Errc::peer_lost) << text;
      mismatches += code == Errc::mismatch ? 1 : 0;
      explained += text.find("all_reduce of f32") != std::string::npos ? 1 : 0;
    }
    EXPECT_GE(explained, 1) << how;
    EXPECT_GE(mismatches, 2) << how;
  }
}

TEST(AllReduce, RefusesWhatOverlapsInPart) {
  in_world(WorldOptions{1}, [](Communicator& comm) -> Task<void> {
    std::vector<float> values(10);
    const std::span<float> all(values);
    const std::span<const float> in = all.first(8);
    Errc code = Errc::ok;
    try {
      co_await coll::all_reduce(comm, in, all.subspan(1, 8), coll::sum);
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_EQ(code, Errc::invalid_argument);
  });
}

TEST(AllReduce, TheChoiceDependsOnSharedValuesOnly) {
  EXPECT_EQ(coll::choose_all_reduce(8, Dtype::f32, Order::consistent, 4), AllReduceAlgorithm::recursive_doubling);
  EXPECT_EQ(coll::choose_all_reduce(1 << 20, Dtype::f32, Order::consistent, 4), AllReduceAlgorithm::halving_doubling);
  EXPECT_EQ(coll::choose_all_reduce(1 << 20, Dtype::f32, Order::consistent, 6), AllReduceAlgorithm::ring);
  EXPECT_EQ(coll::choose_all_reduce(64 << 20, Dtype::f32, Order::consistent, 4), AllReduceAlgorithm::ring);
  EXPECT_EQ(coll::choose_all_reduce(8, Dtype::f32, Order::canonical, 4), AllReduceAlgorithm::gather_local);
  EXPECT_EQ(coll::choose_all_reduce(1 << 20, Dtype::f32, Order::canonical, 4), AllReduceAlgorithm::direct);
  EXPECT_EQ(coll::choose_all_reduce(1 << 20, Dtype::bf16, Order::consistent, 4), AllReduceAlgorithm::direct);
}

}  // namespace
}  // namespace weft
