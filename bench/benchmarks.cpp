#include "benchmarks.hpp"

#include <algorithm>
#include <string_view>

#include "weft/coll/all_reduce.hpp"
#include "weft/net/fabric.hpp"

namespace bench {
namespace {

using weft::Task;

constexpr std::size_t kMaxArenaBytes = std::size_t{2} << 30;

Task<void> dispatch(Session& session) {
  switch (session.options.benchmark) {
    case Benchmark::floor: return run_floor(session);
    case Benchmark::latency: return run_latency(session);
    case Benchmark::bandwidth: return run_bandwidth(session);
    case Benchmark::rate: return run_rate(session);
    case Benchmark::all_reduce: return run_all_reduce(session);
    case Benchmark::overlap: break;
  }
  return run_overlap(session);
}

/// Ranks 0 and 1 connect, if they are not connected yet, and tell everybody how.
Task<void> find_transport(Session& session) {
  weft::Communicator& world = session.world;
  if (world.size() < 2) {
    session.transport = "self";
    co_return;
  }
  const weft::Rank rank = world.rank();
  std::byte ping{};
  const std::span<std::byte> bytes(&ping, 1);
  if (rank == 0) co_await world.send(1, 0, bytes);
  if (rank <= 1) co_await world.recv(1 - rank, 0, bytes);
  if (rank == 1) co_await world.send(0, 0, bytes);
  std::int32_t is_tcp = 0;
  if (rank == 0) {
    const char* const name = world.group().fabric().transport_of(world.group().world_rank(1));
    is_tcp = std::string_view(name) == "tcp" ? 1 : 0;
  }
  co_await weft::coll::all_reduce(world, std::span(&is_tcp, 1), weft::coll::max);
  session.transport = is_tcp != 0 ? "tcp" : "shm";
}

/// Opens what the floors need, or says why there are none. All ranks come to the same decision.
Task<void> open_floors(Session& session) {
  const Options& options = session.options;
  const bool all = options.benchmark == Benchmark::floor;
  const weft::Rank spinning = options.benchmark == Benchmark::all_reduce ? session.world.size() : 2;
  const std::size_t bytes = arena_bytes(options, session.world.size());
  std::int32_t processors = session.processors;
  co_await weft::coll::all_reduce(session.world, std::span(&processors, 1), weft::coll::min);
  if (session.world.size() < 2 || options.benchmark == Benchmark::overlap) co_return;
  if (spinning > processors) {
    session.no_floor = "floor: not measured: " + std::to_string(spinning) + " ranks would spin on " +
                       std::to_string(processors) + (processors == 1 ? " processor" : " processors");
    co_return;
  }
  if (bytes > kMaxArenaBytes) {
    session.no_floor = "floor: not measured: it would take " + size_text(bytes) + " bytes of shared memory";
    co_return;
  }
  if (bytes > 0 && (all || session.transport == "shm")) {
    session.arena = co_await SharedArena::open(session.world, bytes);
    if (!session.arena) session.no_floor = "floor: not measured: the ranks cannot map the same memory";
  }
  if (all || session.transport == "tcp") {
    session.socket = co_await RawSocket::open(session.world);
    if (!session.socket && session.world.rank() <= 1) {
      session.no_floor = "floor: not measured: no connection over 127.0.0.1";
    }
  }
}

}  // namespace

std::size_t arena_bytes(const Options& options, weft::Rank ranks) {
  std::size_t largest = 0;
  for (const std::size_t bytes : options.sizes)
    largest = std::max(largest, bytes);
  const std::size_t cells = options.window * sizeof(FlagLine);
  switch (options.benchmark) {
    case Benchmark::floor: return std::max(2 * largest, cells);
    case Benchmark::latency: return std::max<std::size_t>(2 * largest, 1);
    case Benchmark::rate: return cells;
    case Benchmark::all_reduce: return 2 * static_cast<std::size_t>(ranks) * largest;
    case Benchmark::bandwidth:
    case Benchmark::overlap: return 0;
  }
  return 0;
}

Task<void> run_benchmark(Session& session) {
  co_await find_transport(session);
  co_await open_floors(session);
  Task<void> chosen = dispatch(session);
  co_await std::move(chosen);
  if (session.options.benchmark == Benchmark::floor && !session.no_floor.empty()) {
    session.reporter.remark(session.no_floor);
  }
  session.reporter.finish();
}

}  // namespace bench
