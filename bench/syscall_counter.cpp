#include "syscall_counter.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

namespace bench {
namespace {

using weft::UniqueFd;

constexpr const char* kIdFile = "events/raw_syscalls/sys_enter/id";

weft::Error unsupported(const std::string& reason) {
  return {weft::Errc::unsupported, "syscalls/op", reason, weft::kNoRank, errno};
}

// The tracepoint's number in the running kernel.
std::optional<std::uint64_t> read_id(int directory) {
  const UniqueFd file(::openat(directory, kIdFile, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 32> text{};
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  std::uint64_t id = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, id).ec != std::errc()) return std::nullopt;
  return id;
}

// tracefs where it is mounted; else, for root, an instance of it that nobody else sees and that goes with its fd.
std::optional<std::uint64_t> find_id() {
  for (const char* const place : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    const UniqueFd directory(::open(place, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) continue;
    if (const auto id = read_id(directory.get())) return id;
  }
#if defined(SYS_fsopen) && defined(SYS_fsconfig) && defined(SYS_fsmount)
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context) return std::nullopt;
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return std::nullopt;
  const UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  if (!mount) return std::nullopt;
  return read_id(mount.get());
#else
  return std::nullopt;
#endif
}

}  // namespace

weft::Result<SyscallCounter> SyscallCounter::open() {
  const std::optional<std::uint64_t> id = find_id();
  if (!id.has_value()) {
    return unsupported("not counted: the kernel's tracepoint for system calls cannot be read; run as root");
  }
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = *id;
  UniqueFd event(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return unsupported(std::string("not counted: perf_event_open: ") + std::strerror(errno));
  return SyscallCounter(std::move(event));
}

std::uint64_t SyscallCounter::read() noexcept {
  std::uint64_t count = 0;
  // The call that reads has been counted when it reads.
  ++own_reads_;
  if (::read(event_.get(), &count, sizeof count) != static_cast<ssize_t>(sizeof count)) return 0;
  return count - own_reads_;
}

}  // namespace bench
