// What the user asked weftrun for: flags and environment variables in, checked options or a worded refusal out. Pure:
// it neither reads the process's environment nor looks at files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/result.hpp"

namespace weft::net::launch {

/// Most ranks of one job on one machine; beyond it a slip of the finger is likelier than a wish.
inline constexpr std::int32_t kMaxRanks = 4096;

/// How ranks are tied to cores.
enum class Bind : std::uint8_t {
  automatic,  ///< core when every rank can have one of its own, else none
  core,
  none,
};

/// Every field but the last three has a flag and a variable; a flag beats its variable.
struct LaunchOptions {
  std::int32_t ranks = 1;              ///< -n, WEFT_NUM_RANKS
  std::int32_t ranks_per_process = 1;  ///< --ranks-per-process, WEFT_RANKS_PER_PROCESS
  std::string transport = "auto";      ///< --transport, WEFT_TRANSPORT: auto, shm, tcp
  std::string order = "consistent";    ///< --order, WEFT_ORDER: consistent, canonical
  std::string timeout_s = "0";         ///< --timeout, WEFT_TIMEOUT: decimal seconds, 0 means no deadline
  Bind bind = Bind::automatic;         ///< --bind, WEFT_BIND: core, none
  bool prefix = true;                  ///< --prefix, WEFT_PREFIX: on, off
  std::uint16_t port = 0;              ///< MASTER_PORT only; 0 lets the system choose
  bool help = false;                   ///< --help was given; nothing else was checked
  std::vector<std::string> command;    ///< the program and its arguments, untouched
};

/// Gives the value of an environment variable, or nothing where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view name)>;

/// Reads `arguments` (argv without the program's own name) up to the first word that is no flag; that word and all that
/// follow are the command. A variable that is set to the empty string counts as not set.
///
/// Errors: Errc::invalid_argument; operation() is the flag or variable at fault, what() also says what would be right.
[[nodiscard]] Result<LaunchOptions> parse_launch_options(std::span<const std::string> arguments,
                                                         const EnvironmentLookup& environment);

/// The text of --help.
[[nodiscard]] std::string launch_help();

/// The variables that tell the library in each rank what was chosen, WEFT_TRANSPORT=shm and so on. `cores` is the
/// number of cores this job may use; it decides Bind::automatic.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> exported_settings(const LaunchOptions& options,
                                                                                 std::int32_t cores);

}  // namespace weft::net::launch
