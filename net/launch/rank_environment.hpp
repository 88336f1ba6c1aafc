// How ranks are spread over processes, and the environment each of these processes gets. This is weftrun's half of a
// contract whose other half is net/bootstrap: the process that gets RANK=r hosts the ranks r, r+1, ... up to
// WEFT_RANKS_PER_PROCESS of them, cut off at WORLD_SIZE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/runtime/result.hpp"

namespace weft::net::launch {

/// The ranks that one process hosts.
struct RankBlock {
  std::int32_t first = 0;
  std::int32_t count = 1;
};

/// Consecutive blocks of `ranks_per_process` ranks; the last one holds what is left. Both arguments are at least 1.
[[nodiscard]] std::vector<RankBlock> rank_blocks(std::int32_t ranks, std::int32_t ranks_per_process);

/// What all processes of a job have in common.
struct JobIdentity {
  std::int32_t ranks = 1;
  std::int32_t ranks_per_process = 1;
  std::uint16_t port = 0;
  std::string token;  ///< 64 hex digits
  std::vector<std::pair<std::string, std::string>> settings;
};

/// 32 random bytes from the kernel as 64 hex digits. Errors: Errc::io when the kernel gives none.
[[nodiscard]] Result<std::string> make_job_token();

/// The environment of the process that hosts `block`: `base` ("NAME=value" each) without any variable set here, and
/// then RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, WEFT_NUM_RANKS,
/// WEFT_RANKS_PER_PROCESS, WEFT_JOB_TOKEN and the job's settings. WEFT_STORE_FD is set where `store_fd` is not
/// negative, and removed otherwise.
[[nodiscard]] std::vector<std::string> rank_environment(std::span<const std::string> base, const JobIdentity& job,
                                                        RankBlock block, int store_fd);

}  // namespace weft::net::launch
