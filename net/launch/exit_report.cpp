#include "weft/net/launch/exit_report.hpp"

#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace weft::net::launch {

std::string signal_name(int number) {
  if (number > 0) {
    if (const char* name = ::sigabbrev_np(number)) return std::string("SIG") + name;
  }
  if (number >= SIGRTMIN && number <= SIGRTMAX) {
    std::string name = "SIGRTMIN";
    if (number > SIGRTMIN) name += "+" + std::to_string(number - SIGRTMIN);
    return name;
  }
  return "signal " + std::to_string(number);
}

bool ProcessEnd::succeeded() const noexcept {
  return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

int ProcessEnd::signal() const noexcept {
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

int ProcessEnd::exit_code() const noexcept {
  if (WIFEXITED(status_)) return WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) return exit_code_for_signal(WTERMSIG(status_));
  return 1;  // no end that wait(2) documents: a failure all the same
}

std::string ProcessEnd::text() const {
  if (WIFEXITED(status_)) return "exited with code " + std::to_string(WEXITSTATUS(status_));
  if (!WIFSIGNALED(status_)) return "ended with unknown wait status " + std::to_string(status_);
  const int number = WTERMSIG(status_);
  std::string text = "died of signal " + std::to_string(number) + " (" + signal_name(number);
  if (WCOREDUMP(status_)) text += ", core dumped";
  return text + ")";
}

std::string exit_report(std::int32_t first_rank, std::int32_t rank_count, pid_t pid, ProcessEnd end) {
  std::string text = rank_count > 1 ? "ranks " : "rank ";
  text += std::to_string(first_rank);
  if (rank_count > 1) text += "-" + std::to_string(first_rank + rank_count - 1);
  return text + " (pid " + std::to_string(pid) + ") " + end.text();
}

}  // namespace weft::net::launch
