#include "weft/net/launch/rank_process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace weft::net::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));  // execve writes nothing
  result.push_back(nullptr);
  return result;
}

// Between fork and execve only async-signal-safe calls are allowed: the parent may have had other threads.
[[noreturn]] void become_program(const SpawnRequest& request, char* const* arguments, char* const* environment,
                                 pid_t launcher) noexcept {
  const auto fail = [&](int error_number) noexcept {
    const SpawnFailure failure{request.first_rank, error_number};
    [[maybe_unused]] const auto written = ::write(request.failure_fd, &failure, sizeof failure);
    ::_exit(127);
  };

  if (::setpgid(0, 0) != 0) fail(errno);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(errno);
  if (::getppid() != launcher) ::_exit(127);  // it died before the line above; nobody is left to tell

  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGHUP) ::sigaction(number, &standard, nullptr);  // SIGKILL, SIGSTOP refuse; that is fine
  }
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &standard, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const std::array<int, 3> standard_fds{request.input_fd, request.output_fd, request.error_fd};
  for (int target = 0; target < 3; ++target) {
    const int source = standard_fds[static_cast<std::size_t>(target)];
    // dup2 onto itself would leave close-on-exec as it is; only 0 may be its own source.
    if (source != target && ::dup2(source, target) < 0) fail(errno);
  }
  // What the launcher itself inherited without close-on-exec is no business of the ranks. Kernels before 5.11 refuse
  // the flag; our own descriptors carry it anyway.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (request.kept_fd >= 0 && ::fcntl(request.kept_fd, F_SETFD, 0) != 0) fail(errno);
  if (::setrlimit(RLIMIT_NOFILE, &request.descriptor_limit) != 0) fail(errno);

  ::execve(request.program->c_str(), arguments, environment);
  fail(errno);
  ::_exit(127);
}

}  // namespace

Result<pid_t> spawn_rank(const SpawnRequest& request) {
  const std::vector<char*> arguments = pointers(*request.arguments);
  const std::vector<char*> environment = pointers(*request.environment);
  const pid_t launcher = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_program(request, arguments.data(), environment.data(), launcher);
  if (child < 0) {
    return Error(Errc::exhausted, "rank " + std::to_string(request.first_rank),
                 std::string("cannot start a process: ") + std::strerror(errno), kNoRank, errno);
  }
  // Here too, so that the group exists before the first signal is sent to it; once the child has called execve this is
  // refused, and then the child has done it itself.
  ::setpgid(child, child);
  return child;
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error(Errc::exhausted, "pipe", std::string("cannot make one: ") + std::strerror(errno), kNoRank, errno);
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace weft::net::launch
