// A descriptor that coroutines wait for: the one awaiter under Socket, Acceptor and connect.
#pragma once

#include <array>
#include <cstddef>

#include "weft/runtime/io_engine.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/timer_wheel.hpp"
#include "weft/runtime/unique_fd.hpp"
#include "weft/runtime/wait.hpp"

namespace weft::net {

/// Owns a non-blocking descriptor and watches it. At most one coroutine waits for each direction. Pinned.
///
/// Use: call read or write first, and wait only after EAGAIN. The engine reports on this thread, so a change between
/// the call and the wait is reported after the wait has begun.
class WatchedFd final : public IoHandler {
 public:
  /// Errors: throws Error(exhausted) naming `purpose` when the descriptor cannot be watched.
  WatchedFd(Reactor& reactor, UniqueFd fd, const char* purpose);
  WatchedFd(const WatchedFd&) = delete;
  WatchedFd& operator=(const WatchedFd&) = delete;
  ~WatchedFd() { close(); }

  enum class Direction : std::uint8_t { read = 0, write = 1 };

  /// How a wait ended.
  struct Ready {
    Errc code = Errc::ok;   ///< ok, cancelled, timed_out (the scope's deadline), closed
    bool at_limit = false;  ///< the wait's own limit passed; `code` is timed_out
  };

  class [[nodiscard]] Readiness final : public Wait, private Timer {
   public:
    Readiness(WatchedFd& owner, Direction direction, Instant limit) noexcept
        : owner_(owner), limit_(limit), direction_(direction) {}

    [[nodiscard]] bool await_ready() const noexcept { return !owner_.open(); }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      return suspend(waiting.promise());
    }
    [[nodiscard]] Ready await_resume() const noexcept {
      if (code() == Errc::ok && !owner_.open()) return Ready{Errc::closed, false};
      return Ready{code(), at_limit_};
    }

   private:
    friend class WatchedFd;
    bool suspend(PromiseBase& waiter) noexcept;
    void end(Errc code) noexcept;
    void on_timer() noexcept override;
    void on_cancel(Errc reason) noexcept override { end(reason); }

    WatchedFd& owner_;
    Instant limit_;
    Direction direction_;
    bool at_limit_ = false;
  };

  /// Waits for the next change in a direction, at most until `limit`.
  [[nodiscard]] Readiness readable(Instant limit = kNever) noexcept { return {*this, Direction::read, limit}; }
  [[nodiscard]] Readiness writable(Instant limit = kNever) noexcept { return {*this, Direction::write, limit}; }

  [[nodiscard]] bool open() const noexcept { return bool(fd_); }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] Reactor& reactor() const noexcept { return reactor_; }

  /// Stops watching and gives the descriptor up. Nobody may be waiting.
  [[nodiscard]] UniqueFd release() noexcept;
  /// Closes; whoever waits ends with Errc::closed.
  void close() noexcept;

 private:
  void on_io(IoEvents events) noexcept override;
  Readiness*& waiter(Direction direction) noexcept { return waiters_[static_cast<std::size_t>(direction)]; }

  Reactor& reactor_;
  UniqueFd fd_;
  std::array<Readiness*, 2> waiters_{};
};

}  // namespace weft::net
