// The processes of one job: started together, watched through pidfds, signalled as groups, reaped together at the end.
// A process that has ended stays a zombie until then, so that neither its pid nor its group can pass to somebody else
// while the launcher may still send signals to it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "weft/net/launch/descriptor.hpp"
#include "weft/net/launch/event_set.hpp"
#include "weft/net/launch/exit_report.hpp"
#include "weft/net/launch/job_guard.hpp"
#include "weft/net/launch/job_output.hpp"
#include "weft/net/launch/local_job.hpp"
#include "weft/net/launch/rank_environment.hpp"
#include "weft/runtime/result.hpp"

namespace weft::net::launch {

class JobProcesses {
 public:
  struct Process {
    RankBlock block;
    pid_t pid = -1;
    Descriptor pidfd;
    std::size_t output = 0;  ///< streams of JobOutput
    std::size_t error = 0;
    std::optional<ProcessEnd> end;
  };

  JobProcesses() = default;
  JobProcesses(const JobProcesses&) = delete;
  JobProcesses& operator=(const JobProcesses&) = delete;
  ~JobProcesses();

  /// Starts every process of `spec`. `store_fd` goes to the first one, as does `input_fd`. Events: EventKind::death for
  /// each process, EventKind::start_failure when one cannot execute the program. Errors: Errc::exhausted; what was
  /// started by then is ended.
  [[nodiscard]] Result<void> start(const JobSpec& spec, const JobIdentity& identity, int store_fd, int input_fd,
                                   EventSet& events, JobOutput& output, JobGuard& guard);

  /// The answer to EventKind::start_failure: why the program cannot be executed, or nothing, once all processes do
  /// execute it.
  [[nodiscard]] std::optional<Error> on_start_failure(EventSet& events, const std::string& program);

  /// The answer to EventKind::death.
  void on_death(std::size_t index, EventSet& events);

  /// Sends `number` to the process group of every process, those that have ended included: their children may live.
  void signal_groups(int number) const noexcept;

  /// SIGKILL to all groups; reaps every process that has ended by `deadline`, and forgets all.
  void kill_and_reap(std::chrono::steady_clock::time_point deadline) noexcept;

  [[nodiscard]] const std::vector<Process>& all() const noexcept { return processes_; }
  [[nodiscard]] std::size_t living() const noexcept { return living_; }
  /// "rank 3" or "ranks 0, 2-5": those that have not ended.
  [[nodiscard]] std::string living_ranks() const;

 private:
  [[nodiscard]] Result<void> start_one(const JobSpec& spec, const JobIdentity& identity, RankBlock block, int store_fd,
                                       int input_fd, int failure_fd, EventSet& events, JobOutput& output);

  std::vector<Process> processes_;
  std::size_t living_ = 0;
  struct rlimit descriptor_limit_ {};  ///< as it was before we raised ours; the ranks get it back
  Descriptor failures_;                ///< read end of the pipe that children report to until they execute the program
};

}  // namespace weft::net::launch
