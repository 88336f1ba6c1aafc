// What do hardware and kernel give, without Weft?
//
// The floors by themselves, between ranks 0 and 1 on the cores that they keep in every other benchmark.
//
// Expected between two cores of one socket: a cache line 0.14 to 0.23 us one way (less than half of that means that the
// two "cores" share one: throw the run away); memcpy 40 GB/s while it fits the second-level cache, 10 GB/s from memory;
// bare cells 22 to 27 M a second; spinning sockets 3.9 us one way, 5 to 6 GB/s as a stream.
#include "benchmarks.hpp"

namespace bench {
namespace {

using weft::Task;

/// Measures one floor by itself and reports it. Rates are of a grain where `streams`.
Task<void> report_floor(Session& session, const char* name, std::size_t bytes, std::size_t batch, Floor* floor,
                        bool streams) {
  const Plan plan = plan_for(session.options, bytes, batch);
  Record record = begin_record(session, name, bytes, plan);
  record.transport.clear();
  Samples samples(plan.grains);
  std::vector<Summary> repeats;
  co_await meet(session.world);
  floor->run(std::max<std::size_t>(plan.warmup_grains, 1), plan.grain, nullptr);
  for (std::size_t repeat = 0; repeat < session.options.repeats; ++repeat) {
    session.reporter.progress().show("weft-bench " + record.name + ": " + size_text(bytes));
    samples.clear();
    co_await meet(session.world);
    floor->run(plan.grains, plan.grain, &samples);
    if (!samples.values().empty()) repeats.push_back(summarize(samples.values()));
  }
  if (session.world.rank() != 0) co_return;
  const Summary summary = summarize_repeats(repeats);
  record.floor = floor->what();
  record.median_us = summary.median;
  record.p99_us = summary.p99;
  record.min_us = summary.min;
  record.mad_us = summary.deviation;
  if (summary.median > 0) {
    record.gbytes_per_s = static_cast<double>(bytes) * 1e-3 / summary.median;
    if (streams) record.mmsg_per_s = 1 / summary.median;
  }
  if (record.name == "floor_cache_line" && summary.median < kSharedCoreUs) record.notes.emplace_back(kSharedCoreNote);
  session.reporter.report(record);
}

}  // namespace

Task<void> run_floor(Session& session) {
  const Options& options = session.options;
  const weft::Rank rank = session.world.rank();
  constexpr std::size_t kCellBytes = 8;
  if (session.arena) {
    for (const std::size_t bytes : options.sizes) {
      const char* const name = bytes <= sizeof(FlagLine::room) ? "floor_cache_line" : "floor_shared_copy";
      const std::unique_ptr<Floor> floor = memory_ping_pong(session.arena, rank, bytes);
      co_await report_floor(session, name, bytes, batch_for(options, bytes), floor.get(), false);
    }
    const std::unique_ptr<Floor> cells = memory_cells(session.arena, rank);
    co_await report_floor(session, "floor_cells", kCellBytes, options.window, cells.get(), true);
  }
  for (const std::size_t bytes : options.sizes) {
    const std::unique_ptr<Floor> floor = memory_copy(rank, bytes);
    co_await report_floor(session, "floor_memcpy", bytes, batch_for(options, bytes), floor.get(), false);
  }
  if (!session.socket) co_return;
  for (const std::size_t bytes : options.sizes) {
    const std::unique_ptr<Floor> floor = socket_ping_pong(session.socket, rank, bytes);
    co_await report_floor(session, "floor_socket", bytes, batch_for(options, bytes), floor.get(), false);
  }
  for (const std::size_t bytes : options.sizes) {
    const std::unique_ptr<Floor> floor = socket_stream(session.socket, rank, bytes);
    co_await report_floor(session, "floor_socket_stream", bytes, options.window, floor.get(), true);
  }
}

}  // namespace bench
