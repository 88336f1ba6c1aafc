// How a reactor learns about descriptors, and where it sleeps.
//
// Readiness, not completions: data moves by plain non-blocking calls, which on a busy connection are faster than a
// trip through a submission queue; the engine tells which descriptors are worth a call, and is the one place where a
// reactor blocks. Two engines keep this contract: io_uring (multishot polls: no system call while busy) and epoll
// where io_uring is refused.
//
// Thread: everything belongs to the reactor's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weft/runtime/clock.hpp"
#include "weft/runtime/error.hpp"

namespace weft {

/// What has become true of a descriptor since it was last reported.
struct IoEvents {
  bool readable = false;  ///< a read will not block: data, end of stream, or an error
  bool writable = false;  ///< a write will not block
  bool hangup = false;    ///< the other end is gone, or the descriptor has an error
};

/// Receives the events of one descriptor. Must stay in place until IoEngine::remove() has returned.
class IoHandler {
 public:
  /// Edge-triggered: reported once per change, and once right after add() for what holds then. The handler (or whoever
  /// it wakes) must call read or write until EAGAIN before it can expect another report. May call add and remove,
  /// also remove() of itself.
  virtual void on_io(IoEvents events) noexcept = 0;

 protected:
  ~IoHandler() = default;
};

/// See the top of the file.
class IoEngine {
 public:
  virtual ~IoEngine() = default;

  /// "io_uring" or "epoll".
  [[nodiscard]] virtual const char* name() const noexcept = 0;

  /// Watches a non-blocking descriptor for everything in IoEvents. One handler per descriptor.
  /// Errors: ok, or the errno in `native` (exhausted when a limit is reached).
  [[nodiscard]] virtual Outcome add(int fd, IoHandler& handler) noexcept = 0;

  /// Stops watching; no event of `fd` is delivered afterwards, also none that has already been reaped. To be called
  /// before the descriptor is closed. Nothing happens for a descriptor that is not watched.
  virtual void remove(int fd) noexcept = 0;

  /// Delivers events that are there, at most a fixed number of them, without blocking. True if it delivered any.
  virtual bool poll() noexcept = 0;

  /// Blocks until an event, a wake-up through a watched descriptor, a signal or `timeout` (Duration::max(): no limit),
  /// then delivers what is there. May return early without a reason. True if it delivered any event.
  virtual bool wait(Duration timeout) noexcept = 0;
};

/// Which engine to use.
enum class IoEngineKind : std::uint8_t {
  automatic,  ///< io_uring, or epoll where the kernel or a filter refuses it
  io_uring,   ///< io_uring or an Error
  epoll,
};

/// Makes an engine. `WEFT_IO_ENGINE=auto|io_uring|epoll` decides when `kind` is automatic.
/// `notice`, if given, receives one sentence when io_uring was refused and why.
/// Errors: throws Error(unsupported | exhausted | bad_environment).
[[nodiscard]] std::unique_ptr<IoEngine> make_io_engine(IoEngineKind kind, std::string* notice = nullptr);

}  // namespace weft
