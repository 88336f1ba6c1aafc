// How two ranks of one host come to share memory: over an AF_UNIX connection that both have proven to belong to the
// job, the one that connected makes the pair's segment and sends it with its doorbell and its eventfd; the other checks
// and maps, and answers with its own doorbell and eventfd. The connection stays open: its end is the peer's end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/shm/peer_memory.hpp"
#include "weft/net/shm/shm_connection.hpp"
#include "weft/net/shm/shm_segment.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/runtime/task.hpp"

namespace weft::net {

/// This rank, as set-up needs to know it. Pinned; outlives the tasks.
struct ShmSelf {
  Reactor& reactor;
  const JobToken& token;
  std::int32_t rank;
  const SharedMemory& doorbell;
  int event_fd;
  MemoryProbe probe;
  bool read_same_process;
  bool read_other_process;
  const std::vector<ShmConnection*>& connected;  ///< by rank, as long as the world
};

/// Connects to `peer` at the abstract socket `name`. `self` outlives the task.
/// Errors: those of connect_unix and of the handshake; protocol; exhausted; unsupported when the peer cannot.
[[nodiscard]] Task<ShmLink> shm_connect(const ShmSelf* self, std::int32_t peer, std::string name);

/// The other half, for a connection that has just been accepted. A process of another user is turned away unheard.
/// Errors: as above, and unauthorized.
[[nodiscard]] Task<ShmLink> shm_accept(const ShmSelf* self, Socket socket);

}  // namespace weft::net
