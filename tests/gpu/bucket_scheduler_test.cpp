// Goal: buckets are launched in the agreed order whatever becomes ready first, a bounded number at a time, with exact
// results; and each way to use the scheduler wrongly, or to be let down by others, ends with an error that names the
// gradient.
#include "weft/gpu/bucket_scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <random>
#include <stdexcept>

#include "gpu/transport_hub.hpp"
#include "support/allocation_count.hpp"
#include "weft/gpu/host_stream.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/when_all.hpp"

namespace weft::gpu {
namespace {

constexpr std::size_t kCap = 256 * sizeof(float);

std::vector<ParameterInfo> parameters_of(std::initializer_list<std::size_t> counts) {
  std::vector<ParameterInfo> parameters;
  for (const std::size_t count : counts) {
    std::string name = "layer";
    name += std::to_string(parameters.size());
    parameters.push_back(ParameterInfo{name, count});
  }
  return parameters;
}

// The corners: 0, 1, cap-1, cap, cap+1 and 10 times the cap.
std::vector<ParameterInfo> corner_parameters() {
  return parameters_of({100, 0, 1, 255, 256, 257, 2560, 0, 3});
}

BucketOptions small_buckets(std::size_t bucket_bytes = kCap, std::size_t in_flight = 2) {
  BucketOptions options;
  options.bucket_bytes = bucket_bytes;
  options.in_flight = in_flight;
  return options;
}

float value_of(std::size_t id, std::size_t index, std::uint64_t step, std::size_t rank = 0) {
  return static_cast<float>((id * 31 + index * 7 + step * 13 + rank * 101) % 1000);
}

void fill(BucketScheduler& scheduler, std::size_t id, std::uint64_t step, std::size_t rank = 0) {
  const std::span<float> gradient = scheduler.gradient(id);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = value_of(id, i, step, rank);
}

bool holds_sum(BucketScheduler& scheduler, std::size_t id, std::uint64_t step, std::size_t ranks) {
  const std::span<const float> gradient = scheduler.gradient(id);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    float sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      sum += value_of(id, i, step, rank);
    if (gradient[i] != sum) return false;
  }
  return true;
}

std::string text_of(const Result<void>& result) {
  return result ? std::string() : result.error().what();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <typename Function>
Result<void> outcome_of(Function function) {
  try {
    function();
    return {};
  } catch (const Error& error) {
    return error;
  }
}

template <typename... Arguments>
void run(Task<void> (*test)(Arguments...), Arguments... arguments) {
  Reactor reactor;
  reactor.run(test(arguments...));
}

// One rank of several that share a hub, with a stream of its own.
Task<void> train(TransportHub& hub, std::size_t rank, std::size_t ranks, std::uint64_t steps, unsigned seed) {
  const std::vector<ParameterInfo> parameters = corner_parameters();
  BucketScheduler scheduler(hub.transport(rank), parameters, small_buckets());
  HostStream stream;
  std::mt19937 random(seed + static_cast<unsigned>(rank));
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::uint64_t step = 1; step <= steps; ++step) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t id : order) {
      if (random() % 4 == 0) {
        fill(scheduler, id, step, rank);
        scheduler.mark_ready(id);
      } else {
        stream.launch([&scheduler, id, step, rank] { fill(scheduler, id, step, rank); });
        scheduler.mark_ready(id, stream);
      }
    }
    co_await scheduler.step();
    for (std::size_t id = 0; id < parameters.size(); ++id) {
      EXPECT_TRUE(holds_sum(scheduler, id, step, ranks)) << "step " << step << ", gradient " << id;
    }
  }
  EXPECT_EQ(scheduler.steps(), steps);
}

Task<void> start_ranks(Nursery& nursery, TransportHub* hub, std::size_t ranks, std::uint64_t steps, unsigned seed) {
  for (std::size_t rank = 0; rank < ranks; ++rank)
    nursery.start(train(*hub, rank, ranks, steps, seed));
  co_return;
}

TEST(BucketScheduler, SumsAreExactForEverySizeAndEveryOrderOfMarking) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const std::size_t ranks : {1u, 2u, 3u}) {
    TransportHub hub(ranks);
    hub.gate.set();
    hub.yields = 3;
    Reactor reactor;
    reactor.run(with_nursery(&start_ranks, &hub, ranks, std::uint64_t{50}, seed));
    // Expect: the hub has checked that the ranks' operations fit each other.
    EXPECT_EQ(hub.most_in_flight, 2 * ranks);
  }
}

TEST(BucketScheduler, BucketsStartInTheirOrderWhateverIsReadyFirst) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10, 10, 10, 10}), small_buckets(1));
    for (std::uint64_t step = 1; step <= 2; ++step) {
      hub.started.clear();
      for (std::size_t id = 0; id < 5; ++id)
        scheduler.mark_ready(step == 1 ? id : 4 - id);
      co_await scheduler.step();
      EXPECT_EQ(hub.started, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    }
  });
}

TEST(BucketScheduler, NoMoreBucketsFlyThanAllowedAndAsManyAsAllowed) {
  for (const std::size_t limit : {1u, 2u, 3u, 100u}) {
    run(
        +[](std::size_t in_flight) -> Task<void> {
          TransportHub hub(1);
          hub.gate.set();
          hub.yields = 10;
          BucketScheduler scheduler(hub.transport(0), parameters_of({4, 4, 4, 4, 4, 4, 4}),
                                    small_buckets(1, in_flight));
          for (std::size_t id = 0; id < 7; ++id)
            scheduler.mark_ready(id);
          co_await scheduler.step();
          EXPECT_EQ(hub.most_in_flight, std::min(in_flight, std::size_t{7}));
        },
        limit);
  }
}

Task<void> step_of(BucketScheduler& scheduler) {
  co_await scheduler.step();
}

Task<void> mark_while_it_runs(Nursery& nursery, TransportHub* hub, BucketScheduler* scheduler) {
  nursery.start(step_of(*scheduler));
  scheduler->mark_ready(2);
  while (hub->started.empty())
    co_await yield();
  // Expect: the first bucket flies although the others are not computed yet.
  EXPECT_EQ(hub->started, (std::vector<std::size_t>{0}));
  scheduler->mark_ready(0);
  for (int i = 0; i < 20; ++i)
    co_await yield();
  EXPECT_EQ(hub->started, (std::vector<std::size_t>{0}));
  scheduler->mark_ready(1);
}

TEST(BucketScheduler, ReductionOverlapsWithMarking) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10, 10}), small_buckets(1));
    co_await with_nursery(&mark_while_it_runs, &hub, &scheduler);
    EXPECT_EQ(hub.started, (std::vector<std::size_t>{0, 1, 2}));
  });
}

TEST(BucketScheduler, AccumulatedGradientsAreReducedOnce) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({300}), small_buckets());
    HostStream stream;
    for (int pass = 0; pass < 3; ++pass) {
      stream.launch([&scheduler] {
        for (float& value : scheduler.gradient(0))
          value += 1.0F;
      });
    }
    scheduler.mark_ready(0, stream);
    co_await scheduler.step();
    const std::span<const float> gradient = scheduler.gradient(0);
    EXPECT_EQ(std::count(gradient.begin(), gradient.end(), 3.0F), 300);
  });
}

TEST(BucketScheduler, WithoutParametersAStepIsNothing) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({}));
    co_await scheduler.step();
    co_await scheduler.step();
    EXPECT_EQ(scheduler.steps(), 2u);
  });
}

TEST(BucketScheduler, OptionsThatCannotWorkAreRefused) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    BucketOptions none[3];
    none[0].bucket_bytes = 0;
    none[1].first_bucket_bytes = 0;
    none[2].in_flight = 0;
    for (const BucketOptions& options : none) {
      const Result<void> result = outcome_of([&] { BucketScheduler(hub.transport(0), parameters_of({1}), options); });
      EXPECT_EQ(result.code(), Errc::invalid_argument);
    }
    co_return;
  });
}

TEST(BucketScheduler, AGradientMarkedTwiceIsNamedAndTheStepGoesOn) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10}));
    scheduler.mark_ready(1);
    const Result<void> twice = outcome_of([&] { scheduler.mark_ready(1); });
    EXPECT_EQ(twice.code(), Errc::invalid_argument);
    EXPECT_TRUE(contains(text_of(twice), "'layer1'")) << text_of(twice);
    const Result<void> unknown = outcome_of([&] { scheduler.mark_ready(2); });
    EXPECT_EQ(unknown.code(), Errc::invalid_argument);
    scheduler.mark_ready(0);
    co_await scheduler.step();
    EXPECT_EQ(scheduler.steps(), 1u);
  });
}

TEST(BucketScheduler, GradientsThatWereNeverMarkedAreNamed) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10, 10, 10}), small_buckets(1));
    scheduler.mark_ready(3);
    scheduler.mark_ready(1);
    Task<void> limited = with_deadline(std::chrono::milliseconds(20), scheduler.step());
    const Result<void> result = co_await as_result(std::move(limited));
    EXPECT_EQ(result.code(), Errc::timed_out);
    const std::string text = text_of(result);
    EXPECT_TRUE(contains(text, "step 1: ")) << text;
    EXPECT_TRUE(contains(text, "never marked ready on this rank: 'layer0', 'layer2'")) << text;
    EXPECT_EQ(hub.started, (std::vector<std::size_t>{0}));
    // Expect: the scheduler says why it takes no more steps.
    const Result<void> mark = outcome_of([&] { scheduler.mark_ready(0); });
    EXPECT_EQ(mark.code(), Errc::closed);
    EXPECT_TRUE(contains(text_of(mark), "'layer2'")) << text_of(mark);
    const Result<void> again = outcome_of([&] { static_cast<void>(scheduler.step()); });
    EXPECT_EQ(again.code(), Errc::closed);
  });
}

TEST(BucketScheduler, AGradientWhoseStreamHasNotGotThereIsNamedAfterTheDefaultTimeout) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    hub.default_timeout = std::chrono::milliseconds(20);
    Flag door;
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10}));
    HostStream stream;
    stream.wait_value(door, 1);
    scheduler.mark_ready(0, stream);
    scheduler.mark_ready(1);
    const Result<void> result = co_await as_result(scheduler.step());
    EXPECT_EQ(result.code(), Errc::timed_out);
    EXPECT_TRUE(contains(text_of(result), "their stream has not got there: 'layer0'")) << text_of(result);
    door.store(1);
  });
}

TEST(BucketScheduler, TheReadyTimeoutGoesBeforeTheDefault) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    hub.default_timeout = std::chrono::hours(1);
    BucketOptions options;
    options.ready_timeout = std::chrono::milliseconds(1);
    BucketScheduler scheduler(hub.transport(0), parameters_of({10}), options);
    const Result<void> result = co_await as_result(scheduler.step());
    EXPECT_EQ(result.code(), Errc::timed_out);
    EXPECT_TRUE(contains(text_of(result), "'layer0'")) << text_of(result);
  });
}

TEST(BucketScheduler, AFailedReductionEndsTheStepAndNamesItsBucket) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    hub.on_reduce = [](std::size_t bucket) {
      if (bucket == 1) throw Error(Errc::peer_lost, "all_reduce#7", "rank 3 has died", 3, ECONNRESET);
    };
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10, 10}), small_buckets(1));
    for (std::size_t id = 0; id < 3; ++id)
      scheduler.mark_ready(id);
    const Result<void> result = co_await as_result(scheduler.step());
    EXPECT_EQ(result.code(), Errc::peer_lost);
    const std::string text = text_of(result);
    EXPECT_EQ(text, "step 1: bucket 2 of 3 ('layer1'): all_reduce#7: rank 3 has died (Connection reset by peer)");
    if (!result) {
      EXPECT_EQ(result.error().peer(), 3);
      EXPECT_EQ(result.error().native(), ECONNRESET);
    }
    EXPECT_EQ(hub.in_flight, 0u);
  });
}

TEST(BucketScheduler, AFailedReductionCancelsTheOthersThatFly) {
  run(+[]() -> Task<void> {
    TransportHub hub(2);  // nobody plays rank 1, so that no reduction ends by itself
    hub.gate.set();
    hub.on_reduce = [](std::size_t bucket) {
      if (bucket == 1) throw std::runtime_error("not a weft::Error");
    };
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10, 10}), small_buckets(1));
    std::unique_ptr<BucketTransport> other = hub.transport(1);
    std::array<std::uint64_t, 4> nothing{};
    for (std::size_t id = 0; id < 3; ++id)
      scheduler.mark_ready(id);
    Task<void> agree = other->agree_max(nothing);
    std::string text;
    try {
      Task<void> step = scheduler.step();
      co_await when_all(std::move(step), std::move(agree));
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    EXPECT_EQ(text, "not a weft::Error");
    EXPECT_EQ(hub.in_flight, 0u);
  });
}

TEST(BucketScheduler, AFailedStreamEndsTheStepAndNamesTheGradient) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10}));
    HostStream stream;
    scheduler.mark_ready(1, stream);
    stream.launch([] { throw std::runtime_error("NaN in layer 0"); });
    scheduler.mark_ready(0, stream);
    const Result<void> result = co_await as_result(scheduler.step());
    EXPECT_EQ(result.code(), Errc::closed);
    EXPECT_TRUE(contains(text_of(result), "gradient 'layer0': its stream has failed")) << text_of(result);
  });
}

TEST(BucketScheduler, CancellingAStepEndsIt) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10}));
    co_await with_nursery(
        +[](Nursery& nursery, BucketScheduler* inner) -> Task<void> {
          nursery.start(step_of(*inner));
          for (int i = 0; i < 5; ++i)
            co_await yield();
          nursery.cancel();
        },
        &scheduler);
    EXPECT_EQ(scheduler.steps(), 0u);
    const Result<void> mark = outcome_of([&] { scheduler.mark_ready(0); });
    EXPECT_EQ(mark.code(), Errc::closed);
  });
}

TEST(BucketScheduler, TwoStepsAtOnceAreRefused) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10}));
    Task<void> first = scheduler.step();
    const Result<void> second = outcome_of([&] { static_cast<void>(scheduler.step()); });
    EXPECT_EQ(second.code(), Errc::invalid_argument);
    scheduler.mark_ready(0);
    co_await std::move(first);
  });
}

Task<void> update_behind_the_step(Nursery& nursery, TransportHub* hub, BucketScheduler* scheduler, HostStream* stream,
                                  float* seen) {
  nursery.start(scheduler->step());
  stream->launch([scheduler] { fill(*scheduler, 0, 1); });
  scheduler->mark_ready(0, *stream);
  scheduler->wait_on(*stream);
  stream->launch([scheduler, seen] { *seen = scheduler->gradient(0)[5]; });
  while (hub->started.empty())
    co_await yield();  // the gate closes there
  hub->gate.set();
}

TEST(BucketScheduler, WorkBehindWaitOnSeesTheReducedGradients) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    hub.on_reduce = [&hub](std::size_t) { hub.gate.reset(); };
    float seen = -1;
    BucketScheduler scheduler(hub.transport(0), parameters_of({10}));
    HostStream stream;
    scheduler.wait_on(stream);  // no step runs: does nothing
    co_await with_nursery(&update_behind_the_step, &hub, &scheduler, &stream, &seen);
    co_await stream.synchronize();
    EXPECT_EQ(seen, value_of(0, 5, 1));
  });
}

TEST(BucketScheduler, AStreamThatWaitsForAFailedStepIsLetGoAsFailed) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    bool updated = false;
    BucketScheduler scheduler(hub.transport(0), parameters_of({10}));
    HostStream stream;
    Task<void> step = scheduler.step();
    scheduler.wait_on(stream);
    stream.launch([&updated] { updated = true; });
    Task<void> limited = with_deadline(Duration::zero(), std::move(step));
    const Result<void> result = co_await as_result(std::move(limited));
    EXPECT_EQ(result.code(), Errc::timed_out);
    const Result<void> work = co_await as_result(stream.synchronize());
    EXPECT_EQ(work.code(), Errc::closed);
    EXPECT_FALSE(updated);
  });
}

TEST(BucketScheduler, ItsDestructorWaitsForGradientsThatAStreamStillComputes) {
  run(+[]() -> Task<void> {
    TransportHub hub(1);
    Flag door;
    bool computed = false;
    HostStream opener;
    HostStream stream;  // outlives the scheduler, against the advice
    {
      BucketScheduler scheduler(hub.transport(0), parameters_of({10}));
      stream.wait_value(door, 1);
      stream.launch([&scheduler, &computed] {
        fill(scheduler, 0, 1);
        computed = true;
      });
      scheduler.mark_ready(0, stream);
      opener.launch([&door] { door.store(1); });
    }
    EXPECT_TRUE(computed);
    co_await stream.synchronize();
  });
}

// A clock that the test moves.
class HandClock final : public Clock {
 public:
  Instant now() noexcept override { return Instant(std::chrono::milliseconds(now_ms.load())); }
  std::atomic<int> now_ms{1000};
};

TEST(BucketScheduler, TimeIsSplitByWhenGradientsWereComputed) {
  HandClock clock;
  ReactorOptions options;
  options.clock = &clock;
  options.idle.mode = IdleMode::spin;
  Reactor reactor(options);
  reactor.run([](HandClock& time) -> Task<void> {
    TransportHub hub(1);
    hub.gate.set();
    BucketScheduler scheduler(hub.transport(0), parameters_of({10, 10}), small_buckets(1, 1));
    // Expect: bucket 0 flies from 1020 to 1025, bucket 1 from 1025 to 1035; compute went from 1000 to 1020.
    hub.on_reduce = [&time](std::size_t bucket) { time.now_ms += bucket == 0 ? 5 : 10; };
    scheduler.begin_step();
    time.now_ms += 10;
    scheduler.mark_ready(1);
    time.now_ms += 10;
    scheduler.mark_ready(0);
    co_await scheduler.step();
    EXPECT_EQ(scheduler.timing().compute, std::chrono::milliseconds(20));
    EXPECT_EQ(scheduler.timing().communication, std::chrono::milliseconds(15));
    EXPECT_EQ(scheduler.timing().exposed, std::chrono::milliseconds(15));
    EXPECT_EQ(scheduler.timing().hidden_share(), 0.0);

    // Expect: without begin_step() the step begins at the first mark; here the last gradient is computed while the
    // first bucket flies, so that the 7 ms before it are hidden.
    hub.on_reduce = [&time, &scheduler](std::size_t bucket) {
      time.now_ms += 7;
      if (bucket == 0) scheduler.mark_ready(0);
    };
    time.now_ms += 100;
    scheduler.mark_ready(1);
    time.now_ms += 3;
    co_await scheduler.step();
    EXPECT_EQ(scheduler.timing().compute, std::chrono::milliseconds(10));
    EXPECT_EQ(scheduler.timing().communication, std::chrono::milliseconds(14));
    EXPECT_EQ(scheduler.timing().hidden, std::chrono::milliseconds(7));
    EXPECT_EQ(scheduler.timing().hidden_share(), 0.5);
  }(clock));
}

void fill_frame_pool() {
  constexpr std::size_t kLargest = 8192;
  constexpr std::size_t kOfEach = 8;
  std::vector<std::pair<void*, std::size_t>> frames;
  for (std::size_t bytes = 64; bytes <= kLargest; bytes += 64) {
    for (std::size_t i = 0; i < kOfEach; ++i) frames.emplace_back(FramePool::allocate(bytes), bytes);
  }
  for (const auto& [frame, bytes] : frames) FramePool::deallocate(frame, bytes);
}

TEST(BucketScheduler, AStepInSteadyStateAllocatesNothing) {
  if (!FramePool::kPooling) GTEST_SKIP() << "AddressSanitizer: frames are not pooled";
  run(+[]() -> Task<void> {
    // A transport without any bookkeeping of its own.
    class Nothing final : public BucketTransport {
     public:
      Task<void> reduce(std::span<float> values, std::size_t /*bucket*/) override {
        co_await yield();
        for (float& value : values)
          value *= 2.0F;
      }
      Task<void> agree_max(std::span<std::uint64_t> /*values*/) override { co_return; }
      Duration default_timeout() const noexcept override { return std::chrono::hours(1); }
    };
    const std::vector<ParameterInfo> parameters = corner_parameters();
    std::uint64_t worker_before = 0;
    std::uint64_t worker_after = 0;
    BucketScheduler scheduler(std::make_unique<Nothing>(), parameters, small_buckets());
    HostStream stream;
    // How many frames live at once depends on how the machine is loaded: the pool has enough of every size from the
    // start, so that what is counted is what steps take beyond it.
    fill_frame_pool();
    std::uint64_t before = 0;
    for (int step = 0; step < 60; ++step) {
      if (step == 20) {
        before = test::allocations_of_this_thread();
        stream.launch([&worker_before] { worker_before = test::allocations_of_this_thread(); });
      }
      for (std::size_t id = parameters.size(); id-- > 0;) {
        stream.launch([&scheduler, id] { fill(scheduler, id, 1); });
        scheduler.mark_ready(id, stream);
      }
      co_await scheduler.step();
    }
    EXPECT_EQ(test::allocations_of_this_thread() - before, 0u);
    stream.launch([&worker_after] { worker_after = test::allocations_of_this_thread(); });
    co_await stream.synchronize();
    EXPECT_EQ(worker_after - worker_before, 0u);
  });
}

}  // namespace
}  // namespace weft::gpu
