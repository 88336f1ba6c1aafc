// Finds and ends what ranks have left behind: processes that moved to a process group or session of their own and so
// escape kill(-group). They are known by the job's token in their environment, which children inherit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace weft::net::launch {

/// The children of this process.
[[nodiscard]] std::vector<pid_t> child_processes();

/// Sends SIGKILL to every process that carries WEFT_JOB_TOKEN=`token` in its environment, and to every child of this
/// process that is not in `keep`, until none is left; adopted children are reaped. Gives up after `limit`.
///
/// A process of another user, or one that has left the group, the token and (without a subreaper) this process's
/// family, is not found. Returns whether nothing is left. Cost: one walk through /proc a pass, two where all is clean.
bool sweep_job(std::string_view token, std::span<const pid_t> keep, std::chrono::milliseconds limit);

}  // namespace weft::net::launch
