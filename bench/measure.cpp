#include "measure.hpp"

#include <algorithm>
#include <vector>

#include "support/allocation_count.hpp"
#include "syscall_counter.hpp"
#include "weft/coll/all_reduce.hpp"
#include "weft/coll/barrier.hpp"
#include "weft/runtime/sleep.hpp"

namespace bench {
namespace {

using weft::Communicator;
using weft::Task;

constexpr std::size_t kSmallBytes = 4096;
constexpr std::size_t kSmallBatch = 16;

std::size_t grains_of(std::size_t operations, std::size_t grain) {
  return (operations + grain - 1) / grain;
}

std::size_t operations_by_size(std::size_t bytes, std::size_t grain) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  constexpr std::size_t kFixed = 3 << 10;  // what a message of no bytes is worth
  const std::size_t wanted = std::clamp<std::size_t>(kBytes / (bytes + kFixed), 20, 20'000);
  // Where a grain is a window of many messages, a few windows of them at least.
  const std::size_t least = grain * (grain * bytes >= 4 * kBytes ? 3 : 10);
  return grain > kSmallBatch ? std::max(wanted, least) : wanted;
}

void show_progress(Session& session, const Record& record, std::size_t repeat) {
  session.reporter.progress().show("weft-bench " + record.name + ": " + size_text(record.bytes) + ", repeat " +
                                   std::to_string(repeat + 1) + " of " + std::to_string(session.options.repeats));
}

}  // namespace

std::size_t batch_for(const Options& options, std::size_t bytes) noexcept {
  if (options.batch != 0) return options.batch;
  return bytes <= kSmallBytes ? kSmallBatch : 1;
}

Plan plan_for(const Options& options, std::size_t bytes, std::size_t grain) {
  const std::size_t operations = options.iterations != 0 ? options.iterations : operations_by_size(bytes, grain);
  Plan plan;
  plan.grain = grain;
  plan.grains = grains_of(operations, grain);
  plan.warmup_grains = grains_of(options.warmup.value_or(std::max<std::size_t>(operations / 10, 1)), grain);
  return plan;
}

Record begin_record(const Session& session, std::string name, std::size_t bytes, const Plan& plan) {
  Record record;
  record.name = std::move(name);
  record.transport = session.transport;
  record.ranks = session.world.size();
  record.threads = session.threads;
  record.bytes = bytes;
  record.iters = plan.grains * plan.grain;
  record.repeats = session.options.repeats;
  record.batch = plan.grain;
  return record;
}

Task<void> meet(Communicator& world) {
  co_await weft::coll::barrier(world);
  // A floor takes the thread away from the reactor: its last words of the barrier must be out before that.
  co_await weft::sleep_for(std::chrono::microseconds(1));
}

Task<double> largest(Communicator& world, double value) {
  co_await weft::coll::all_reduce(world, std::span(&value, 1), weft::coll::max);
  co_return value;
}

Task<void> count_syscalls(Session& session, Record& record, Plan plan, Subject& subject) {
  auto counter = SyscallCounter::open();
  co_await meet(session.world);
  const std::uint64_t before = counter ? counter->read() : 0;
  co_await subject.run(plan.grains, nullptr);
  const std::uint64_t calls = counter ? counter->read() - before : 0;
  const double missing = co_await largest(session.world, counter ? 0.0 : 1.0);
  const double most = co_await largest(session.world, static_cast<double>(calls));
  if (missing == 0.0) {
    record.syscalls_per_op = most / static_cast<double>(plan.grains * plan.grain);
  } else if (!counter) {
    record.notes.emplace_back(counter.error().what());
  } else {
    record.notes.emplace_back("syscalls/op: not counted: another rank cannot");
  }
}

Task<void> measure(Session& session, Record& record, Plan plan, Subject& subject, Floor* floor) {
  Communicator& world = session.world;
  std::vector<Summary> repeats;
  std::vector<Summary> floors;
  Samples samples(plan.grains);
  std::uint64_t allocations = 0;

  if (floor == nullptr && !session.no_floor.empty()) record.notes.push_back(session.no_floor);
  if (floor != nullptr) {
    co_await meet(world);
    floor->run(std::max<std::size_t>(plan.warmup_grains, 1), plan.grain, nullptr);
  }
  co_await meet(world);
  co_await subject.run(plan.warmup_grains, nullptr);
  for (std::size_t repeat = 0; repeat < session.options.repeats; ++repeat) {
    show_progress(session, record, repeat);
    if (floor != nullptr) {
      samples.clear();
      co_await meet(world);
      floor->run(plan.grains, plan.grain, &samples);
      if (!samples.values().empty()) floors.push_back(summarize(samples.values()));
    }
    samples.clear();
    co_await meet(world);
    const std::uint64_t before = weft::test::allocations_of_this_thread();
    co_await subject.run(plan.grains, &samples);
    allocations += weft::test::allocations_of_this_thread() - before;
    if (subject.slowest_rank_counts()) {
      co_await weft::coll::all_reduce(world, samples.values(), weft::coll::max);
    }
    if (!samples.values().empty()) repeats.push_back(summarize(samples.values()));
  }

  const auto operations = static_cast<double>(plan.grains * plan.grain * session.options.repeats);
  record.allocs_per_op = co_await largest(world, static_cast<double>(allocations) / operations);
  co_await count_syscalls(session, record, plan, subject);
  if (session.options.check) {
    co_await meet(world);
    co_await subject.check();
  }

  if (world.rank() != 0) co_return;
  const Summary ours = summarize_repeats(repeats);
  record.median_us = ours.median;
  record.p99_us = ours.p99;
  record.min_us = ours.min;
  record.mad_us = ours.deviation;
  if (floors.empty()) co_return;
  record.floor = floor->what();
  record.floor_us = summarize_repeats(floors).median;
  if (*record.floor_us > 0) record.over_floor = ours.median / *record.floor_us;
}

}  // namespace bench
