#include "weft/net/socket/watched_fd.hpp"

#include <fcntl.h>

#include <cerrno>

namespace weft::net {

WatchedFd::WatchedFd(Reactor& reactor, UniqueFd fd, const char* purpose) : reactor_(reactor), fd_(std::move(fd)) {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK);
  const Outcome added = reactor_.io().add(fd_.get(), *this);
  if (!added.ok()) {
    throw Error(added.code, purpose, "the io engine cannot watch another descriptor", kNoRank, added.native);
  }
}

UniqueFd WatchedFd::release() noexcept {
  WEFT_ASSERT(waiters_[0] == nullptr && waiters_[1] == nullptr, "a socket was released while a task waits for it");
  if (fd_) reactor_.io().remove(fd_.get());
  return std::move(fd_);
}

void WatchedFd::close() noexcept {
  if (!fd_) return;
  reactor_.io().remove(fd_.get());
  fd_.reset();
  for (Readiness* waiter : waiters_) {
    if (waiter != nullptr) waiter->end(Errc::closed);
  }
}

void WatchedFd::on_io(IoEvents events) noexcept {
  // complete() resumes nobody here, so neither pointer can be stale for the second test.
  if (events.readable && waiter(Direction::read) != nullptr) waiter(Direction::read)->end(Errc::ok);
  if (events.writable && waiter(Direction::write) != nullptr) waiter(Direction::write)->end(Errc::ok);
}

bool WatchedFd::Readiness::suspend(PromiseBase& waiter) noexcept {
  Readiness*& slot = owner_.waiter(direction_);
  WEFT_ASSERT(slot == nullptr, "two tasks wait for one direction of a socket");
  if (!begin(waiter)) return false;
  slot = this;
  if (limit_ != kNever) owner_.reactor_.timers().arm(*this, limit_);
  return true;
}

void WatchedFd::Readiness::end(Errc code) noexcept {
  owner_.waiter(direction_) = nullptr;
  owner_.reactor_.timers().cancel(*this);
  complete(code);
}

void WatchedFd::Readiness::on_timer() noexcept {
  at_limit_ = true;
  end(Errc::timed_out);
}

}  // namespace weft::net
