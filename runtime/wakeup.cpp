#include "weft/runtime/wakeup.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "weft/runtime/error.hpp"

namespace weft {

void ring_event_fd(int event_fd) noexcept {
  const std::uint64_t one = 1;
  // EAGAIN: the counter is full, so the sleeper will wake anyway. EINTR cannot happen on a non-blocking eventfd.
  [[maybe_unused]] const ssize_t written = ::write(event_fd, &one, sizeof one);
}

void drain_event_fd(int event_fd) noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_fd, &count, sizeof count);
}

UniqueFd make_event_fd() {
  UniqueFd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) throw Error(errc_from_errno(errno), "eventfd", "cannot make a descriptor to be woken by", kNoRank, errno);
  return fd;
}

}  // namespace weft
