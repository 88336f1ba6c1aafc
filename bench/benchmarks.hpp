// The benchmarks, one source each. All ranks call the same one; what it finds goes to the session's reporter.
#pragma once

#include <cstddef>

#include "measure.hpp"
#include "weft/runtime/task.hpp"

namespace bench {

[[nodiscard]] weft::Task<void> run_floor(Session& session);
[[nodiscard]] weft::Task<void> run_latency(Session& session);
[[nodiscard]] weft::Task<void> run_bandwidth(Session& session);
[[nodiscard]] weft::Task<void> run_rate(Session& session);
[[nodiscard]] weft::Task<void> run_all_reduce(Session& session);
[[nodiscard]] weft::Task<void> run_overlap(Session& session);

/// Bytes that the session's arena must hold for the floors of the benchmark that was chosen; 0: it needs no arena.
[[nodiscard]] std::size_t arena_bytes(const Options& options, weft::Rank ranks);

/// The chosen one, from the opening of what it needs to the last remark.
[[nodiscard]] weft::Task<void> run_benchmark(Session& session);

}  // namespace bench
