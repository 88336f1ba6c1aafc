// A line on a terminal that says how far a long run is, and that leaves nothing behind.
#pragma once

#include <chrono>
#include <string>

#include "weft/runtime/unique_fd.hpp"

namespace bench {

/// Shows nothing at first, because most runs are over before anybody wonders. Only rank 0 has one that shows anything.
///
/// The terminal is standard error where that is one; a rank whose standard error leads through the launching weft-bench
/// gets the name of the launcher's terminal in kTerminalVariable.
class Progress {
 public:
  static constexpr const char* kTerminalVariable = "WEFT_BENCH_TERMINAL";

  /// Shows nothing, ever.
  Progress() = default;
  /// On this process's terminal, if it has one.
  [[nodiscard]] static Progress on_terminal();

  /// Replaces the line. Not in a timed part: it may write.
  void show(const std::string& text);
  /// Takes the line away, so that other output has the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{1500};
  static constexpr std::chrono::milliseconds kInterval{200};

  void write(const std::string& text) const;

  weft::UniqueFd terminal_;
  Clock::time_point next_ = Clock::now() + kPatience;
  bool shown_ = false;
};

}  // namespace bench
