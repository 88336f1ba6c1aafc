// A small process that outlives a launcher killed by SIGKILL for as long as it takes to end the job's leftovers. The
// ranks themselves die with the launcher by their parent-death signal; their children do not, and nobody but a second
// process can see to them.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <utility>

#include "weft/net/launch/descriptor.hpp"
#include "weft/runtime/result.hpp"

namespace weft::net::launch {

class JobGuard {
 public:
  /// Starts the guard for the job that carries `token`; do it before the first rank. It lives in a session of its own,
  /// holds no descriptor of the launcher and appears in ps as "weft-guard". The calling program must have one thread.
  /// Errors: Errc::exhausted.
  [[nodiscard]] static Result<JobGuard> start(std::string_view token);

  JobGuard(JobGuard&& other) noexcept : pid_(std::exchange(other.pid_, -1)), line_(std::move(other.line_)) {}
  JobGuard& operator=(JobGuard&&) = delete;
  /// Tells the guard that the job ended in order, and reaps it.
  ~JobGuard();

  /// Puts the process group `group` under guard too. What carries the token is found without it; this is for processes
  /// that a rank starts with an environment of their own.
  void watch(pid_t group) noexcept;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  JobGuard(pid_t pid, Descriptor line) noexcept : pid_(pid), line_(std::move(line)) {}

  pid_t pid_;
  Descriptor line_;  ///< carries process groups (pid_t), and 0 for "ended in order"
};

}  // namespace weft::net::launch
