#include "weft/net/launch/job_guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "weft/net/launch/job_sweep.hpp"
#include "weft/net/launch/rank_process.hpp"

namespace weft::net::launch {
namespace {

constexpr std::chrono::seconds kSweepLimit{5};
constexpr const char* kGuardName = "weft-guard";
constexpr pid_t kEndedInOrder = 0;

// Overwrites this process's command line, which it has from the launcher: whoever looks for the launcher or for a rank
// by name must not find the guard.
void rename_self() {
  ::prctl(PR_SET_NAME, kGuardName);
  std::ifstream file("/proc/self/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t close = stat.rfind(')');
  if (close == std::string::npos) return;
  std::istringstream fields(stat.substr(close + 1));
  std::string skipped;
  for (int field = 3; field < 48; ++field)
    fields >> skipped;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  if (!(fields >> begin >> end) || begin == 0 || end <= begin) return;
  auto* const arguments = reinterpret_cast<char*>(begin);
  const std::size_t size = end - begin;
  std::memset(arguments, 0, size);
  std::memcpy(arguments, kGuardName, std::min(std::strlen(kGuardName), size - 1));
}

// Reads the line until the launcher is gone. True when it ended in order.
bool attend(int line, int launcher, std::vector<pid_t>& groups) {
  while (true) {
    struct pollfd ready[] = {{line, POLLIN, 0}, {launcher, POLLIN, 0}};
    ::poll(ready, 2, -1);
    pid_t record = 0;
    while (::read(line, &record, sizeof record) == static_cast<ssize_t>(sizeof record)) {
      if (record == kEndedInOrder) return true;
      groups.push_back(record);
    }
    // Not the end of the line but the end of the process: by then every rank has been sent its parent-death signal, so
    // none can start another child.
    if (ready[1].revents != 0) return false;
    if ((ready[0].revents & POLLHUP) != 0) line = -1;
  }
}

[[noreturn]] void guard_main(int line, int launcher, std::string_view token) {
  ::setsid();  // out of reach of signals to the launcher's group and of the terminal
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2}) {
    ::sigaction(number, &ignore, nullptr);
  }
  // Keep only these two: an output of the launcher held open here would never reach its end.
  if (::dup2(line, 0) < 0 || ::dup2(launcher, 1) < 0) ::_exit(1);
  ::close_range(2, ~0U, 0);
  ::fcntl(0, F_SETFL, O_NONBLOCK);
  [[maybe_unused]] const int moved = ::chdir("/");
  rename_self();

  std::vector<pid_t> groups;
  if (attend(0, 1, groups)) ::_exit(0);
  for (const pid_t group : groups)
    ::kill(-group, SIGKILL);
  sweep_job(token, {}, kSweepLimit);
  ::_exit(0);
}

Error cannot(const char* what) {
  return {Errc::exhausted, "job guard", std::string(what) + ": " + std::strerror(errno), kNoRank, errno};
}

}  // namespace

Result<JobGuard> JobGuard::start(std::string_view token) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  const Descriptor launcher(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!launcher) return cannot("cannot open a pidfd");
  const pid_t child = ::fork();
  if (child < 0) return cannot("cannot start a process");
  if (child == 0) guard_main(pipe->read_end.get(), launcher.get(), token);
  return JobGuard(child, std::move(pipe->write_end));
}

void JobGuard::watch(pid_t group) noexcept {
  // A pipe holds 16384 of these, more than a job has processes; and the guard reads them at once.
  [[maybe_unused]] const auto written = ::write(line_.get(), &group, sizeof group);
}

JobGuard::~JobGuard() {
  if (pid_ < 0) return;
  watch(kEndedInOrder);
  line_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace weft::net::launch
