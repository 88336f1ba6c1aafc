// Goal: the scheduler over real communicators, ranks as threads of one process: exact averages step after step with
// streams that compute, the same bits for every bucket size and transport under the canonical order, and a disagreement
// or a rank that is gone told on every rank.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/world.hpp"
#include "weft/gpu/bucket_scheduler.hpp"
#include "weft/gpu/host_stream.hpp"
#include "weft/runtime/as_result.hpp"

namespace weft::gpu {
namespace {

std::vector<ParameterInfo> layers() {
  std::vector<ParameterInfo> parameters;
  for (const std::size_t count : {64u * 128u, 128u, 0u, 128u * 500u, 500u, 500u * 10u, 10u}) {
    std::string name = "layer";
    name += std::to_string(parameters.size());
    parameters.push_back(ParameterInfo{name, count});
  }
  return parameters;
}

Task<void> average(Communicator& world, std::size_t bucket_bytes) {
  const std::vector<ParameterInfo> parameters = layers();
  BucketOptions options;
  options.bucket_bytes = bucket_bytes;
  BucketScheduler scheduler(world, parameters, options);
  HostStream stream;
  const auto rank = static_cast<float>(world.rank());
  const auto size = static_cast<float>(world.size());
  for (int step = 0; step < 20; ++step) {
    scheduler.begin_step();
    for (std::size_t id = parameters.size(); id-- > 0;) {
      stream.launch([&scheduler, id, rank, step] {
        for (float& value : scheduler.gradient(id))
          value = rank * 8.0F + static_cast<float>(step);
      });
      scheduler.mark_ready(id, stream);
    }
    co_await scheduler.step();
    const float expected = (8.0F * size * (size - 1.0F) / 2.0F + size * static_cast<float>(step)) / size;
    for (std::size_t id = 0; id < parameters.size(); ++id) {
      for (const float value : scheduler.gradient(id)) {
        if (value == expected) continue;
        throw Error(Errc::mismatch, "test", "wrong value in " + parameters[id].name + ", step " + std::to_string(step));
      }
    }
    const StepTiming& timing = scheduler.timing();
    EXPECT_EQ(timing.communication, timing.hidden + timing.exposed);
  }
}

TEST(BucketSchedulerRanks, AveragesAreExactForEveryBucketSizeAndNumberOfRanks) {
  for (const std::int32_t ranks : {1, 2, 3}) {
    for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{64} << 10, std::size_t{64} << 20}) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", bucket_bytes " + std::to_string(bucket_bytes));
      test::WorldOptions options;
      options.ranks = ranks;
      test::in_world(options, [bucket_bytes](Communicator& world) { return average(world, bucket_bytes); });
    }
  }
}

// One step of gradients that round differently in every order of addition.
Task<void> reduce_once(Communicator& world, std::size_t bucket_bytes, std::vector<float>* result) {
  const std::vector<ParameterInfo> parameters = layers();
  BucketOptions options;
  options.bucket_bytes = bucket_bytes;
  BucketScheduler scheduler(world, parameters, options);
  for (std::size_t id = 0; id < parameters.size(); ++id) {
    std::size_t i = 0;
    for (float& value : scheduler.gradient(id)) {
      value = std::sin(static_cast<float>(++i * (id + 1))) * std::pow(10.0F, static_cast<float>(world.rank() * 3));
    }
    scheduler.mark_ready(id);
  }
  co_await scheduler.step();
  if (world.rank() != 0) co_return;
  for (std::size_t id = 0; id < parameters.size(); ++id) {
    const std::span<const float> gradient = scheduler.gradient(id);
    result->insert(result->end(), gradient.begin(), gradient.end());
  }
}

TEST(BucketSchedulerRanks, CanonicalOrderGivesTheSameBitsForEveryBucketSizeAndTransport) {
  std::vector<float> reference;
  for (const net::TransportChoice transport : {net::TransportChoice::shm, net::TransportChoice::tcp}) {
    for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{64} << 20}) {
      SCOPED_TRACE(test::name_of(transport) + ", bucket_bytes " + std::to_string(bucket_bytes));
      test::WorldOptions options;
      options.ranks = 3;
      options.transport = transport;
      options.canonical_order = true;
      std::vector<float> result;
      test::in_world(
          options, [bucket_bytes, &result](Communicator& world) { return reduce_once(world, bucket_bytes, &result); });
      if (reference.empty()) reference = result;
      EXPECT_FALSE(result.empty());
      EXPECT_EQ(result, reference);
    }
  }
}

struct Told {
  std::mutex mutex;
  std::vector<std::string> texts;
};

Task<void> disagree(Communicator& world, Told* told) {
  std::vector<ParameterInfo> parameters = layers();
  if (world.rank() == 1) parameters[3].count += 1;
  BucketScheduler scheduler(world, parameters);
  const Result<void> result = co_await as_result(scheduler.step());
  EXPECT_EQ(result.code(), Errc::mismatch);
  const std::lock_guard lock(told->mutex);
  told->texts.emplace_back(result ? "nothing" : result.error().what());
}

TEST(BucketSchedulerRanks, RanksThatRegisteredDifferentParametersAreAllToldTheFirst) {
  Told told;
  test::WorldOptions options;
  options.ranks = 3;
  test::in_world(options, [&told](Communicator& world) { return disagree(world, &told); });
  EXPECT_EQ(told.texts.size(), 3u);
  for (const std::string& text : told.texts)
    EXPECT_NE(text.find("'layer3'"), std::string::npos) << text;
}

// Rank 1 fails after the first step; the others go on until a step fails. That may be the first one: whoever is still
// in it when the news comes is told at once.
Task<void> fail_early(Communicator& world, Told* told) {
  const std::vector<ParameterInfo> parameters = layers();
  BucketScheduler scheduler(world, parameters);
  while (true) {
    if (scheduler.steps() == 1 && world.rank() == 1) throw std::runtime_error("out of data");
    for (std::size_t id = 0; id < parameters.size(); ++id)
      scheduler.mark_ready(id);
    const Result<void> result = co_await as_result(scheduler.step());
    if (result) continue;
    EXPECT_TRUE(result.code() == Errc::peer_closed || result.code() == Errc::peer_lost);
    const std::lock_guard lock(told->mutex);
    told->texts.emplace_back(result.error().what());
    co_return;
  }
}

TEST(BucketSchedulerRanks, ARankThatIsGoneEndsTheStepOfTheOthersAndNamesTheBucket) {
  Told told;
  test::WorldOptions options;
  options.ranks = 3;
  const auto outcomes = test::run_world(options, [&told](Communicator& world) { return fail_early(world, &told); });
  EXPECT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(test::text_of(outcomes[1].failure), "out of data");
  EXPECT_EQ(told.texts.size(), 2u);
  for (const std::string& text : told.texts) {
    EXPECT_NE(text.find(": bucket 1 of "), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce#"), std::string::npos) << text;
    // Rank 1, or the one that has left after it was told of rank 1.
    EXPECT_NE(text.find(" rank "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace weft::gpu
