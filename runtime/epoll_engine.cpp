#include "weft/runtime/epoll_engine.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <new>

namespace weft {
namespace {

// Events delivered by one call: bounds the turn; what is left is reported by the next call.
constexpr int kBatch = 64;

int whole_milliseconds(Duration timeout) noexcept {
  if (timeout == Duration::max()) return -1;
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return static_cast<int>(std::clamp<std::int64_t>(rounded, 0, INT_MAX));
}

}  // namespace

EpollEngine::EpollEngine() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    const int error = errno;
    throw Error(errc_from_errno(error), "io engine", "epoll_create1 failed; a raised `ulimit -n` may help", kNoRank,
                error);
  }
}

Outcome EpollEngine::add(int fd, IoHandler& handler) noexcept {
  std::uint64_t key = 0;
  try {
    key = watches_.insert(fd, handler);
  } catch (const std::bad_alloc&) {
    return Outcome{Errc::exhausted, kNoRank, ENOMEM};
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Outcome{};
  const int error = errno;
  watches_.erase(fd);
  return Outcome{errc_from_errno(error), kNoRank, error};
}

void EpollEngine::remove(int fd) noexcept {
  if (watches_.erase(fd) == 0) return;
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
}

bool EpollEngine::poll() noexcept {
  return reap(Duration::zero());
}

bool EpollEngine::wait(Duration timeout) noexcept {
  return reap(std::max(timeout, Duration::zero()));
}

bool EpollEngine::reap(Duration timeout) noexcept {
  std::array<epoll_event, kBatch> events;
  int count = -1;
  const bool in_between = timeout != Duration::zero() && timeout != Duration::max();
#ifdef SYS_epoll_pwait2
  if (in_between && has_pwait2_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
    count = static_cast<int>(::syscall(SYS_epoll_pwait2, epoll_.get(), events.data(), kBatch, &limit, nullptr, 0));
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) has_pwait2_ = false;  // EPERM: an old seccomp filter
  }
#else
  has_pwait2_ = false;
#endif
  if (!in_between || !has_pwait2_) {
    count = ::epoll_wait(epoll_.get(), events.data(), kBatch, whole_milliseconds(timeout));
  }
  bool delivered = false;
  for (int i = 0; i < count; ++i) {  // not at all after EINTR
    IoHandler* handler = watches_.find(events[static_cast<std::size_t>(i)].data.u64);
    if (handler == nullptr) continue;
    handler->on_io(detail::events_from_poll_mask(events[static_cast<std::size_t>(i)].events));
    delivered = true;
  }
  return delivered;
}

}  // namespace weft
