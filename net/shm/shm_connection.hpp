// One connected peer: the two rings, the way to wake it, the way to read its memory, and the socket whose end tells
// that it has died. Made by set-up (shm_setup), driven by ShmTransport.
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/net/shm/peer_memory.hpp"
#include "weft/net/shm/request_queue.hpp"
#include "weft/net/shm/shm_ring.hpp"
#include "weft/net/shm/shm_segment.hpp"
#include "weft/net/transport/transport.hpp"
#include "weft/runtime/io_engine.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft::net {

/// What set-up has agreed with a peer. Move-only.
struct ShmLink {
  ShmLink() noexcept = default;

  std::int32_t peer = kNoRank;
  PairSide side = PairSide::connector;  ///< this rank's
  SharedMemory segment;                 ///< a PairSegment
  SharedMemory doorbell;                ///< the peer's Doorbell
  UniqueFd event;                       ///< the peer's eventfd
  UniqueFd socket;                      ///< stays open as long as both live
  PeerMemory memory;
};

/// See the top of the file. Pinned: the io engine holds its address. Thread: the reactor's.
class ShmConnection final : public IoHandler {
 public:
  enum class SocketState : std::uint8_t {
    open,
    ended,    ///< the peer's process has ended, or it has closed the connection
    garbage,  ///< bytes where none are ever sent
  };

  /// `attention` is set whenever something happens to the socket.
  ShmConnection(ShmLink link, bool& attention) noexcept;
  ShmConnection(const ShmConnection&) = delete;
  ShmConnection& operator=(const ShmConnection&) = delete;
  /// Waits until the peer, if it is a thread of this process, has stopped to read this rank's memory: at most the time
  /// of one piece.
  ~ShmConnection();

  [[nodiscard]] std::int32_t peer() const noexcept { return link_.peer; }
  [[nodiscard]] int socket_fd() const noexcept { return link_.socket.get(); }
  [[nodiscard]] const PeerMemory& memory() const noexcept { return link_.memory; }

  /// After a full fence behind what the peer shall see: wakes it if it sleeps.
  void wake_after_fence() const noexcept {
    if (doorbell_->sleep.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_event_fd(link_.event.get());
  }

  /// Gives all lines that were taken back to the peer, and wakes it now and then: it may sleep for want of room.
  ///
  /// Every kWakeLines lines are enough. A peer sleeps for want of room only while it sees fewer than kRingLinesForAny
  /// lines free (bulk: fewer still), hence with more than kWakeLines in use. Taking those, we get here with enough of
  /// them at least once after it went to sleep, and after the last time fewer than kWakeLines are in use: room for
  /// anything.
  void release() noexcept {
    unannounced_lines_ += in.release();
    if (unannounced_lines_ >= kWakeLines) {
      unannounced_lines_ = 0;
      wake_if_asleep(doorbell_->sleep, link_.event.get());
    }
  }

  /// Copies from the peer's memory; bytes, or -errno. -ESRCH also when the peer, a thread of this process, is leaving.
  [[nodiscard]] ssize_t read_memory(std::uint64_t from, std::span<std::byte> to) noexcept;

  /// Looks at the socket. Cost: one system call.
  [[nodiscard]] SocketState check_socket() noexcept;

  RingProducer out;
  RingConsumer in;
  RequestQueue<BulkSend> bulks;
  bool dirty = false;         ///< sent to since the last flush
  bool blocked = false;       ///< a try_send() has returned false since the last on_writable()
  bool closed = false;        ///< no more callbacks for it
  bool socket_event = false;  ///< check_socket() is due

 private:
  static constexpr std::size_t kWakeLines = kRingLines / 8;
  static_assert(kRingLines - kWakeLines >= kRingLinesForAny + kWakeLines);

  void on_io(IoEvents events) noexcept override;
  [[nodiscard]] PairSegment& segment() const noexcept { return *segment_; }

  ShmLink link_;
  PairSegment* segment_;
  const Doorbell* doorbell_;
  std::size_t unannounced_lines_ = 0;  ///< released since the peer was last looked after
  bool& attention_;
};

}  // namespace weft::net
