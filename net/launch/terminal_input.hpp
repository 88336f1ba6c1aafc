// Carries what is typed at the launcher's terminal to rank 0. Ranks live in process groups of their own, and the kernel
// stops a background group that reads from the terminal; so the launcher, which is in the foreground, reads for it.
#pragma once

#include <string>

#include "weft/net/launch/descriptor.hpp"

namespace weft::net::launch {

class TerminalInput {
 public:
  /// Reads `terminal_fd` (a terminal, the caller's) and writes to `to_rank`, the write end of a pipe, which becomes
  /// non-blocking. SIGPIPE must be ignored or blocked.
  TerminalInput(int terminal_fd, Descriptor to_rank);

  /// False once input or reader has ended; then there is nothing to wait for any more.
  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(to_rank_); }
  /// False while another job has the terminal; reading now would stop this process.
  [[nodiscard]] bool in_foreground() const noexcept;
  [[nodiscard]] bool wants_to_write() const noexcept { return !pending_.empty(); }
  [[nodiscard]] int terminal() const noexcept { return terminal_; }
  [[nodiscard]] int pipe() const noexcept { return to_rank_.get(); }

  /// Moves one portion. Closes the pipe at the end of input and when rank 0 reads no more.
  void move();

 private:
  int terminal_;
  Descriptor to_rank_;
  std::string pending_;
};

}  // namespace weft::net::launch
