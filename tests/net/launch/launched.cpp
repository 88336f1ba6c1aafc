#include "net/launch/launched.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "weft/net/launch/rank_process.hpp"

namespace weft::net::launch::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// State and parent, as in /proc/PID/stat; {'Z', 0} for a process that is no more.
struct Status {
  char state = 'Z';
  pid_t parent = 0;
};

Status status_of(pid_t pid) {
  const std::string stat = slurp("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t close = stat.rfind(')');
  Status status;
  if (close == std::string::npos || close + 4 >= stat.size()) return status;
  status.state = stat[close + 2];
  std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), status.parent);
  return status;
}

bool zombie(pid_t pid) {
  return status_of(pid).state == 'Z';
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc{} && end == name.data() + name.size()) found.push_back(pid);
  }
  return found;
}

// Between two looks at something that nobody reports.
void pause() {
  ::poll(nullptr, 0, 10);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

int input_with(const std::string& text) {
  if (text.empty()) return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  char name[] = "/tmp/weft_launched_XXXXXX";
  const int fd = ::mkostemp(name, O_CLOEXEC);
  ::unlink(name);
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw std::runtime_error("input");
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

}  // namespace

std::vector<std::string> shell_job(int ranks, std::string script) {
  return {"-n", std::to_string(ranks), "sh", "-c", std::move(script)};
}

Launched::Launched(std::vector<std::string> arguments) : Launched(std::move(arguments), Options{}) {}

Launched::Launched(std::vector<std::string> arguments, const Options& options) {
  static std::atomic<int> count{0};
  marker_ = "WEFT_LAUNCHED_TEST=" + std::to_string(::getpid()) + "." + std::to_string(count++);
  std::string program = std::string(WEFT_TEST_BIN_DIR) + "/" + options.program;
  arguments.insert(arguments.begin(), program);
  std::vector<std::string> environment = options.environment;
  environment.push_back(marker_);
  environment.push_back(std::string("PATH=") + std::getenv("PATH"));
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);

  const Descriptor input(input_with(options.input));
  auto out = make_pipe();
  auto err = make_pipe();
  if (!input || !out || !err) throw std::runtime_error("no descriptors");
  int terminal = -1;
  pid_ = options.terminal ? ::forkpty(&terminal, nullptr, nullptr, nullptr) : ::fork();
  if (pid_ == 0) {
    if (!options.terminal) {
      ::setpgid(0, 0);
      ::dup2(input.get(), 0);
      ::dup2(out->write_end.get(), 1);
      ::dup2(err->write_end.get(), 2);
    }
    if (options.extra_fd >= 0) ::fcntl(options.extra_fd, F_SETFD, 0);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(126);
  }
  if (pid_ < 0) throw std::runtime_error("fork");
  pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (options.terminal) {
    ::fcntl(terminal, F_SETFD, FD_CLOEXEC);
    out_fd_ = Descriptor(terminal);
  } else {
    out_fd_ = std::move(out->read_end);
    err_fd_ = std::move(err->read_end);
  }
}

Launched::~Launched() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const pid_t pid : marked())
    ::kill(pid, SIGKILL);
}

bool Launched::read_some(int timeout_ms) {
  struct pollfd ready[] = {{out_fd_.get(), POLLIN, 0}, {err_fd_.get(), POLLIN, 0}};  // poll skips -1
  ::poll(ready, 2, timeout_ms);
  bool any = false;
  char block[65536];
  for (int i = 0; i < 2; ++i) {
    if (ready[i].revents == 0) continue;
    Descriptor& fd = i == 0 ? out_fd_ : err_fd_;
    const ssize_t count = ::read(fd.get(), block, sizeof block);
    if (count > 0) {
      (i == 0 ? out_ : err_).append(block, static_cast<std::size_t>(count));
      any = true;
    } else {
      fd.reset();
    }
  }
  return any;
}

bool Launched::ended_within(int ms) {
  struct pollfd ended {
    pidfd_.get(), POLLIN, 0
  };
  return ::poll(&ended, 1, ms) > 0;
}

int Launched::wait() {
  const auto limit = Clock::now() + std::chrono::milliseconds(kHangMs);
  while (!ended_within(0)) {
    if (Clock::now() >= limit) return -1;
    if (out_fd_ || err_fd_) {
      read_some(50);
    } else {
      ended_within(kHangMs);
    }
  }
  while (read_some(0)) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool Launched::wait_for(std::string_view text, int times, bool error) {
  const auto limit = Clock::now() + std::chrono::milliseconds(kHangMs);
  while (true) {
    int found = 0;
    const std::string& all = error ? err_ : out_;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
      ++found;
    if (found >= times) return true;
    if (Clock::now() >= limit || (!out_fd_ && !err_fd_)) return false;
    read_some(1000);
  }
}

void Launched::signal(int number) const {
  ::kill(pid_, number);
}
void Launched::signal_group(int number) const {
  ::kill(-pid_, number);
}

void Launched::type(std::string_view text) const {
  if (::write(out_fd_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("cannot type");
  }
}

std::vector<pid_t> Launched::marked() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    if (pid == pid_) continue;
    const std::string environment = slurp("/proc/" + std::to_string(pid) + "/environ") + '\0';
    if (environment.find(marker_ + '\0') != std::string::npos && !zombie(pid)) found.push_back(pid);
  }
  return found;
}

std::string Launched::left_behind() const {
  std::string text;
  for (const pid_t pid : marked()) {
    text += std::to_string(pid) + " " + slurp("/proc/" + std::to_string(pid) + "/cmdline") + "\n";
  }
  return text;
}

std::string Launched::left_behind_at_last() const {
  const auto limit = Clock::now() + std::chrono::milliseconds(kHangMs);
  std::string text;
  while (true) {
    text = left_behind();
    if (text.empty() || Clock::now() >= limit) return text;
    pause();
  }
}

std::vector<pid_t> Launched::family() const {
  std::vector<pid_t> found = {pid_};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const pid_t pid : all_processes()) {
      if (status_of(pid).parent == found[i]) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

bool all_gone(const std::vector<pid_t>& pids) {
  const auto limit = Clock::now() + std::chrono::milliseconds(kHangMs);
  for (const pid_t pid : pids) {
    for (; !zombie(pid); pause()) {
      if (Clock::now() >= limit) return false;
    }
  }
  return true;
}

}  // namespace weft::net::launch::testing
