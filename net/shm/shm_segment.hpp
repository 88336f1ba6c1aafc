// Memory that ranks of one host share: anonymous (memfd), passed by descriptor, never a name in a file system, so that
// nothing is left behind however a process ends.
//
// A receiver accepts only memory that is sealed against shrinking and has exactly the agreed size: otherwise its owner
// could cut it off later and end the receiver by SIGBUS. All pages are reserved when it is made, for the same reason.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "weft/net/shm/shm_ring.hpp"
#include "weft/runtime/unique_fd.hpp"
#include "weft/runtime/wakeup.hpp"

namespace weft::net {

/// A mapping of shared memory. Move-only; unmapped with its last owner in this process.
class SharedMemory {
 public:
  enum class Access : std::uint8_t {
    mutual,      ///< both sides write
    owner_only,  ///< receivers can only read
  };

  SharedMemory() noexcept = default;

  /// Makes `bytes` of zeroed memory (rounded up to pages by the caller). `name` is seen in /proc/PID/maps only.
  /// Errors: throws Error(exhausted) that says how much was wanted, Error(unsupported) where memfd is refused.
  [[nodiscard]] static SharedMemory create(const char* name, std::size_t bytes, Access access);

  /// Maps what a peer has sent, after checking its seals and size. A segment that this process has mapped already is
  /// not mapped again: ranks that are threads of one process use the same addresses.
  /// Errors: throws Error(protocol) for anything that create() does not make, Error(exhausted).
  [[nodiscard]] static SharedMemory open(UniqueFd fd, std::size_t bytes, Access access);

  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return mapping_ != nullptr; }

  /// The descriptor to pass on; -1 after close_fd(), and for opened memory.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The mapping stays.
  void close_fd() noexcept { fd_.reset(); }

 private:
  class Mapping;
  friend class MappingTable;
  SharedMemory(UniqueFd fd, std::shared_ptr<Mapping> mapping) noexcept;

  UniqueFd fd_;
  std::shared_ptr<Mapping> mapping_;
};

/// Which end of a pair's segment: the one that connected and made it, or the one that accepted.
enum class PairSide : std::uint8_t { connector = 0, acceptor = 1 };

/// Keeps the owner of memory from going away while the other rank, a thread of the same process, copies out of it.
/// The reader sets `reading` and then looks at `closing`; the owner sets `closing` and then waits for `reading` to
/// end. Both are sequentially consistent, so one of them sees the other.
struct ReadGuard {
  alignas(2 * kLineBytes) std::atomic<std::uint32_t> reading{0};
  alignas(2 * kLineBytes) std::atomic<std::uint32_t> closing{0};
};

/// What a connected pair shares.
struct PairSegment {
  RingControl control[2];                        ///< of the ring that side 0 (1) writes; kept by the other side
  ReadGuard guard[2];                            ///< of the memory that side 0 (1) owns
  alignas(4096) std::byte lines[2][kRingBytes];  ///< the ring that side 0 (1) writes
};
static_assert(sizeof(PairSegment) == 4096 + 2 * kRingBytes, "69632 bytes a pair");

/// What a rank shows to all its peers, read-only for them: whether its reactor sleeps.
struct Doorbell {
  alignas(4096) SleepWord sleep;
};
static_assert(sizeof(Doorbell) == 4096);

}  // namespace weft::net
