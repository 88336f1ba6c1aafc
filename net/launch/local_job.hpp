// One job on this machine from start to end: starts the processes, carries their output, passes signals on, notices
// deaths, ends what is left and says how it went. A plain loop over descriptors, with no coroutine in it: the launcher
// must stay alive and small whatever the ranks do.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/result.hpp"

namespace weft::net::launch {

/// How long the launcher waits before it becomes less polite. Reasons stand beside the values.
struct JobTimes {
  /// After the first failure: a rank learns of a local death within 0.1 s and then needs time to say so and leave.
  std::chrono::milliseconds notice{1000};
  /// After SIGTERM, before SIGKILL.
  std::chrono::milliseconds terminate{1000};
  /// After a signal was passed on, before SIGKILL.
  std::chrono::milliseconds interrupt{2000};
  /// After the last rank: for its children that still hold an output open, such as a `tee` with lines to write.
  std::chrono::milliseconds linger{1000};
  /// After SIGKILL: a process that sits in the kernel longer is reported and left behind.
  std::chrono::milliseconds unkillable{5000};
  /// A second signal sooner than this is the same one told twice (timeout(1), a closing terminal), not impatience.
  std::chrono::milliseconds repeat{100};
  /// Failures told within this time count as simultaneous: then a death by a signal decides before an exit code.
  std::chrono::milliseconds same_moment{100};
};

struct JobSpec {
  std::string program;                   ///< path for execve; find_program gives it
  std::vector<std::string> arguments;    ///< argv of every rank, the program's name first
  std::vector<std::string> environment;  ///< what ranks inherit, "NAME=value" each; current_environment() as a rule
  std::int32_t ranks = 1;
  std::int32_t ranks_per_process = 1;
  std::uint16_t port = 0;  ///< of the key-value store on 127.0.0.1; 0 lets the system choose
  std::vector<std::pair<std::string, std::string>> settings;  ///< variables of the job, WEFT_TRANSPORT for example
  bool prefix = true;  ///< label lines with `[rank] `; a process of several ranks bears its first one
  int signal_fd = -1;  ///< JobSignals::descriptor(), or -1: then signals to the caller end the caller
  int input_fd = 0;    ///< standard input of rank 0; the other processes have /dev/null
  int output_fd = 1;
  int error_fd = 2;
  std::string name = "weftrun";  ///< who speaks in reports
  JobTimes times;
};

/// This process's environment as JobSpec::environment wants it.
[[nodiscard]] std::vector<std::string> current_environment();

class LocalJob {
 public:
  explicit LocalJob(JobSpec spec);
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  /// Kills what a run() that was left by an exception has started.
  ~LocalJob();

  /// Runs the job to its end and returns the exit code for the launcher: 0 when every process returned 0; else that of
  /// the first one that failed, 128 + signal where a signal ended it (JobTimes::same_moment for what "first" means);
  /// 128 + signal when signal_fd told us to end; 128 + SIGPIPE when an output was closed. Reports go to error_fd.
  ///
  /// When it returns, no process of the job is left: process groups are killed, and so is whatever else carries the
  /// job's token. If this process is killed by SIGKILL the same happens through JobGuard. While it runs, SIGPIPE is
  /// ignored in this process and orphaned descendants are adopted by it; both are put back.
  ///
  /// Call it once, in a program with one thread: the processes die with the thread that started them.
  /// Errors (nothing is left running): Errc::address_in_use, the port is taken; Errc::invalid_argument, the kernel does
  /// not execute the program; Errc::exhausted, no descriptors or processes left; Errc::io.
  [[nodiscard]] Result<int> run();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

/// Exit code of a launching program for an error that kept a job from starting: 2 where the user can put it right by
/// other arguments, 1 otherwise.
[[nodiscard]] int exit_code_for_start_error(const Error& error);

}  // namespace weft::net::launch
