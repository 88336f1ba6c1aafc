// What the launcher told this process about its job, and what the user set: environment variables in, a checked
// JobEnvironment or a worded refusal out.
//
//   who and where   RANK WORLD_SIZE MASTER_ADDR MASTER_PORT, LOCAL_RANK LOCAL_WORLD_SIZE  (weftrun, torchrun, by hand)
//   weftrun adds    WEFT_JOB_TOKEN WEFT_STORE_FD WEFT_RANKS_PER_PROCESS WEFT_NUM_RANKS
//   torchrun adds   TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT TORCHELASTIC_USE_AGENT_STORE
//   settings        WEFT_TRANSPORT WEFT_ORDER WEFT_TIMEOUT WEFT_BIND WEFT_IDLE WEFT_LOG WEFT_STORE_PORT
//
// None of the variables of the first line set: a world of one, or as many ranks as WEFT_NUM_RANKS says if one process
// may hold them. Some set, but not those that are needed, or against each other: an error, never a world of one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/idle_policy.hpp"

namespace weft::net {

/// Ranks of the largest world: a slip in WORLD_SIZE must not ask for gigabytes of tables.
inline constexpr std::int32_t kMaxWorldSize = 65536;

enum class TransportChoice : std::uint8_t { automatic, shm, tcp };

enum class BindChoice : std::uint8_t {
  automatic,  ///< to a core each, where every local rank can have one
  core,
  none,
};

/// Who started this process.
enum class EnvironmentSource : std::uint8_t {
  none,    ///< nobody: all ranks of the world live in this process
  manual,  ///< RANK and the others, set by hand or by a launcher that Weft does not know
  weftrun,
  torchrun,
};

[[nodiscard]] std::string_view to_string(EnvironmentSource source) noexcept;

struct JobEnvironment {
  EnvironmentSource source = EnvironmentSource::none;
  std::int32_t rank = 0;  ///< the first rank of this process
  std::int32_t world_size = 1;
  /// Where the launcher does not say: as if all ranks ran on this host, which never spins too much.
  std::int32_t local_rank = 0;
  std::int32_t local_world_size = 1;
  std::int32_t ranks_per_process = 1;  ///< as set; ranks_here is what this process really hosts
  std::int32_t ranks_here = 1;         ///< this process hosts rank, rank + 1, ... rank + ranks_here - 1
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 0;  ///< 0, any free port, only where this process hosts the whole world
  int store_fd = -1;              ///< rank 0: the listening socket it has inherited, or -1
  JobToken token = JobToken::random();

  TransportChoice transport = TransportChoice::automatic;
  bool canonical_order = false;
  Duration timeout = Duration::max();  ///< of each operation; Duration::max() means none
  BindChoice bind = BindChoice::automatic;
  IdleMode idle = IdleMode::automatic;
};

/// What getenv does: the value of a variable, or null.
using GetEnvironment = std::function<const char*(const char* name)>;

/// Reads and checks all of the above. WEFT_ variables that are set to the empty text count as not set, the others do
/// not.
///
/// Without WEFT_JOB_TOKEN the token is derived from torchrun's run id, MASTER_ADDR, MASTER_PORT and the restart count:
/// it keeps jobs apart, but is no secret (JobToken::derived). A process that hosts the whole world makes a random one.
/// Where torchrun's agent has a store of its own on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True), Weft's store takes
/// the port above it; WEFT_STORE_PORT names another one.
///
/// Errors: throws Error(bad_environment); operation() is the variable, what() has its value and what is expected.
[[nodiscard]] JobEnvironment read_job_environment(const GetEnvironment& get);

/// The same from this process's environment.
[[nodiscard]] JobEnvironment read_job_environment();

}  // namespace weft::net
