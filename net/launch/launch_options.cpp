#include "weft/net/launch/launch_options.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace weft::net::launch {
namespace {

constexpr double kMaxTimeoutSeconds = 1e9;  // 31 years; keeps nanoseconds inside 64 bits

Error refuse(std::string_view source, std::string_view value, std::string_view wanted) {
  return {Errc::invalid_argument, source, "'" + std::string(value) + "' is not " + std::string(wanted)};
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<void> set_count(std::string_view source, std::string_view value, std::int32_t& count) {
  const auto number = parse_number<std::int64_t>(value);
  if (!number || *number < 1 || *number > kMaxRanks) {
    return refuse(source, value, "a whole number from 1 to " + std::to_string(kMaxRanks));
  }
  count = static_cast<std::int32_t>(*number);
  return {};
}

Result<void> set_ranks(std::string_view source, std::string_view value, LaunchOptions& options) {
  return set_count(source, value, options.ranks);
}

Result<void> set_ranks_per_process(std::string_view source, std::string_view value, LaunchOptions& options) {
  return set_count(source, value, options.ranks_per_process);
}

Result<void> set_transport(std::string_view source, std::string_view value, LaunchOptions& options) {
  if (value == "verbs" || value == "sim") {
    return Error(Errc::invalid_argument, source,
                 "this build of Weft has no " + std::string(value) + " transport; use auto, shm or tcp");
  }
  if (value != "auto" && value != "shm" && value != "tcp") {
    return refuse(source, value, "a transport (auto, shm, tcp, verbs or sim)");
  }
  options.transport = value;
  return {};
}

Result<void> set_order(std::string_view source, std::string_view value, LaunchOptions& options) {
  if (value != "consistent" && value != "canonical") return refuse(source, value, "consistent or canonical");
  options.order = value;
  return {};
}

Result<void> set_timeout(std::string_view source, std::string_view value, LaunchOptions& options) {
  const auto seconds = parse_number<double>(value);
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0 || *seconds > kMaxTimeoutSeconds) {
    return refuse(source, value, "a number of seconds from 0 (no deadline) to 1e9");
  }
  // Written out again, so that every reader sees one form: no exponent, no "-0".
  std::array<char, 64> text{};
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), *seconds == 0 ? 0.0 : *seconds, std::chars_format::fixed);
  if (written.ec != std::errc{}) return refuse(source, value, "a number of seconds with at most 60 digits");
  options.timeout_s.assign(text.data(), written.ptr);
  return {};
}

Result<void> set_bind(std::string_view source, std::string_view value, LaunchOptions& options) {
  if (value != "core" && value != "none") return refuse(source, value, "core or none");
  options.bind = value == "core" ? Bind::core : Bind::none;
  return {};
}

Result<void> set_prefix(std::string_view source, std::string_view value, LaunchOptions& options) {
  if (value != "on" && value != "off") return refuse(source, value, "on or off");
  options.prefix = value == "on";
  return {};
}

struct Setting {
  std::string_view flag;
  std::string_view variable;
  Result<void> (*set)(std::string_view source, std::string_view value, LaunchOptions& options);
};

constexpr std::array kSettings = {
    Setting{"-n", "WEFT_NUM_RANKS", set_ranks},
    Setting{"--ranks-per-process", "WEFT_RANKS_PER_PROCESS", set_ranks_per_process},
    Setting{"--transport", "WEFT_TRANSPORT", set_transport},
    Setting{"--order", "WEFT_ORDER", set_order},
    Setting{"--timeout", "WEFT_TIMEOUT", set_timeout},
    Setting{"--bind", "WEFT_BIND", set_bind},
    Setting{"--prefix", "WEFT_PREFIX", set_prefix},
};

// One flag with its value taken from the front of `words`, `-n 4`, `-n4`, `--flag 4` or `--flag=4`.
struct FlagUse {
  const Setting* setting = nullptr;
  std::string_view value;
  std::size_t words = 0;
};

Result<FlagUse> read_flag(std::span<const std::string> words) {
  const std::string_view word = words.front();
  for (const Setting& setting : kSettings) {
    if (word == setting.flag) {
      if (words.size() < 2) return Error(Errc::invalid_argument, setting.flag, "needs a value after it");
      return FlagUse{&setting, words[1], 2};
    }
    if (!word.starts_with(setting.flag)) continue;
    const std::string_view rest = word.substr(setting.flag.size());
    if (rest.front() == '=') return FlagUse{&setting, rest.substr(1), 1};
    if (setting.flag.size() == 2 && rest.front() >= '0' && rest.front() <= '9') return FlagUse{&setting, rest, 1};
  }
  return Error(Errc::invalid_argument, word, "unknown flag; weftrun --help lists what there is");
}

Result<void> read_environment(const EnvironmentLookup& environment, LaunchOptions& options) {
  for (const Setting& setting : kSettings) {
    const auto value = environment(setting.variable);
    if (!value || value->empty()) continue;
    auto done = setting.set(setting.variable, *value, options);
    if (!done) return done;
  }
  const auto port = environment("MASTER_PORT");
  if (port && !port->empty()) {
    const auto number = parse_number<std::uint16_t>(*port);
    if (!number) return refuse("MASTER_PORT", *port, "a port from 0 (any free one) to 65535");
    options.port = *number;
  }
  return {};
}

}  // namespace

Result<LaunchOptions> parse_launch_options(std::span<const std::string> arguments,
                                           const EnvironmentLookup& environment) {
  LaunchOptions options;
  std::vector<FlagUse> flags;
  while (!arguments.empty() && arguments.front().size() > 1 && arguments.front().front() == '-') {
    const std::string& word = arguments.front();
    if (word == "--") {
      arguments = arguments.subspan(1);
      break;
    }
    if (word == "-h" || word == "--help") {
      options.help = true;
      return options;
    }
    auto use = read_flag(arguments);
    if (!use) return use.error();
    flags.push_back(*use);
    arguments = arguments.subspan(use->words);
  }

  // Flags come after variables, so that they win; a variable that is wrong is refused even where a flag overrides it.
  if (auto done = read_environment(environment, options); !done) return done.error();
  for (const FlagUse& use : flags) {
    auto done = use.setting->set(use.setting->flag, use.value, options);
    if (!done) return done.error();
  }

  if (arguments.empty()) {
    return Error(Errc::invalid_argument, "PROGRAM", "no program was given; weftrun --help shows the form");
  }
  options.command.assign(arguments.begin(), arguments.end());
  return options;
}

std::vector<std::pair<std::string, std::string>> exported_settings(const LaunchOptions& options, std::int32_t cores) {
  const bool bind = options.bind == Bind::core || (options.bind == Bind::automatic && options.ranks <= cores);
  return {
      {"WEFT_TRANSPORT", options.transport},
      {"WEFT_ORDER", options.order},
      {"WEFT_TIMEOUT", options.timeout_s},
      {"WEFT_BIND", bind ? "core" : "none"},
  };
}

std::string launch_help() {
  return R"(weftrun starts the ranks of one Weft job on this machine.

  weftrun [-n N] [--ranks-per-process R] [--transport auto|shm|tcp|verbs|sim]
          [--order consistent|canonical] [--timeout S] [--bind core|none]
          [--prefix on|off] PROGRAM ARGS...

  -n N                   ranks to start, 1 to 4096           WEFT_NUM_RANKS, else 1
  --ranks-per-process R  ranks that share one process; the   WEFT_RANKS_PER_PROCESS, else 1
                         last process takes what is left
  --transport T          how ranks talk; auto takes the      WEFT_TRANSPORT, else auto
                         best for each pair of ranks
  --order O              canonical: sums go from left to     WEFT_ORDER, else consistent
                         right over the ranks whatever the
                         transport and algorithm; consistent:
                         the same bits on every rank
  --timeout S            deadline of each operation in       WEFT_TIMEOUT, else 0
                         seconds, 0 for none; not a limit on
                         the length of the job
  --bind B               core: each rank keeps to one core   WEFT_BIND, else core where every
                                                             rank can have one, none otherwise
  --prefix P             on: every line of output starts     WEFT_PREFIX, else on
                         with [rank]
  -h, --help             this text
  --                     what follows is the program

A flag beats its variable; the ranks see the effective values in the same
variables, which also work without weftrun. MASTER_PORT, where it is set, is the
port of the job's key-value store; a busy one is refused.

PROGRAM is looked up as a shell does. Rank 0 has weftrun's standard input, the
others /dev/null. Ctrl-C, TERM, HUP and QUIT are passed on to all ranks, which then have
2 s to end; a second one ends them at once. When a rank fails, the others have 1 s
to end with an error of their own and 1 s more after SIGTERM. Nothing that a rank
has started outlives the job.

Exit code: 0 when every rank returned 0; else that of the first rank that failed
(128 + signal where a signal ended it); 128 + signal when weftrun was told to end;
2 for bad use, with nothing started.
)";
}

}  // namespace weft::net::launch
