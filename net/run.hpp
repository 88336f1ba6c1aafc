// From main() into a job: reads the environment, starts the ranks that this process hosts, runs the user's function on
// each, and turns what happened into an exit code.
//
//     weft::Task<void> rank_main(weft::Communicator& world);
//     int main(int argc, char** argv) { return weft::run(argc, argv, rank_main); }
//
// Started by hand it is a world of one; under weftrun or torchrun it is what they say.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/net/bootstrap/environment.hpp"
#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"

namespace weft {

/// What every rank of a program runs. Called once per rank, on that rank's thread; several ranks of one process call
/// the same object, each with its own world.
using RankMain = std::function<Task<void>(Communicator& world)>;

/// How one rank of this process ended.
struct RankOutcome {
  std::int32_t rank = 0;
  std::exception_ptr failure;  ///< null: in order
};

/// Runs the ranks of `job` that this process hosts, each on a thread of its own (the calling thread where there is one
/// only), and waits for all of them. Nothing is printed, no signal handler is set, all threads have ended on return.
/// Errors: throws Error(address_in_use | unreachable | bad_environment | exhausted) before any rank has started.
[[nodiscard]] std::vector<RankOutcome> run_job(const net::JobEnvironment& job, const RankMain& main);

namespace detail {
/// run_job() with this process's environment, messages on stderr, and an exit code.
[[nodiscard]] int run_program(const char* program, const RankMain& main);
}  // namespace detail

/// Exit code of a program whose use or environment is wrong: nothing was started.
inline constexpr int kExitBadUse = 2;
/// Exit code of a program that failed.
inline constexpr int kExitFailure = 1;

/// See the top of the file. Gives 0, kExitBadUse or kExitFailure; each failure is one line on stderr that names the
/// rank, the operation, the peer and the cause. argv[0] names the program in them; the other arguments are the user's.
inline int run(int argc, char** argv, const RankMain& main) {
  return detail::run_program(argc > 0 ? argv[0] : "weft", main);
}

}  // namespace weft
