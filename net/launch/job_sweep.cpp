#include "weft/net/launch/job_sweep.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "weft/net/launch/descriptor.hpp"

namespace weft::net::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExecvePauseMs = 1;                            // an execve takes less on an idle machine
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;  // an environment is limited by the stack, 2 MiB as a rule

std::string read_proc(pid_t pid, const char* file) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  char block[4096];
  while (text.size() < kMaxFileBytes) {
    const ssize_t count = ::read(fd.get(), block, sizeof block);
    if (count <= 0) break;
    text.append(block, static_cast<std::size_t>(count));
  }
  return text;
}

// Parent of `pid`, 0 when it is gone.
pid_t parent_of(pid_t pid) {
  // "pid (name) state ppid ..."; the name may hold anything, so the last parenthesis counts.
  const std::string stat = read_proc(pid, "stat");
  const std::size_t close = stat.rfind(')');
  if (close == std::string::npos || close + 4 >= stat.size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), parent);
  return parent;
}

// True while `pid` is within execve: it has its new memory, but the environment is not in it yet. A busy machine can
// hold it there for long.
bool within_execve(pid_t pid) {
  const Descriptor readable(::open(("/proc/" + std::to_string(pid) + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable) return false;  // gone, or another user's, whose numbers below would all read 0
  const std::string stat = read_proc(pid, "stat");
  const std::size_t close = stat.rfind(')');
  if (close == std::string::npos) return false;
  std::istringstream fields(stat.substr(close + 1));
  constexpr int kState = 3;
  constexpr int kMemory = 23;
  constexpr int kEnvironmentEnd = 51;
  std::string field;
  bool has_memory = false;  // kernel threads and zombies have none
  for (int number = kState; number < kEnvironmentEnd; ++number) {
    fields >> field;
    if (number == kMemory) has_memory = field != "0";
  }
  return fields >> field && has_memory && field == "0";
}

enum class Carries : std::uint8_t { no, yes, not_known_yet };

Carries carries(pid_t pid, std::string_view variable) {
  std::string environment = read_proc(pid, "environ");
  if (environment.empty()) {
    if (within_execve(pid)) return Carries::not_known_yet;
    environment = read_proc(pid, "environ");  // it may have come out of execve since
  }
  for (std::size_t at = environment.find(variable); at != std::string::npos; at = environment.find(variable, at + 1)) {
    const std::size_t end = at + variable.size();
    if ((at == 0 || environment[at - 1] == '\0') && (end == environment.size() || environment[end] == '\0'))
      return Carries::yes;
  }
  return Carries::no;
}

template <typename Visit>
void for_each_process(Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (!proc) return;
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc{} && end == name.data() + name.size()) visit(pid);
  }
}

// Ends `pid` if `belongs` still holds once the pidfd pins it down, and waits for it until `deadline`.
template <typename Belongs>
void end_process(pid_t pid, Clock::time_point deadline, Belongs belongs) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || !belongs(pid)) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  struct pollfd ended {
    process.get(), POLLIN, 0
  };
  ::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  ::waitpid(pid, nullptr, WNOHANG);  // only an adopted child is ours to reap; for others this does nothing
}

}  // namespace

std::vector<pid_t> child_processes() {
  std::vector<pid_t> children;
  const pid_t self = ::getpid();
  for_each_process([&](pid_t pid) {
    if (parent_of(pid) == self) children.push_back(pid);
  });
  return children;
}

bool sweep_job(std::string_view token, std::span<const pid_t> keep, std::chrono::milliseconds limit) {
  const std::string variable = "WEFT_JOB_TOKEN=" + std::string(token);
  const pid_t self = ::getpid();
  const auto deadline = Clock::now() + limit;
  bool undecided = false;
  const auto belongs = [&](pid_t pid) {
    if (pid == self || std::find(keep.begin(), keep.end(), pid) != keep.end()) return false;
    if (parent_of(pid) == self) return true;
    const Carries answer = carries(pid, variable);
    if (answer == Carries::not_known_yet) undecided = true;
    return answer == Carries::yes;
  };
  while (true) {
    std::vector<pid_t> found;
    undecided = false;
    for_each_process([&](pid_t pid) {
      if (belongs(pid)) found.push_back(pid);
    });
    if (found.empty() && !undecided) return true;
    if (Clock::now() >= deadline) return false;
    if (found.empty()) ::poll(nullptr, 0, kExecvePauseMs);
    for (const pid_t pid : found)
      end_process(pid, deadline, belongs);
  }
}

}  // namespace weft::net::launch
