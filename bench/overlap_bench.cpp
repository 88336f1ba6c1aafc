// How much of the gradient communication disappears behind the backward pass?
//
// A model of equal layers: each is some arithmetic on a HostStream that ends with writing the layer's gradient. Three
// kinds of steps in turn: compute alone, communication alone (all gradients are ready at once), both together through
// the BucketScheduler. The arithmetic is calibrated so that compute alone takes as long as communication alone. A
// sample is a step of the slowest rank.
//
//   hidden   the scheduler's own account: the share of the time with a bucket in flight during which compute ran
//   saved    (compute + communication - together) / the smaller of both: what the overlap was worth on the clock
//
// Expected: with a core for the stream besides that of the rank, all but the last bucket hidden, so 1 - 1/buckets of
// both. Where the two share a core, as two pinned ranks on two cores do, the processor's time is all spent already:
// hidden stays high, because buckets fly while layers run, and saved is near 0.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "benchmarks.hpp"
#include "spin.hpp"
#include "support/allocation_count.hpp"
#include "weft/coll/all_reduce.hpp"
#include "weft/gpu/bucket_scheduler.hpp"
#include "weft/gpu/host_stream.hpp"

namespace bench {
namespace {

using weft::Task;

constexpr std::size_t kCalibrationUnits = 256;
constexpr std::size_t kDefaultBuckets = 4;
constexpr std::size_t kLeastBucket = 4096;

/// One layer: `units` passes of arithmetic over data that stays in the first-level cache, then the gradient.
void compute_layer(std::uint64_t units, std::span<float> gradient, float value) {
  std::array<float, 1024> work;
  work.fill(1.0F);
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    for (float& x : work)
      x = x * 0.999F + 0.001F;
    asm volatile("" : : "r"(work.data()) : "memory");
  }
  std::fill(gradient.begin(), gradient.end(), value);
}

std::vector<weft::gpu::ParameterInfo> make_layers(std::size_t bytes, std::size_t layers) {
  std::vector<weft::gpu::ParameterInfo> all;
  for (std::size_t i = 0; i < layers; ++i) {
    weft::gpu::ParameterInfo layer;
    layer.name = "layer " + std::to_string(i);
    layer.count = std::max<std::size_t>(bytes / layers / sizeof(float), 1);
    all.push_back(std::move(layer));
  }
  return all;
}

weft::gpu::BucketOptions bucket_options(const Options& options, std::size_t bytes) {
  weft::gpu::BucketOptions chosen;
  chosen.bucket_bytes =
      options.bucket_bytes != 0 ? options.bucket_bytes : std::max(bytes / kDefaultBuckets, kLeastBucket);
  chosen.first_bucket_bytes = chosen.bucket_bytes;
  return chosen;
}

class Model {
 public:
  Model(Session& session, std::size_t bytes)
      : world_(session.world),
        layers_(make_layers(bytes, session.options.layers)),
        scheduler_(session.world, layers_, bucket_options(session.options, bytes)) {}

  Task<void> compute(Samples* samples) {
    const double begin = now_ns();
    for (std::size_t id = layers_.size(); id-- > 0;)
      launch(id);
    co_await stream_.synchronize();
    if (samples != nullptr) samples->add(now_ns() - begin, 1);
  }

  Task<void> communicate(Samples* samples) {
    const double begin = now_ns();
    for (std::size_t id = layers_.size(); id-- > 0;)
      scheduler_.mark_ready(id);
    co_await scheduler_.step();
    if (samples != nullptr) samples->add(now_ns() - begin, 1);
  }

  Task<void> together(Samples* samples) {
    const double begin = now_ns();
    scheduler_.begin_step();
    for (std::size_t id = layers_.size(); id-- > 0;) {
      launch(id);
      scheduler_.mark_ready(id, stream_);
    }
    co_await scheduler_.step();
    if (samples != nullptr) samples->add(now_ns() - begin, 1);
  }

  /// Looks at the averages of the last step with compute. Errors: throws std::runtime_error.
  void check() {
    const auto ranks = static_cast<float>(world_.size());
    for (std::size_t id = 0; id < layers_.size(); ++id) {
      const float expected = static_cast<float>(id + 1) * (ranks + 1) / 2;
      for (const float value : scheduler_.gradient(id)) {
        if (value == expected) continue;
        throw std::runtime_error("check failed: a gradient of layer " + std::to_string(id) + " is " +
                                 std::to_string(value) + " instead of " + std::to_string(expected));
      }
    }
  }

  void set_units(std::uint64_t units) noexcept { units_ = units; }
  [[nodiscard]] double hidden_share() const noexcept { return scheduler_.timing().hidden_share(); }

 private:
  void launch(std::size_t id) {
    const float value = static_cast<float>(id + 1) * static_cast<float>(world_.rank() + 1);
    stream_.launch(
        [units = units_, gradient = scheduler_.gradient(id), value] { compute_layer(units, gradient, value); });
  }

  weft::Communicator& world_;
  std::vector<weft::gpu::ParameterInfo> layers_;
  weft::gpu::BucketScheduler scheduler_;
  weft::gpu::HostStream stream_;  // after the scheduler, whose gradients its work writes
  std::uint64_t units_ = 0;
};

/// Collective: makes the samples those of the slowest rank, and gives their median.
Task<double> slowest_median(weft::Communicator& world, Samples& samples) {
  co_await weft::coll::all_reduce(world, samples.values(), weft::coll::max);
  co_return summarize(samples.values()).median;
}

/// Microseconds of a unit of arithmetic, with nothing else in the way: the fastest of some tries on the rank's own
/// thread.
double unit_us() {
  float gradient = 0;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = now_ns();
    compute_layer(kCalibrationUnits, std::span(&gradient, 1), 0);
    best = std::min(best, (now_ns() - begin) * 1e-3 / kCalibrationUnits);
  }
  return std::max(best, 1e-3);
}

/// Collective: as much arithmetic as communication alone takes, the same on all ranks.
Task<void> calibrate(Session& session, Model& model, std::size_t steps) {
  // The first steps touch memory for the first time and connect ranks.
  for (int i = 0; i < 2; ++i) {
    co_await model.communicate(nullptr);
    co_await model.compute(nullptr);
  }
  Samples communication(steps);
  Samples filling(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    co_await model.communicate(&communication);
    co_await model.compute(&filling);
  }
  const double target = co_await slowest_median(session.world, communication);
  const double without = co_await slowest_median(session.world, filling);
  const double own_unit = unit_us();
  const double unit = co_await largest(session.world, own_unit);
  const double all_layers = unit * static_cast<double>(session.options.layers);
  model.set_units(static_cast<std::uint64_t>(std::llround(std::max(target - without, 0.0) / all_layers)));
}

struct Steps {
  explicit Steps(std::size_t count) : compute(count), communication(count), together(count) { hidden.reserve(count); }
  Samples compute;
  Samples communication;
  Samples together;
  std::vector<double> hidden;
};

/// What one repeat found. Right on every rank.
struct Found {
  double compute = 0;
  double communication = 0;
  double hidden = 0;
  Summary together;
};

Task<Found> measure_steps(Session& session, Model& model, Steps& steps, std::size_t count, std::uint64_t& allocations) {
  steps.compute.clear();
  steps.communication.clear();
  steps.together.clear();
  steps.hidden.clear();
  for (std::size_t i = 0; i < count; ++i) {
    co_await model.compute(&steps.compute);
    co_await meet(session.world);
    co_await model.communicate(&steps.communication);
    co_await meet(session.world);
    const std::uint64_t before = weft::test::allocations_of_this_thread();
    co_await model.together(&steps.together);
    allocations += weft::test::allocations_of_this_thread() - before;
    steps.hidden.push_back(model.hidden_share());
  }
  Found found;
  found.compute = co_await slowest_median(session.world, steps.compute);
  found.communication = co_await slowest_median(session.world, steps.communication);
  found.hidden = median(steps.hidden);
  (void)co_await slowest_median(session.world, steps.together);
  found.together = summarize(steps.together.values());
  co_return found;
}

void fill_in(Record& record, const std::vector<Found>& repeats) {
  std::vector<double> compute;
  std::vector<double> communication;
  std::vector<double> hidden;
  std::vector<Summary> together;
  for (const Found& repeat : repeats) {
    compute.push_back(repeat.compute);
    communication.push_back(repeat.communication);
    hidden.push_back(repeat.hidden);
    together.push_back(repeat.together);
  }
  const Summary summary = summarize_repeats(together);
  record.median_us = summary.median;
  record.p99_us = summary.p99;
  record.min_us = summary.min;
  record.mad_us = summary.deviation;
  const double alone = median(compute);
  const double sent = median(communication);
  record.more.emplace_back("compute_us", alone);
  record.more.emplace_back("communication_us", sent);
  record.more.emplace_back("together_us", summary.median);
  record.more.emplace_back("hidden", median(hidden));
  record.more.emplace_back("saved", (alone + sent - summary.median) / std::max(std::min(alone, sent), 1e-3));
}

/// Both together, as a subject whose system calls can be counted.
class Steady final : public Subject {
 public:
  explicit Steady(Model& model) : model_(model) {}
  Task<void> run(std::size_t grains, Samples* samples) override {
    for (std::size_t i = 0; i < grains; ++i)
      co_await model_.together(samples);
  }
  Task<void> check() override {
    co_await model_.together(nullptr);
    model_.check();
  }

 private:
  Model& model_;
};

Task<void> run_size(Session& session, std::size_t bytes) {
  const Options& options = session.options;
  Plan plan = plan_for(options, bytes, 1);
  if (options.iterations == 0) plan.grains = std::min<std::size_t>(plan.grains, 100);
  Record record = begin_record(session, "overlap", bytes, plan);
  Model model(session, bytes);
  session.reporter.progress().show("weft-bench overlap: " + size_text(bytes) + ", calibrating");
  co_await calibrate(session, model, std::clamp<std::size_t>(plan.grains, 3, 20));

  std::uint64_t allocations = 0;
  std::vector<Found> repeats;
  Steps steps(plan.grains);
  for (std::size_t i = 0; i < std::max<std::size_t>(std::min<std::size_t>(plan.warmup_grains, 100), 1); ++i) {
    co_await model.together(nullptr);
  }
  for (std::size_t repeat = 0; repeat < options.repeats; ++repeat) {
    session.reporter.progress().show("weft-bench overlap: " + size_text(bytes) + ", repeat " +
                                     std::to_string(repeat + 1) + " of " + std::to_string(options.repeats));
    const Found found = co_await measure_steps(session, model, steps, plan.grains, allocations);
    repeats.push_back(found);
  }
  const auto operations = static_cast<double>(plan.grains * options.repeats);
  record.allocs_per_op = co_await largest(session.world, static_cast<double>(allocations) / operations);
  Steady subject(model);
  co_await count_syscalls(session, record, plan, subject);
  if (options.check) co_await subject.check();
  fill_in(record, repeats);
  session.reporter.report(record);
}

}  // namespace

Task<void> run_overlap(Session& session) {
  for (const std::size_t bytes : session.options.sizes)
    co_await run_size(session, bytes);
}

}  // namespace bench
