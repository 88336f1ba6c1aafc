#include "weft/net/bootstrap/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "weft/runtime/error.hpp"
#include "weft/runtime/log.hpp"

namespace weft::net {
namespace {

constexpr double kMaxTimeoutSeconds = 1e9;  // 31 years; keeps nanoseconds inside 64 bits

constexpr std::array<const char*, 6> kWorldVariables = {"RANK",        "WORLD_SIZE", "MASTER_ADDR",
                                                        "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

[[noreturn]] void refuse(std::string_view name, std::string_view reason) {
  throw Error(Errc::bad_environment, name, reason);
}

[[noreturn]] void refuse_value(std::string_view name, std::string_view value, std::string_view wanted) {
  refuse(name, "'" + std::string(value) + "' is not " + std::string(wanted));
}

/// One look at the environment, with the checks that every variable shares.
class Variables {
 public:
  explicit Variables(const GetEnvironment& get) : get_(get) {}

  [[nodiscard]] std::optional<std::string> find(const char* name) const {
    const char* const value = get_(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }
  /// For Weft's own variables: empty means not set.
  [[nodiscard]] std::optional<std::string> setting(const char* name) const {
    std::optional<std::string> value = find(name);
    if (value.has_value() && value->empty()) value.reset();
    return value;
  }
  [[nodiscard]] std::optional<std::int32_t> number(const char* name, std::int32_t least, std::int32_t most) const {
    const std::optional<std::string> text = name[0] == 'W' && name[1] == 'E' ? setting(name) : find(name);
    if (!text.has_value()) return std::nullopt;
    std::int64_t value = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, failure] = std::from_chars(text->data(), end, value);
    if (failure != std::errc() || stop != end || value < least || value > most) {
      refuse_value(name, *text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<std::int32_t>(value);
  }

 private:
  const GetEnvironment& get_;
};

void read_settings(const Variables& variables, JobEnvironment& job) {
  if (const auto text = variables.setting("WEFT_TRANSPORT")) {
    if (*text == "verbs" || *text == "sim") {
      refuse("WEFT_TRANSPORT", "this build of Weft has no " + *text + " transport; use auto, shm or tcp");
    }
    if (*text == "auto")
      job.transport = TransportChoice::automatic;
    else if (*text == "shm")
      job.transport = TransportChoice::shm;
    else if (*text == "tcp")
      job.transport = TransportChoice::tcp;
    else
      refuse_value("WEFT_TRANSPORT", *text, "a transport (auto, shm or tcp)");
  }
  if (const auto text = variables.setting("WEFT_ORDER")) {
    if (*text != "consistent" && *text != "canonical") refuse_value("WEFT_ORDER", *text, "consistent or canonical");
    job.canonical_order = *text == "canonical";
  }
  if (const auto text = variables.setting("WEFT_TIMEOUT")) {
    double seconds = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, failure] = std::from_chars(text->data(), end, seconds);
    if (failure != std::errc() || stop != end || !std::isfinite(seconds) || seconds < 0 ||
        seconds > kMaxTimeoutSeconds) {
      refuse_value("WEFT_TIMEOUT", *text, "a number of seconds from 0 (no deadline) to 1e9");
    }
    // Rounded up: a deadline that was asked for must not turn into none.
    if (seconds > 0) job.timeout = Duration(static_cast<Duration::rep>(std::ceil(seconds * 1e9)));
  }
  if (const auto text = variables.setting("WEFT_BIND")) {
    if (*text != "core" && *text != "none") refuse_value("WEFT_BIND", *text, "core or none");
    job.bind = *text == "core" ? BindChoice::core : BindChoice::none;
  }
  if (const auto text = variables.setting("WEFT_IDLE")) {
    const std::optional<IdleMode> mode = parse_idle_mode(*text);
    if (!mode.has_value()) refuse_value("WEFT_IDLE", *text, "auto, spin, yield or block");
    job.idle = *mode;
  }
  if (const auto text = variables.setting("WEFT_LOG")) {
    if (!parse_log_level(*text).has_value()) {
      refuse_value("WEFT_LOG", *text, "trace, debug, info, warning, error or off");
    }
  }
  job.ranks_per_process = variables.number("WEFT_RANKS_PER_PROCESS", 1, kMaxWorldSize).value_or(1);
}

/// Nobody started this process as part of something larger.
void read_lone_process(const Variables& variables, JobEnvironment& job) {
  const std::int32_t ranks = variables.number("WEFT_NUM_RANKS", 1, kMaxWorldSize).value_or(1);
  if (ranks > job.ranks_per_process) {
    refuse("WEFT_NUM_RANKS", "is " + std::to_string(ranks) +
                                 ", but RANK and WORLD_SIZE are not set; start the program " +
                                 "with weftrun, or set WEFT_RANKS_PER_PROCESS=" + std::to_string(ranks) +
                                 " to run all ranks in one process");
  }
  if (variables.setting("WEFT_STORE_FD").has_value()) {
    refuse("WEFT_STORE_FD", "is set, but RANK and WORLD_SIZE are not; start the program with weftrun");
  }
  job.world_size = ranks;
  job.local_world_size = ranks;
  job.ranks_here = ranks;
}

void require(const Variables& variables, const char* name, const char* because) {
  if (!variables.find(name).has_value()) {
    refuse(name, std::string("is not set, but ") + because +
                     " is; set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none of them for a world of one");
  }
}

void read_ranks(const Variables& variables, JobEnvironment& job) {
  // Any of the variables asks for these two.
  for (const char* const name : kWorldVariables) {
    if (!variables.find(name).has_value()) continue;
    require(variables, "RANK", name);
    require(variables, "WORLD_SIZE", name);
  }
  job.world_size = *variables.number("WORLD_SIZE", 1, kMaxWorldSize);
  job.rank = *variables.number("RANK", 0, kMaxWorldSize - 1);
  const std::string world = "WORLD_SIZE=" + std::to_string(job.world_size);
  const std::string rank = std::to_string(job.rank);
  if (job.rank >= job.world_size) {
    refuse("RANK", rank + " is outside of a world with " + world + ", whose ranks are 0 to " +
                       std::to_string(job.world_size - 1));
  }
  if (const auto ranks = variables.number("WEFT_NUM_RANKS", 1, kMaxWorldSize)) {
    if (*ranks != job.world_size) refuse("WEFT_NUM_RANKS", std::to_string(*ranks) + " contradicts " + world);
  }

  const auto local_size = variables.number("LOCAL_WORLD_SIZE", 1, kMaxWorldSize);
  const auto local_rank = variables.number("LOCAL_RANK", 0, kMaxWorldSize - 1);
  if (local_size.has_value() && !local_rank.has_value()) require(variables, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  job.local_world_size = local_size.value_or(job.world_size);
  job.local_rank = local_rank.value_or(job.rank);
  if (job.local_world_size > job.world_size) {
    refuse("LOCAL_WORLD_SIZE", std::to_string(job.local_world_size) + " is more than " + world);
  }
  if (job.local_rank >= job.local_world_size) {
    refuse("LOCAL_RANK", std::to_string(job.local_rank) + " must be less than " +
                             (local_size.has_value() ? "LOCAL_WORLD_SIZE=" : "WORLD_SIZE=") +
                             std::to_string(job.local_world_size));
  }
  if (job.rank % job.ranks_per_process != 0) {
    refuse("RANK", rank + " is not the first rank of a process with WEFT_RANKS_PER_PROCESS=" +
                       std::to_string(job.ranks_per_process) + ": RANK must be a multiple of it");
  }
  job.ranks_here = std::min(job.ranks_per_process, job.world_size - job.rank);
}

void read_master(const Variables& variables, JobEnvironment& job) {
  const auto address = variables.find("MASTER_ADDR");
  const bool alone = job.ranks_here == job.world_size;
  if (!alone || address.has_value()) {
    if (!address.has_value()) require(variables, "MASTER_ADDR", "WORLD_SIZE > 1");
    if (address->empty()) refuse("MASTER_ADDR", "is empty; it must name the host of rank 0");
    job.master_address = *address;
  }
  if (!alone && !variables.find("MASTER_PORT").has_value()) require(variables, "MASTER_PORT", "WORLD_SIZE > 1");
  const std::int32_t port = variables.number("MASTER_PORT", 1, 65535).value_or(0);
  job.master_port = static_cast<std::uint16_t>(port);
  if (const auto own = variables.number("WEFT_STORE_PORT", 1, 65535)) {
    job.master_port = static_cast<std::uint16_t>(*own);
  } else if (port > 0 && variables.find("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    if (port == 65535) {
      refuse("MASTER_PORT",
             "65535 is taken by torchrun's own store and there is no port above it; set WEFT_STORE_PORT");
    }
    job.master_port = static_cast<std::uint16_t>(port + 1);
  }
}

void read_token(const Variables& variables, JobEnvironment& job) {
  const auto run_id = variables.find("TORCHELASTIC_RUN_ID");
  if (const auto digits = variables.setting("WEFT_JOB_TOKEN")) {
    const Result<JobToken> token = JobToken::from_hex(*digits);
    // The value is a secret even when it is malformed.
    if (!token) refuse("WEFT_JOB_TOKEN", token.error().what());
    job.token = *token;
    job.source = EnvironmentSource::weftrun;
    return;
  }
  job.source = run_id.has_value() ? EnvironmentSource::torchrun : EnvironmentSource::manual;
  if (job.ranks_here == job.world_size) return;
  std::string text = "run " + run_id.value_or("");
  text += "\naddress " + variables.find("MASTER_ADDR").value_or("");
  text += "\nport " + std::to_string(job.master_port);
  text += "\nrestart " + variables.find("TORCHELASTIC_RESTART_COUNT").value_or("");
  job.token = JobToken::derived(text);
}

}  // namespace

std::string_view to_string(EnvironmentSource source) noexcept {
  switch (source) {
    case EnvironmentSource::none: return "none";
    case EnvironmentSource::manual: return "manual";
    case EnvironmentSource::weftrun: return "weftrun";
    case EnvironmentSource::torchrun: return "torchrun";
  }
  return "unknown";
}

JobEnvironment read_job_environment(const GetEnvironment& get) {
  const Variables variables(get);
  JobEnvironment job;
  read_settings(variables, job);
  const bool launched = std::any_of(kWorldVariables.begin(), kWorldVariables.end(),
                                    [&](const char* name) { return variables.find(name).has_value(); });
  if (!launched) {
    for (const char* const name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
      if (variables.find(name).has_value()) require(variables, "RANK", name);
    }
    if (variables.setting("WEFT_JOB_TOKEN").has_value()) {
      // A token alone says that this process belongs to a job; which part of it, nobody says.
      require(variables, "RANK", "WEFT_JOB_TOKEN");
    }
    read_lone_process(variables, job);
    return job;
  }
  read_ranks(variables, job);
  read_master(variables, job);
  read_token(variables, job);
  if (const auto fd = variables.number("WEFT_STORE_FD", 0, 1 << 20)) {
    if (job.rank != 0) {
      refuse("WEFT_STORE_FD",
             "is set for rank " + std::to_string(job.rank) + "; only the process of rank 0 inherits it");
    }
    job.store_fd = *fd;
  }
  return job;
}

JobEnvironment read_job_environment() {
  return read_job_environment([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace weft::net
