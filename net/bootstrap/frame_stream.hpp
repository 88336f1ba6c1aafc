// Frames of the store over a stream socket: one at a time in, a queue of them out.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "weft/net/bootstrap/store_core.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/task.hpp"

namespace weft::net::store {

/// Sets what a connection of the store needs: no delay for small frames, and keepalive probes, so that the connection
/// to a host that vanished without a word ends too, 15 s after its last sign of life. (A stopped process still
/// answers.)
void prepare_connection(const Socket& socket) noexcept;

/// The next frame without its length, or nothing at an orderly end of the stream. `limit` bounds what is allocated.
/// Errors: protocol (a length of 0 or beyond the limit), and those of Socket::read_exact.
[[nodiscard]] Task<std::optional<std::vector<std::byte>>> read_frame(Socket& socket, std::size_t limit);

/// Sends frames in order. push() hands a frame to the kernel at once where the socket takes it, so that a notice of a
/// failure is out before anything else runs; the rest goes out through run(), which one coroutine must execute.
///
/// Pinned; must outlive run(). Thread: the reactor's.
class FrameWriter {
 public:
  explicit FrameWriter(Socket& socket) noexcept : socket_(socket) {}
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  /// Never fails here: a broken connection shows in run(), and at the reader.
  void push(OutFrame frame);

  /// Sends what is queued until finish() and then the rest of the queue. A broken connection ends it too: it closes the
  /// socket, so that the reader learns. Errors: cancelled, timed_out.
  [[nodiscard]] Task<void> run();

  /// No more frames: run() ends when the queue is empty.
  void finish() noexcept;

  /// Waits until less than `limit` bytes are queued: what a peer that does not read can make us keep. Returns at once
  /// when the connection is broken.
  [[nodiscard]] Task<void> below(std::size_t limit);

  [[nodiscard]] bool broken() const noexcept { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] std::size_t queued_bytes() const noexcept { return queued_bytes_; }

 private:
  /// What the kernel took of `frame` without waiting.
  [[nodiscard]] std::size_t send_now(const OutFrame& frame) noexcept;

  Socket& socket_;
  std::deque<OutFrame> queue_;
  std::size_t front_sent_ = 0;  ///< bytes of the first frame that are out
  std::size_t queued_bytes_ = 0;
  bool finished_ = false;
  std::string failure_;
  Event work_;
  Event drained_;
};

}  // namespace weft::net::store
