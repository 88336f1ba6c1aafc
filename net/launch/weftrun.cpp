// weftrun: starts the ranks of a Weft job on this machine. Only reads its arguments and finds the program here; the job
// itself is net/launch/local_job.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "weft/net/launch/job_signals.hpp"
#include "weft/net/launch/launch_options.hpp"
#include "weft/net/launch/local_job.hpp"
#include "weft/net/launch/program_search.hpp"

namespace {

namespace launch = weft::net::launch;

constexpr int kBadUse = 2;

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

int refuse(const weft::Error& error) {
  std::cerr << "weftrun: " << error.what() << '\n';
  return launch::exit_code_for_start_error(error);
}

// Cores that this process, and so the job, may use.
std::int32_t usable_cores() {
  const long configured = ::sysconf(_SC_NPROCESSORS_CONF);
  const int count = configured > 0 ? static_cast<int>(configured) : 1024;
  cpu_set_t* const set = CPU_ALLOC(count);
  if (set == nullptr) return 1;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  const int usable = ::sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 1;
  CPU_FREE(set);
  return usable;
}

int run(const std::vector<std::string>& arguments) {
  const auto options = launch::parse_launch_options(arguments, variable);
  if (!options) return refuse(options.error());
  if (options->help) {
    std::cout << launch::launch_help() << std::flush;
    return std::cout ? 0 : 1;
  }
  if (variable("WEFT_JOB_TOKEN")) {
    std::cerr << "weftrun: WEFT_JOB_TOKEN is set, so this is a rank of a Weft job already; a job within a rank is "
                 "almost always a slip. Unset WEFT_JOB_TOKEN and MASTER_PORT to start one all the same.\n";
    return kBadUse;
  }
  auto program = launch::find_program(options->command.front(), variable("PATH").value_or("/bin:/usr/bin"));
  if (!program) return refuse(program.error());
  auto signals = launch::JobSignals::block();
  if (!signals) return refuse(signals.error());

  launch::JobSpec spec;
  spec.program = *program;
  spec.arguments = options->command;
  spec.environment = launch::current_environment();
  spec.ranks = options->ranks;
  spec.ranks_per_process = options->ranks_per_process;
  spec.port = options->port;
  spec.settings = launch::exported_settings(*options, usable_cores());
  spec.prefix = options->prefix;
  spec.signal_fd = signals->descriptor();
  launch::LocalJob job(std::move(spec));
  const auto exit_code = job.run();
  if (!exit_code) return refuse(exit_code.error());
  return *exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>());
  } catch (const std::exception& failure) {
    std::cerr << "weftrun: " << failure.what() << '\n';
    return 1;
  }
}
