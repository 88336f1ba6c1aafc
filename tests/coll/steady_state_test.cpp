// Goal: what a training step awaits again and again allocates nothing once it is warm, on every transport.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/world.hpp"
#include "weft/coll/all_reduce.hpp"
#include "weft/coll/barrier.hpp"
#include "weft/runtime/frame_pool.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using net::TransportChoice;
using test::WorldOptions;

class SteadyStateTest : public testing::TestWithParam<TransportChoice> {
 protected:
  void SetUp() override {
    if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: frames are not pooled, so that it sees each of them";
  }
  [[nodiscard]] static WorldOptions world(bool canonical) {
    WorldOptions options;
    options.transport = GetParam();
    options.canonical_order = canonical;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, SteadyStateTest, testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& instance) { return test::name_of(instance.param); });

// Enough for every pool and table to reach its size, and for credit to have gone round several times.
constexpr int kWarmUp = 6000;
constexpr int kCounted = 2000;

Task<void> ping_pong(Communicator& world, std::size_t bytes, int rounds) {
  std::vector<std::byte> buffer(bytes);
  const Rank peer = 1 - world.rank();
  for (int i = 0; i < rounds; ++i) {
    if (world.rank() == 0) {
      co_await world.send(peer, 1, std::span<const std::byte>(buffer));
      co_await world.recv(peer, 2, std::span(buffer));
    } else {
      co_await world.recv(peer, 1, std::span(buffer));
      co_await world.send(peer, 2, std::span<const std::byte>(buffer));
    }
  }
}

/// Nobody goes on before both have read their counts: what comes next may well allocate.
Task<void> both_have_counted(Communicator& world) {
  const Rank peer = 1 - world.rank();
  const std::span<std::byte> nothing;
  co_await world.sendrecv(peer, 9, nothing, peer, 9, nothing);
}

/// Each rank comes late in turn, so that the other's message is unexpected: its memory is part of the steady state.
Task<void> meet_late_in_turn(Communicator& world) {
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == world.rank()) co_await sleep_for(std::chrono::milliseconds(1));
    co_await both_have_counted(world);
  }
}

Task<void> count_messages(Communicator& world) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, std::size_t{100000}}) {
    const int scale = bytes > 10000 ? 10 : 1;
    co_await ping_pong(world, bytes, kWarmUp / scale);
    co_await meet_late_in_turn(world);
    // The buffer of the counted rounds is one allocation of the test's own.
    const std::uint64_t before = test::allocations_of_this_thread();
    co_await ping_pong(world, bytes, kCounted / scale);
    const std::uint64_t after = test::allocations_of_this_thread();
    co_await both_have_counted(world);
    EXPECT_LE(after - before, 1u) << bytes << " bytes";
  }
}

TEST_P(SteadyStateTest, SendAndRecvAllocateNothing) { test::in_world(world(false), count_messages); }

Task<void> reductions(Communicator& world, std::vector<float>* values, int rounds) {
  for (int i = 0; i < rounds; ++i) co_await coll::all_reduce(world, std::span(*values), coll::max);
}

Task<void> barriers(Communicator& world, int rounds) {
  for (int i = 0; i < rounds; ++i) co_await coll::barrier(world);
}

/// Each rank comes late in turn, so that the other's messages are unexpected: their memory is part of the steady state.
Task<void> late_in_turn(Communicator& world, std::vector<float>* values) {
  for (int i = 0; i < 20; ++i) {
    if (i % 2 == world.rank()) co_await sleep_for(std::chrono::milliseconds(1));
    co_await reductions(world, values, 1);
    co_await barriers(world, 1);
  }
}

Task<void> count_reductions(Communicator& world) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{1000}, std::size_t{10000}}) {
    std::vector<float> values(count, 1.0F);
    co_await reductions(world, &values, kWarmUp);
    co_await barriers(world, kWarmUp);
    co_await late_in_turn(world, &values);
    co_await meet_late_in_turn(world);
    const std::uint64_t before = test::allocations_of_this_thread();
    co_await reductions(world, &values, kCounted);
    co_await barriers(world, kCounted);
    const std::uint64_t after = test::allocations_of_this_thread();
    co_await both_have_counted(world);
    EXPECT_EQ(after - before, 0u) << count << " floats";
  }
}

TEST_P(SteadyStateTest, AllReduceAndBarrierAllocateNothing) {
  test::in_world(world(false), count_reductions);
  test::in_world(world(true), count_reductions);
}

}  // namespace
}  // namespace weft
