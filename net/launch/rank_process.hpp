// Starts one process of a job: its own process group, killed when the launcher dies, with no descriptors but the ones
// it is meant to have.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/launch/descriptor.hpp"
#include "weft/runtime/result.hpp"

namespace weft::net::launch {

/// What a child that could not become the program writes to SpawnRequest::failure_fd.
struct SpawnFailure {
  std::int32_t first_rank;
  std::int32_t error_number;
};

struct SpawnRequest {
  const std::string* program;                   ///< path for execve
  const std::vector<std::string>* arguments;    ///< argv, the program's name first
  const std::vector<std::string>* environment;  ///< "NAME=value" each
  int input_fd;                                 ///< becomes 0; all of these are closed on exec here
  int output_fd;                                ///< becomes 1
  int error_fd;                                 ///< becomes 2
  int kept_fd;                                  ///< stays open under its own number; -1 for none
  int failure_fd;                               ///< write end of a pipe
  std::int32_t first_rank;
  struct rlimit descriptor_limit;  ///< RLIMIT_NOFILE of the new process
};

/// Starts the process and returns its pid, which is also its process group. The program may still fail to start: then
/// the child writes a SpawnFailure and exits with 127.
///
/// The child dies (SIGKILL) with the thread that called this. Signals have their default actions in it and none is
/// blocked; only an ignored SIGHUP stays ignored, so that nohup works. Errors: Errc::exhausted when fork fails.
[[nodiscard]] Result<pid_t> spawn_rank(const SpawnRequest& request);

/// A pipe whose both ends are closed on exec.
struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

/// Errors: Errc::exhausted when there are no descriptors left.
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace weft::net::launch
