// For tests of weftrun: runs it as a program of its own, talks to it and finds out what it has left behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "weft/net/launch/descriptor.hpp"

namespace weft::net::launch::testing {

/// How long anything may take before a test calls it a hang. Nothing is measured against it.
inline constexpr int kHangMs = 60'000;

/// A running weftrun and all that descends from it, marked by a variable of their own in the environment.
class Launched {
 public:
  struct Options {
    std::string program = "weftrun";       ///< another one of the build's programs, without a launcher
    std::vector<std::string> environment;  ///< "NAME=value", besides the marker and PATH
    std::string input;                     ///< its standard input; /dev/null where empty
    bool terminal = false;                 ///< its three standard descriptors are a terminal of its own
    int extra_fd = -1;                     ///< inherited besides, under its own number
  };

  explicit Launched(std::vector<std::string> arguments);
  Launched(std::vector<std::string> arguments, const Options& options);
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;
  /// Kills weftrun, if it still runs, and every marked process.
  ~Launched();

  /// The exit code of weftrun, 128 + signal where one ended it; -1 when it does not end. Reads its output meanwhile.
  int wait();
  /// Reads until `text` has appeared `times` times on its standard output; false when it ends or hangs before.
  bool wait_for(std::string_view text, int times = 1) { return wait_for(text, times, false); }
  bool wait_for_error(std::string_view text, int times = 1) { return wait_for(text, times, true); }
  /// True once weftrun has ended; waits at most `ms` for that.
  bool ended_within(int ms);

  void signal(int number) const;
  /// To the whole process group of weftrun, as `kill -9 %1` in a shell.
  void signal_group(int number) const;
  void close_output() { out_fd_.reset(); }
  void close_terminal() { out_fd_.reset(); }
  void type(std::string_view text) const;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::string& out() const noexcept { return out_; }
  [[nodiscard]] const std::string& err() const noexcept { return err_; }

  /// Marked processes other than weftrun itself that live now, with their command lines, one a line.
  [[nodiscard]] std::string left_behind() const;
  /// The same, after they had time to go; for ends that nobody can wait for (SIGKILL to weftrun).
  [[nodiscard]] std::string left_behind_at_last() const;
  /// All processes that descend from weftrun now, whatever their environment; the guard among them.
  [[nodiscard]] std::vector<pid_t> family() const;

 private:
  [[nodiscard]] std::vector<pid_t> marked() const;
  bool wait_for(std::string_view text, int times, bool error);
  bool read_some(int timeout_ms);

  std::string marker_;
  pid_t pid_ = -1;
  Descriptor pidfd_;
  Descriptor out_fd_;  ///< or the terminal's other side
  Descriptor err_fd_;
  std::string out_;
  std::string err_;
};

/// True once none of these processes lives any more; false when it takes too long.
bool all_gone(const std::vector<pid_t>& pids);

/// `weftrun -n ranks sh -c script`.
std::vector<std::string> shell_job(int ranks, std::string script);

}  // namespace weft::net::launch::testing
