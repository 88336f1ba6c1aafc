// The way every benchmark measures: floor and subject in turn, repeat by repeat, so that both see the same machine;
// then a pass that counts system calls; then, under --check, one that looks at what arrives.
#pragma once

#include <cstddef>
#include <string>

#include "floor.hpp"
#include "options.hpp"
#include "raw_socket.hpp"
#include "record.hpp"
#include "reporter.hpp"
#include "shared_arena.hpp"
#include "statistics.hpp"
#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"

namespace bench {

/// What all benchmarks of one run share, one a rank. Pinned while it is used.
struct Session {
  Session(weft::Communicator& communicator, const Options& chosen) : world(communicator), options(chosen) {}

  weft::Communicator& world;
  const Options& options;
  bool threads = false;         ///< ranks are threads of one process
  std::string transport;        ///< that ranks 0 and 1 use
  std::int32_t processors = 1;  ///< that this process might use before its threads were bound
  SharedArena arena;            ///< empty where it is not needed, or cannot be
  RawSocket socket;             ///< likewise
  std::string no_floor;         ///< why floors are not measured; empty where they are
  Reporter reporter;
};

/// How many operations, and how many of them between two looks at the clock.
struct Plan {
  std::size_t grain = 1;   ///< operations of a sample
  std::size_t grains = 1;  ///< samples of a repeat
  std::size_t warmup_grains = 0;
};

/// From the options, or by size: as many operations as move 64 MiB, 20 at least and 20,000 at most, so that a repeat
/// takes a few tenths of a second at most.
[[nodiscard]] Plan plan_for(const Options& options, std::size_t bytes, std::size_t grain);

/// Operations between two looks at the clock where the benchmark does not say: a look takes some 25 ns, which must not
/// count against messages of 200 ns, so 16 small operations share one.
[[nodiscard]] std::size_t batch_for(const Options& options, std::size_t bytes) noexcept;

/// What a benchmark measures at one size. All ranks have one and run it together.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Does `grains` times the plan's grain of operations; one sample a grain, where there are samples.
  [[nodiscard]] virtual weft::Task<void> run(std::size_t grains, Samples* samples) = 0;
  /// Looks at what arrives. Errors: throws std::runtime_error.
  [[nodiscard]] virtual weft::Task<void> check() = 0;
  /// Whether every rank takes samples, of which the largest count; else rank 0 does.
  [[nodiscard]] virtual bool slowest_rank_counts() const noexcept { return false; }
};

/// A Record with everything that is known before the measurement.
[[nodiscard]] Record begin_record(const Session& session, std::string name, std::size_t bytes, const Plan& plan);

/// Collective. Fills in the times, the floor (which may be null) and the counts. Figures are right on rank 0.
/// Errors: those of the subject and the floor.
[[nodiscard]] weft::Task<void> measure(Session& session, Record& record, Plan plan, Subject& subject, Floor* floor);

/// Collective: everybody has come, and nothing that Weft has to send is still waiting.
[[nodiscard]] weft::Task<void> meet(weft::Communicator& world);

/// Collective: counts the system calls of `grains` grains into the record, or notes why it cannot.
[[nodiscard]] weft::Task<void> count_syscalls(Session& session, Record& record, Plan plan, Subject& subject);

/// Collective: the largest value of all ranks.
[[nodiscard]] weft::Task<double> largest(weft::Communicator& world, double value);

}  // namespace bench
