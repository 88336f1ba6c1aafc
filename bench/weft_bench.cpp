// weft-bench: measures Weft between local ranks. Without a launcher around it, it starts its own ranks: as processes by
// running itself again through the launcher's machinery, or as threads.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "reporter.hpp"
#include "weft/net/bootstrap/environment.hpp"
#include "weft/net/launch/job_signals.hpp"
#include "weft/net/launch/local_job.hpp"
#include "weft/net/run.hpp"
#include "weft/runtime/topology.hpp"

namespace {

namespace launch = weft::net::launch;
using bench::Options;
using weft::net::EnvironmentSource;
using weft::net::JobEnvironment;

void complain(const std::string& text) {
  const std::string line = "weft-bench: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int refuse(const std::string& text) {
  complain(text);
  return weft::kExitBadUse;
}

int exit_code_of(const weft::Error& error) {
  using weft::Errc;
  const Errc code = error.code();
  return code == Errc::bad_environment || code == Errc::address_in_use || code == Errc::unreachable
             ? weft::kExitBadUse
             : weft::kExitFailure;
}

// Said before anything starts, and by one process only.
std::string check_json_file(const Options& options) {
  if (options.json.empty() || options.json == "-") return {};
  std::FILE* const file = std::fopen(options.json.c_str(), "ae");
  if (file == nullptr) return "--json: " + options.json + ": " + std::strerror(errno);
  std::fclose(file);
  return {};
}

weft::Task<void> rank_main(weft::Communicator& world, const Options* options, bool threads, std::int32_t processors) {
  bench::Session session(world, *options);
  session.threads = threads;
  session.processors = processors;
  if (world.rank() == 0) session.reporter = bench::Reporter(*options);
  co_await bench::run_benchmark(session);
}

int run_ranks(const JobEnvironment& job, const Options& options) {
  const bool threads = job.ranks_here > 1;
  // Before threads are bound, which narrows what they see.
  const auto processors = static_cast<std::int32_t>(weft::available_processors().size());
  int exit_code = 0;
  const auto main = [&](weft::Communicator& world) { return rank_main(world, &options, threads, processors); };
  for (const weft::RankOutcome& outcome : weft::run_job(job, main)) {
    if (outcome.failure == nullptr) continue;
    const std::string who = job.world_size > 1 ? "rank " + std::to_string(outcome.rank) + ": " : std::string();
    try {
      std::rethrow_exception(outcome.failure);
    } catch (const weft::Error& error) {
      complain(who + error.what());
      if (exit_code == 0) exit_code = exit_code_of(error);
    } catch (const std::exception& error) {
      complain(who + error.what());
      exit_code = weft::kExitFailure;
    }
  }
  return exit_code;
}

int start_processes(std::int32_t ranks, int argc, char** argv) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) {
    complain(std::string("cannot find itself in /proc: ") + std::strerror(errno));
    return weft::kExitFailure;
  }
  auto signals = launch::JobSignals::block();
  if (!signals) {
    complain(signals.error().what());
    return launch::exit_code_for_start_error(signals.error());
  }
  launch::JobSpec spec;
  spec.program = std::string(path.data(), static_cast<std::size_t>(length));
  spec.arguments.assign(argv, argv + argc);
  spec.environment = launch::current_environment();
  spec.ranks = ranks;
  spec.prefix = false;
  spec.signal_fd = signals->descriptor();
  spec.name = "weft-bench";
  // Progress is no line, so it cannot go the way that lines go.
  const char* const terminal = ::isatty(STDERR_FILENO) != 0 ? ::ttyname(STDERR_FILENO) : nullptr;
  spec.settings.emplace_back(bench::Progress::kTerminalVariable, terminal == nullptr ? "" : terminal);
  launch::LocalJob job(std::move(spec));
  const auto exit_code = job.run();
  if (exit_code) return *exit_code;
  complain(exit_code.error().what());
  return launch::exit_code_for_start_error(exit_code.error());
}

int run(int argc, char** argv) {
  const bench::ParsedOptions parsed = bench::parse_options(argc, argv);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const Options& options = parsed.options;
  JobEnvironment job = weft::net::read_job_environment();
  if (options.transport.has_value()) job.transport = *options.transport;
  if (options.bind.has_value()) job.bind = *options.bind;
  if (options.idle.has_value()) job.idle = *options.idle;

  const bool launched = job.source != EnvironmentSource::none || job.world_size > 1;
  const std::int32_t ranks = launched ? job.world_size : options.ranks.value_or(bench::kDefaultRanks);
  const std::string world = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  if (launched && options.ranks.has_value() && *options.ranks != ranks) {
    return refuse("--ranks: is " + std::to_string(*options.ranks) + ", but the launcher has started " + world +
                  "; leave it out");
  }
  if (launched && options.threads && job.ranks_here != ranks) {
    return refuse("--threads: the launcher has started the ranks as processes; use weftrun --ranks-per-process");
  }
  if (ranks < bench::least_ranks(options.benchmark)) {
    return refuse(std::string(bench::to_string(options.benchmark)) + " takes at least " +
                  std::to_string(bench::least_ranks(options.benchmark)) + " ranks, but there is " + world);
  }
  if (job.rank == 0) {
    const std::string wrong = check_json_file(options);
    if (!wrong.empty()) return refuse(wrong);
  }
  if (launched) return run_ranks(job, options);
  if (!options.threads && ranks > 1) return start_processes(ranks, argc, argv);
  job.world_size = ranks;
  job.local_world_size = ranks;
  job.ranks_per_process = ranks;
  job.ranks_here = ranks;
  return run_ranks(job, options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const weft::Error& error) {
    complain(error.what());
    return exit_code_of(error);
  } catch (const std::exception& error) {
    complain(error.what());
    return weft::kExitFailure;
  }
}
