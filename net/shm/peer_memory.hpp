// Reading the memory of another rank of this host: by memcpy where it is a thread of this process, by
// process_vm_readv (cross-memory attach) where it is another process and the kernel permits it.
//
// Whether it is permitted (Yama's ptrace_scope, seccomp, user namespaces) is found out once per peer by reading a word
// that the peer has named: the right value proves both the permission and that it is the right process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/runtime/error.hpp"

namespace weft::net {

/// What a rank tells its peers so that they can try to read it. Valid while the ProbeWord lives.
struct MemoryProbe {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
  std::int32_t pid = 0;  ///< in the rank's own pid namespace
  std::uint32_t reserved = 0;
};

/// The word that peers read. Pinned.
class ProbeWord {
 public:
  /// Errors: throws Error(io) when the kernel gives no random numbers.
  ProbeWord();
  ProbeWord(const ProbeWord&) = delete;
  ProbeWord& operator=(const ProbeWord&) = delete;
  [[nodiscard]] MemoryProbe probe() const noexcept;

 private:
  std::uint64_t value_;
};

/// How to read one peer.
class PeerMemory {
 public:
  enum class Way : std::uint8_t {
    none,          ///< not permitted
    same_process,  ///< memcpy
    other_process  ///< process_vm_readv
  };

  PeerMemory() noexcept = default;
  /// Tries. `pid` is what the kernel says of the other end of the socket, in this process's pid namespace.
  [[nodiscard]] static PeerMemory probe(pid_t pid, const MemoryProbe& theirs, bool allow_other_process) noexcept;

  [[nodiscard]] Way way() const noexcept { return way_; }
  /// errno of the attempt that failed; 0 otherwise.
  [[nodiscard]] int refusal() const noexcept { return refusal_; }

  /// Copies from the peer's memory; `to.size()` bytes at most, at least one. Returns their number, or -errno.
  /// Precondition: way() is not none. With same_process the memory must be there: nothing checks it.
  [[nodiscard]] ssize_t read(std::uint64_t from, std::span<std::byte> to) const noexcept;

 private:
  Way way_ = Way::none;
  pid_t pid_ = 0;
  int refusal_ = 0;
};

}  // namespace weft::net
