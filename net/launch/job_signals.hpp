// The signals that are meant for a whole job, turned into a descriptor. For programs that launch (weftrun, weft-bench
// in its launching role); the library itself never touches signals.
#pragma once

#include <signal.h>

#include <utility>

#include "weft/net/launch/descriptor.hpp"
#include "weft/runtime/result.hpp"

namespace weft::net::launch {

class JobSignals {
 public:
  /// Blocks SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2 in this thread, so that descriptor() gives them. A
  /// SIGHUP that is ignored (nohup) stays ignored. Call it before other threads start. Errors: Errc::exhausted.
  [[nodiscard]] static Result<JobSignals> block();

  JobSignals(JobSignals&&) = default;
  JobSignals& operator=(JobSignals&&) = delete;
  /// Gives the thread its old mask back; signals that came and were not read take effect now.
  ~JobSignals();

  /// A signalfd(2), non-blocking, for JobSpec::signal_fd.
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

 private:
  JobSignals(Descriptor fd, const sigset_t& previous) noexcept : fd_(std::move(fd)), previous_(previous) {}

  Descriptor fd_;
  sigset_t previous_;
};

}  // namespace weft::net::launch
