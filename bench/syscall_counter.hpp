// Counts the system calls of one thread, as the kernel sees them: the tracepoint raw_syscalls:sys_enter, read through
// perf_event_open(2). That needs root (or CAP_PERFMON and a mounted tracefs that may be read).
#pragma once

#include <cstdint>

#include "weft/runtime/result.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace bench {

/// While one is open, every system call on the machine takes some tens of nanoseconds longer: not in a timed part.
class SyscallCounter {
 public:
  /// Of the calling thread, from now on. Errors: unsupported, with the reason in words.
  [[nodiscard]] static weft::Result<SyscallCounter> open();

  /// Calls entered so far, without those that read() itself needs. Thread: the one that opened it.
  [[nodiscard]] std::uint64_t read() noexcept;

 private:
  explicit SyscallCounter(weft::UniqueFd event) noexcept : event_(std::move(event)) {}

  weft::UniqueFd event_;
  std::uint64_t own_reads_ = 0;
};

}  // namespace bench
