#include "weft/net/launch/job_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "weft/net/launch/rank_process.hpp"

namespace weft::net::launch {
namespace {

constexpr rlim_t kDescriptorsPerProcess = 3;  // pidfd and two pipes
constexpr rlim_t kDescriptorsOfLauncher = 64;

Error no_descriptors(const char* what) {
  return {Errc::exhausted, what, std::strerror(errno), kNoRank, errno};
}

// Makes room for the descriptors of `processes` processes; returns the limit as it was, for the ranks.
Result<struct rlimit> raise_descriptor_limit(std::size_t processes) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return no_descriptors("getrlimit");
  const rlim_t needed = processes * kDescriptorsPerProcess + kDescriptorsOfLauncher;
  if (limit.rlim_cur >= needed) return limit;
  struct rlimit raised = limit;
  raised.rlim_cur = needed;
  if (needed > limit.rlim_max || ::setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    return Error(Errc::exhausted, "descriptors",
                 std::to_string(processes) + " processes need " + std::to_string(needed) + " of them, the limit is " +
                     std::to_string(limit.rlim_max) + "; raise it with ulimit -n");
  }
  return limit;
}

void set_nonblocking(int fd) noexcept {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int wait_status(const siginfo_t& info) noexcept {
  switch (info.si_code) {
    case CLD_EXITED: return (info.si_status & 0xff) << 8;
    case CLD_DUMPED: return info.si_status | 0x80;
    default: return info.si_status;
  }
}

}  // namespace

JobProcesses::~JobProcesses() {
  kill_and_reap(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

Result<void> JobProcesses::start(const JobSpec& spec, const JobIdentity& identity, int store_fd, int input_fd,
                                 EventSet& events, JobOutput& output, JobGuard& guard) {
  const std::vector<RankBlock> blocks = rank_blocks(spec.ranks, spec.ranks_per_process);
  const auto limit = raise_descriptor_limit(blocks.size());
  if (!limit) return limit.error();
  descriptor_limit_ = *limit;
  auto failures = make_pipe();
  if (!failures) return failures.error();
  failures_ = std::move(failures->read_end);
  set_nonblocking(failures_.get());
  if (!events.add(failures_.get(), EPOLLIN, EventKind::start_failure, 0)) return no_descriptors("epoll");
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return no_descriptors("/dev/null");

  processes_.reserve(blocks.size());
  for (const RankBlock block : blocks) {
    const bool first = block.first == 0;
    auto started = start_one(spec, identity, block, first ? store_fd : -1, first ? input_fd : null.get(),
                             failures->write_end.get(), events, output);
    if (!started) return started;
    guard.watch(processes_.back().pid);
  }
  return {};
}

Result<void> JobProcesses::start_one(const JobSpec& spec, const JobIdentity& identity, RankBlock block, int store_fd,
                                     int input_fd, int failure_fd, EventSet& events, JobOutput& output) {
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  set_nonblocking(out->read_end.get());
  set_nonblocking(err->read_end.get());

  const std::vector<std::string> environment = rank_environment(spec.environment, identity, block, store_fd);
  SpawnRequest request{};
  request.program = &spec.program;
  request.arguments = &spec.arguments;
  request.environment = &environment;
  request.input_fd = input_fd;
  request.output_fd = out->write_end.get();
  request.error_fd = err->write_end.get();
  request.kept_fd = store_fd;
  request.failure_fd = failure_fd;
  request.first_rank = block.first;
  request.descriptor_limit = descriptor_limit_;
  const auto pid = spawn_rank(request);
  if (!pid) return pid.error();

  Process& process = processes_.emplace_back();
  process.block = block;
  process.pid = *pid;
  process.pidfd = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  ++living_;
  const std::string prefix = spec.prefix ? "[" + std::to_string(block.first) + "] " : std::string();
  const auto out_stream = output.add(std::move(out->read_end), prefix, JobOutput::standard_output);
  const auto err_stream = output.add(std::move(err->read_end), prefix, JobOutput::standard_error);
  if (!process.pidfd || !out_stream || !err_stream ||
      !events.add(process.pidfd.get(), EPOLLIN, EventKind::death, processes_.size() - 1)) {
    return no_descriptors("watching a process");
  }
  process.output = *out_stream;
  process.error = *err_stream;
  return {};
}

std::optional<Error> JobProcesses::on_start_failure(EventSet& events, const std::string& program) {
  if (!failures_) return std::nullopt;
  SpawnFailure failure{};
  const ssize_t count = ::read(failures_.get(), &failure, sizeof failure);  // smaller than PIPE_BUF: whole or nothing
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  events.remove(failures_.get());
  failures_.reset();
  if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;

  std::string reason = std::string("cannot be executed: ") + std::strerror(failure.error_number);
  if (failure.error_number == ENOENT) reason = "cannot be executed: the interpreter it names does not exist";
  if (failure.error_number == ENOEXEC) reason = "is neither a program for this machine nor a script with a #! line";
  return Error(Errc::invalid_argument, "program '" + program + "'", reason, kNoRank, failure.error_number);
}

void JobProcesses::on_death(std::size_t index, EventSet& events) {
  Process& process = processes_[index];
  if (process.end) return;
  siginfo_t info{};
  // WNOWAIT: it stays a zombie, see the top of the header.
  if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return;
  events.remove(process.pidfd.get());
  process.end = ProcessEnd(wait_status(info));
  --living_;
}

void JobProcesses::signal_groups(int number) const noexcept {
  for (const Process& process : processes_) {
    ::kill(-process.pid, number);
    // A stopped process acts on the signal only once it runs again.
    if (number != SIGKILL && number != SIGUSR1 && number != SIGUSR2) ::kill(-process.pid, SIGCONT);
  }
}

void JobProcesses::kill_and_reap(std::chrono::steady_clock::time_point deadline) noexcept {
  signal_groups(SIGKILL);
  for (const Process& process : processes_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    struct pollfd ended {
      process.pidfd.get(), POLLIN, 0
    };
    if (process.pidfd) ::poll(&ended, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000)));
    ::waitpid(process.pid, nullptr, process.pidfd ? WNOHANG : 0);
  }
  processes_.clear();
  living_ = 0;
}

std::string JobProcesses::living_ranks() const {
  std::vector<RankBlock> runs;
  for (const Process& process : processes_) {
    if (process.end) continue;
    if (!runs.empty() && runs.back().first + runs.back().count == process.block.first) {
      runs.back().count += process.block.count;
    } else {
      runs.push_back(process.block);
    }
  }
  std::string text = runs.size() == 1 && runs.front().count == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(runs[i].first);
    if (runs[i].count > 1) text += "-" + std::to_string(runs[i].first + runs[i].count - 1);
  }
  return text;
}

}  // namespace weft::net::launch
