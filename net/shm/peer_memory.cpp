#include "weft/net/shm/peer_memory.hpp"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::net {

ProbeWord::ProbeWord() : value_(0) {
  if (::getrandom(&value_, sizeof value_, 0) != static_cast<ssize_t>(sizeof value_)) {
    throw Error(Errc::io, "shm transport", "the kernel gives no random numbers", kNoRank, errno);
  }
}

MemoryProbe ProbeWord::probe() const noexcept {
  MemoryProbe probe;
  probe.address = reinterpret_cast<std::uintptr_t>(&value_);
  probe.value = value_;
  probe.pid = ::getpid();
  return probe;
}

PeerMemory PeerMemory::probe(pid_t pid, const MemoryProbe& theirs, bool allow_other_process) noexcept {
  PeerMemory memory;
  // Both the kernel and the peer say that it is this process. (A socket that was inherited through fork() keeps the
  // pid of its maker; the peer knows better.)
  if (pid == ::getpid() && theirs.pid == pid) {
    memory.way_ = Way::same_process;
    memory.pid_ = pid;
    return memory;
  }
  if (!allow_other_process) return memory;
  // The kernel shows pid 0 for a process that this pid namespace does not contain.
  const pid_t reachable = pid == ::getpid() ? theirs.pid : pid;
  memory.refusal_ = ESRCH;
  if (reachable <= 0) return memory;
  memory.pid_ = reachable;
  memory.way_ = Way::other_process;
  std::uint64_t value = 0;
  const ssize_t got = memory.read(theirs.address, std::as_writable_bytes(std::span(&value, 1)));
  if (got == static_cast<ssize_t>(sizeof value) && value == theirs.value) {
    memory.refusal_ = 0;
    return memory;
  }
  memory.way_ = Way::none;
  memory.refusal_ = got < 0 ? static_cast<int>(-got) : EFAULT;
  return memory;
}

ssize_t PeerMemory::read(std::uint64_t from, std::span<std::byte> to) const noexcept {
  void* const remote_address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(from));
  if (way_ == Way::same_process) {
    std::memcpy(to.data(), remote_address, to.size());
    return static_cast<ssize_t>(to.size());
  }
  const iovec local{to.data(), to.size()};
  const iovec remote{remote_address, to.size()};
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return got < 0 ? -errno : got;
}

}  // namespace weft::net
