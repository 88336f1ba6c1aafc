// Says in words, and as an exit code, how a process ended. Pure: it looks at a wait status and nothing else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace weft::net::launch {

/// What a launcher that was itself ended by signal `number` returns: 128 + number, as shells do.
[[nodiscard]] constexpr int exit_code_for_signal(int number) noexcept {
  return 128 + number;
}

/// "SIGSEGV"; "SIGRTMIN+3" for real-time signals; "signal 99" for what is no signal.
[[nodiscard]] std::string signal_name(int number);

/// A process's end, decoded from the `wait_status` that wait(2) gives.
class ProcessEnd {
 public:
  constexpr explicit ProcessEnd(int wait_status) noexcept : status_(wait_status) {}

  /// True when the process returned 0.
  [[nodiscard]] bool succeeded() const noexcept;
  /// The signal that ended the process, 0 when it exited by itself.
  [[nodiscard]] int signal() const noexcept;
  /// The process's own exit code, or 128 + signal; 0 only when it succeeded.
  [[nodiscard]] int exit_code() const noexcept;
  /// "exited with code 3" or "died of signal 11 (SIGSEGV, core dumped)".
  [[nodiscard]] std::string text() const;

 private:
  int status_;
};

/// "rank 2 (pid 1234) died of signal 9 (SIGKILL)"; "ranks 4-7 (pid 12) exited with code 1" for a process of several.
[[nodiscard]] std::string exit_report(std::int32_t first_rank, std::int32_t rank_count, pid_t pid, ProcessEnd end);

}  // namespace weft::net::launch
