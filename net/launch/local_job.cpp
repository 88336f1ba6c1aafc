#include "weft/net/launch/local_job.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "weft/net/launch/event_set.hpp"
#include "weft/net/launch/exit_report.hpp"
#include "weft/net/launch/job_guard.hpp"
#include "weft/net/launch/job_output.hpp"
#include "weft/net/launch/job_processes.hpp"
#include "weft/net/launch/job_sweep.hpp"
#include "weft/net/launch/rank_process.hpp"
#include "weft/net/launch/store_socket.hpp"
#include "weft/net/launch/terminal_input.hpp"

namespace weft::net::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kMaxDeathReports = 16;            // lines; the rest is counted
constexpr milliseconds kForegroundCheck{1000};  // how often a job in the background looks whether it still is

// SIGPIPE ignored and orphans adopted, for as long as this object lives.
class ProcessMode {
 public:
  ProcessMode() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &previous_pipe_);
    ::prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ProcessMode(const ProcessMode&) = delete;
  ProcessMode& operator=(const ProcessMode&) = delete;
  ~ProcessMode() {
    ::sigaction(SIGPIPE, &previous_pipe_, nullptr);
    ::prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
  }

 private:
  struct sigaction previous_pipe_ {};
  int was_subreaper_ = 0;
};

std::string seconds_text(milliseconds duration) {
  const auto ms = duration.count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

}  // namespace

//            first failure            time            time
//  running ---------------> noticing ------> terminating ------> killing
//     |  \______________________|__________________|^  ^            |
//     |      an output was closed                      | time,      |
//     |                                                | or again   |
//     |---- signal ---> interrupted -------------------'            |
//     |                     |                                       |
//     '---- all ended ------+---> lingering ---> flushing ---> over <'  (all ended leads from every phase to lingering)
class LocalJob::Run {
 public:
  explicit Run(JobSpec spec) : spec_(std::move(spec)), output_(events_, spec_.output_fd, spec_.error_fd) {}

  Result<int> operator()();

 private:
  enum class Phase : std::uint8_t { running, noticing, terminating, interrupted, killing, lingering, flushing, over };

  Result<void> start();
  Result<int> prepare_input();
  void turn();
  void dispatch(Event event);
  void on_signals();
  void on_signal(int number);
  void on_death(std::size_t index);
  void decide(ProcessEnd end);
  void on_deadline();
  void on_output_error();
  void update_terminal();
  void enter(Phase phase, milliseconds limit);
  void terminate(const std::string& why);
  void kill_all(const std::string& why);
  void end_leftovers();
  [[nodiscard]] int wait_ms() const;
  void say(const std::string& text) { output_.report(spec_.name + ": " + text); }
  void fail(int exit_code) {
    if (!exit_code_) exit_code_ = exit_code;
  }

  JobSpec spec_;
  EventSet events_;
  JobOutput output_;
  JobProcesses processes_;
  std::optional<JobGuard> guard_;
  std::optional<TerminalInput> terminal_;
  int terminal_waits_on_ = -1;  // descriptor in events_ for the terminal, if any
  std::string token_;
  std::vector<pid_t> strangers_;  // children that this process had before the job

  Phase phase_ = Phase::running;
  std::optional<Clock::time_point> deadline_;
  std::optional<int> exit_code_;                    // set by the first thing that went wrong
  std::optional<Clock::time_point> first_exit_at_;  // when exit_code_ was set by a rank that exited by itself
  std::optional<Error> start_failure_;
  bool output_error_seen_ = false;
  int death_reports_ = 0;
  int interrupt_signal_ = 0;
  Clock::time_point interrupted_at_;
};

Result<int> LocalJob::Run::operator()() {
  fill_standard_descriptors();
  const ProcessMode mode;
  if (auto started = start(); !started) {
    end_leftovers();
    return started.error();
  }
  while (phase_ != Phase::over)
    turn();
  guard_.reset();
  if (start_failure_) return *start_failure_;
  return exit_code_.value_or(0);
}

Result<void> LocalJob::Run::start() {
  if (!events_.valid()) return Error(Errc::exhausted, "epoll", std::strerror(errno), kNoRank, errno);
  strangers_ = child_processes();
  auto token = make_job_token();
  if (!token) return token.error();
  token_ = *token;
  auto store = open_store_socket(spec_.port);
  if (!store) return store.error();
  auto input = prepare_input();
  if (!input) return input.error();
  const Descriptor rank_input(*input == spec_.input_fd ? -1 : *input);  // closes our copy of a pipe's read end
  if (spec_.signal_fd >= 0 && !events_.add(spec_.signal_fd, EPOLLIN, EventKind::signal, 0)) {
    return Error(Errc::io, "signal_fd", std::strerror(errno), kNoRank, errno);
  }

  JobIdentity identity;
  identity.ranks = spec_.ranks;
  identity.ranks_per_process = spec_.ranks_per_process;
  identity.port = store->port;
  identity.token = token_;
  identity.settings = spec_.settings;
  auto guard = JobGuard::start(token_);
  if (!guard) return guard.error();
  strangers_.push_back(guard->pid());
  guard_.emplace(std::move(*guard));
  return processes_.start(spec_, identity, store->listener.get(), *input, events_, output_, *guard_);
}

Result<int> LocalJob::Run::prepare_input() {
  if (::isatty(spec_.input_fd) == 0) return spec_.input_fd;
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  terminal_.emplace(spec_.input_fd, std::move(pipe->write_end));
  const int read_end = ::dup(pipe->read_end.get());
  if (read_end < 0) return Error(Errc::exhausted, "pipe", std::strerror(errno), kNoRank, errno);
  return read_end;
}

void LocalJob::Run::turn() {
  update_terminal();
  std::array<Event, EventSet::kBatch> room;
  for (const Event event : events_.wait(room, wait_ms()))
    dispatch(event);

  if (output_.error() != 0 && !output_error_seen_) on_output_error();
  if (phase_ < Phase::lingering && processes_.living() == 0) enter(Phase::lingering, spec_.times.linger);
  if (deadline_ && Clock::now() >= *deadline_) on_deadline();
  if (phase_ == Phase::lingering && output_.streams_ended()) on_deadline();
  if (phase_ == Phase::flushing && output_.flushed()) phase_ = Phase::over;
}

void LocalJob::Run::dispatch(Event event) {
  switch (event.kind) {
    case EventKind::signal: return on_signals();
    case EventKind::start_failure:
      if (auto failure = processes_.on_start_failure(events_, spec_.program)) {
        start_failure_ = std::move(failure);
        kill_all({});
      }
      return;
    case EventKind::death: return on_death(event.index);
    case EventKind::rank_output: return output_.on_rank_output(event.index);
    case EventKind::sink: return output_.on_sink(event.index);
    case EventKind::terminal:
    case EventKind::terminal_pipe:
      // The descriptor may be closed inside; it has to leave the event set before.
      events_.remove(terminal_waits_on_);
      terminal_waits_on_ = -1;
      return terminal_->move();
  }
}

void LocalJob::Run::update_terminal() {
  if (!terminal_ || !terminal_->open() || terminal_waits_on_ >= 0) return;
  const bool write = terminal_->wants_to_write();
  if (!write && !terminal_->in_foreground()) return;
  const int fd = write ? terminal_->pipe() : terminal_->terminal();
  const EventKind kind = write ? EventKind::terminal_pipe : EventKind::terminal;
  if (events_.add(fd, write ? EPOLLOUT : EPOLLIN, kind, 0)) terminal_waits_on_ = fd;
}

int LocalJob::Run::wait_ms() const {
  std::optional<milliseconds> limit;
  if (deadline_) {
    limit = std::max(std::chrono::ceil<milliseconds>(*deadline_ - Clock::now()), milliseconds{0});
  }
  if (terminal_ && terminal_->open() && terminal_waits_on_ < 0)
    limit = std::min(limit.value_or(kForegroundCheck), kForegroundCheck);
  return limit ? static_cast<int>(limit->count()) : -1;
}

void LocalJob::Run::on_signals() {
  signalfd_siginfo info{};
  while (::read(spec_.signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    on_signal(static_cast<int>(info.ssi_signo));
  }
}

void LocalJob::Run::on_signal(int number) {
  if (number == SIGUSR1 || number == SIGUSR2) return processes_.signal_groups(number);
  switch (phase_) {
    case Phase::running:
    case Phase::noticing:
      interrupt_signal_ = number;
      interrupted_at_ = Clock::now();
      fail(exit_code_for_signal(number));
      say("got " + signal_name(number) + ", passed it on to " + processes_.living_ranks());
      processes_.signal_groups(number);
      return enter(Phase::interrupted, spec_.times.interrupt);
    case Phase::interrupted:
      if (Clock::now() - interrupted_at_ < spec_.times.repeat) return;
      return kill_all("got " + signal_name(number) + " again: sent SIGKILL to " + processes_.living_ranks());
    case Phase::terminating:
      return kill_all("got " + signal_name(number) + ": sent SIGKILL to " + processes_.living_ranks());
    case Phase::lingering:
    case Phase::flushing:
      // The job is over; what holds us up is not worth waiting for any more.
      fail(exit_code_for_signal(number));
      deadline_ = Clock::now();
      return;
    case Phase::killing:
    case Phase::over: return;
  }
}

void LocalJob::Run::on_death(std::size_t index) {
  const JobProcesses::Process& process = processes_.all()[index];
  if (process.end) return;
  processes_.on_death(index, events_);
  if (!process.end) return;
  // Its last words come before the report of its death.
  output_.drain(process.output);
  output_.drain(process.error);
  if (process.end->succeeded() || start_failure_) return;

  // What dies of the signal that we sent has not failed.
  const bool asked = phase_ == Phase::interrupted || phase_ == Phase::terminating || phase_ == Phase::killing;
  const int signal = process.end->signal();
  const bool of_ours = signal == SIGKILL || signal == SIGTERM || signal == interrupt_signal_;
  if (!asked || (signal != 0 && !of_ours)) {
    if (++death_reports_ <= kMaxDeathReports) {
      say(exit_report(process.block.first, process.block.count, process.pid, *process.end));
    }
  }
  decide(*process.end);
  if (phase_ == Phase::running) enter(Phase::noticing, spec_.times.notice);
}

void LocalJob::Run::on_output_error() {
  output_error_seen_ = true;
  const bool standard_output = output_.broken() == JobOutput::standard_output;
  const std::string what = standard_output ? "standard output" : "standard error";
  // EIO is what a terminal that has been closed answers.
  const bool closed = output_.error() == EPIPE || output_.error() == EIO || output_.error() == ECONNRESET;
  fail(closed ? exit_code_for_signal(SIGPIPE) : 1);
  const std::string why =
      closed ? what + " was closed" : "cannot write " + what + ": " + std::strerror(output_.error());
  if (phase_ == Phase::running || phase_ == Phase::noticing) {
    terminate(why + ": sent SIGTERM to " + processes_.living_ranks());
  } else {
    say(why);
  }
}

void LocalJob::Run::decide(ProcessEnd end) {
  const int signal = end.signal();
  if (!exit_code_) {
    exit_code_ = end.exit_code();
    if (signal == 0) first_exit_at_ = Clock::now();
    return;
  }
  // The kernel closes the sockets of a dying process before it tells us of the death; a rank that sees them close may
  // fail and be told to us in between. Nobody is killed from outside because another rank has failed, so a kill told
  // at the same moment came first. SIGABRT and SIGPIPE are what a rank may make of a failure of others.
  const bool killed = signal != 0 && signal != SIGABRT && signal != SIGPIPE;
  const bool asked = phase_ != Phase::noticing;
  if (killed && !asked && first_exit_at_ && Clock::now() - *first_exit_at_ <= spec_.times.same_moment) {
    exit_code_ = end.exit_code();
    first_exit_at_.reset();
  }
}

void LocalJob::Run::on_deadline() {
  switch (phase_) {
    case Phase::noticing:
      return terminate(processes_.living_ranks() + " did not end within " + seconds_text(spec_.times.notice) +
                       " of the failure: sent SIGTERM");
    case Phase::terminating:
      return kill_all(processes_.living_ranks() + " did not end within " + seconds_text(spec_.times.terminate) +
                      " of SIGTERM: sent SIGKILL");
    case Phase::interrupted:
      return kill_all(processes_.living_ranks() + " did not end within " + seconds_text(spec_.times.interrupt) +
                      " of " + signal_name(interrupt_signal_) + ": sent SIGKILL");
    case Phase::killing:
      say(processes_.living_ranks() + " cannot be killed (stuck in the kernel?) and will be left behind");
      fail(1);
      [[fallthrough]];
    case Phase::lingering:
      output_.finish();
      end_leftovers();
      if (death_reports_ > kMaxDeathReports) {
        say("and " + std::to_string(death_reports_ - kMaxDeathReports) + " more that failed");
      }
      // Whoever reads our output may take the time it likes, unless we have been told to end.
      if (interrupt_signal_ != 0) return enter(Phase::flushing, spec_.times.interrupt);
      phase_ = Phase::flushing;
      deadline_.reset();
      return;
    case Phase::flushing: phase_ = Phase::over; return;
    case Phase::running:
    case Phase::over: return;
  }
}

void LocalJob::Run::enter(Phase phase, milliseconds limit) {
  phase_ = phase;
  deadline_ = Clock::now() + limit;
}

void LocalJob::Run::terminate(const std::string& why) {
  if (processes_.living() == 0) return;
  say(why);
  processes_.signal_groups(SIGTERM);
  enter(Phase::terminating, spec_.times.terminate);
}

void LocalJob::Run::kill_all(const std::string& why) {
  if (!why.empty()) say(why);
  processes_.signal_groups(SIGKILL);
  enter(Phase::killing, spec_.times.unkillable);
}

void LocalJob::Run::end_leftovers() {
  const auto limit = phase_ == Phase::killing ? milliseconds{0} : spec_.times.unkillable;
  processes_.kill_and_reap(Clock::now() + limit);
  if (token_.empty()) return;
  if (!sweep_job(token_, strangers_, limit)) say("processes that the ranks started are still there");
}

LocalJob::LocalJob(JobSpec spec) : run_(std::make_unique<Run>(std::move(spec))) {}
LocalJob::~LocalJob() = default;

Result<int> LocalJob::run() {
  return (*run_)();
}

std::vector<std::string> current_environment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  return environment;
}

int exit_code_for_start_error(const Error& error) {
  switch (error.code()) {
    case Errc::invalid_argument:
    case Errc::bad_environment:
    case Errc::address_in_use: return 2;
    default: return 1;
  }
}

}  // namespace weft::net::launch
