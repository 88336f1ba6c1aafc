// One peer's TCP connection: packets and bulk in both directions. tcp_send.cpp and tcp_receive.cpp are the data path.
//
// Out: small packets are staged in a buffer and leave together, in one system call, when the turn ends. Bulk leaves in
// frames (a `data` header and up to kFrameBytes straight from the user's memory); staged packets go between frames.
//
// In: bytes land in a buffer, from which complete packets are delivered in bursts; the payload of a `data` packet that
// is not there yet is received straight into its destination.
//
// When to call recv: a *hot* connection is asked in every poll, which saves the detour over the io engine (an edge
// reaches the reactor only when it looks at the engine, every sixteenth turn). A connection is hot from the moment
// bytes arrive until kFruitlessPolls recv in a row found nothing, and at most kMaxHot connections of a transport are,
// so that a rank with many peers does not spend its turns asking. All others are asked when the engine reports an edge.
// Every connection is watched all the time, so nothing is missed when one turns cold or the reactor blocks: bytes that
// came after the last recv are an edge that has not been reported yet.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/protocol/wire_header.hpp"
#include "weft/net/tcp/buffer_pool.hpp"
#include "weft/net/transport/transport.hpp"
#include "weft/runtime/io_engine.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft::net {

class TcpConnection;

/// Largest payload of a small packet, and so the largest eager message. Over TCP a rendezvous costs a round trip of
/// some 10 us; a copy of 64 KiB costs about as much, so below it the copy wins.
inline constexpr std::size_t kTcpMaxPacketBytes = 64 * 1024;
/// Bulk payload behind one header. 24 bytes in 256 KiB are nothing, and a small packet that has to wait for the end of
/// a frame waits for 256 KiB: 50 us at 5 GB/s.
inline constexpr std::size_t kTcpFrameBytes = 256 * 1024;

/// What the connections of one transport share.
struct TcpShared {
  static constexpr std::size_t kBurstPackets = 16;
  static constexpr int kMaxHot = 4;

  explicit TcpShared(TransportSink& upwards) noexcept : sink(upwards) {}

  TransportSink& sink;
  BufferPool buffers;
  std::vector<TcpConnection*> active;  ///< to be looked at by the next poll(); has room for all
  std::vector<TcpConnection*> dirty;   ///< staged to since the last flush(); has room for all
  int hot = 0;                         ///< how many connections are
  std::array<IncomingPacket, kBurstPackets> burst;
};

/// Why a connection must end.
struct TcpLoss {
  Outcome outcome;
  std::string_view cause;  ///< a literal
};

/// See the top of the file. Pinned. Everything is noexcept and belongs to the reactor's thread.
class TcpConnection final : public IoHandler {
 public:
  /// `fd` is connected, proven and non-blocking. The caller has the io engine watch it.
  TcpConnection(TcpShared& shared, std::int32_t peer, UniqueFd fd, std::string name);
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;
  ~TcpConnection();

  // Sending. No callback comes from inside these.
  [[nodiscard]] bool try_send(const WireHeader& header, std::span<const std::byte> payload) noexcept;
  void send_bulk(BulkSend& bulk) noexcept;
  /// Hands what is staged to the kernel, as far as it takes it.
  void flush() noexcept;

  /// Receives, sends and reports, each within a budget. True if anything moved.
  bool poll() noexcept;
  /// Whether poll() has anything to do, now or by asking.
  [[nodiscard]] bool wants_poll() const noexcept;
  /// Whether poll() could get on without an event of the io engine.
  [[nodiscard]] bool must_not_block() const noexcept;

  /// The host of the peer does not answer any more.
  void declare_silent() noexcept;

  /// Set once the connection has failed and everything that had arrived was delivered.
  [[nodiscard]] bool lost() const noexcept { return broken_ && (input_ended_ || !readable_); }
  [[nodiscard]] const TcpLoss& loss() const noexcept { return loss_; }

  /// Takes the oldest bulk off the queue; nullptr when there is none.
  [[nodiscard]] BulkSend* take_bulk() noexcept;

  /// Sends what the kernel takes at once, then closes. Payload spans of a burst in delivery stay valid until the
  /// connection is destroyed.
  void close() noexcept;

  [[nodiscard]] bool closed() const noexcept { return !fd_; }
  [[nodiscard]] bool drained() const noexcept { return out_begin_ == out_end_; }
  [[nodiscard]] std::int32_t peer() const noexcept { return peer_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The other end's address, for messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  friend class TcpTransport;

  void on_io(IoEvents events) noexcept override;
  void activate() noexcept;

  // tcp_send.cpp
  [[nodiscard]] bool has_output() const noexcept { return out_begin_ != out_end_ || frame_left_ != 0 || bulk_waits(); }
  /// A bulk whose payload has not all been put into frames.
  [[nodiscard]] bool bulk_waits() const noexcept;
  [[nodiscard]] bool make_room(std::size_t bytes) noexcept;
  void open_frame() noexcept;
  /// One sendmsg of an unfinished frame, the staged bytes, `extra` (a header and its payload that are not staged) and,
  /// if `with_bulk`, a new frame. Gives the bytes of `extra` that were not sent.
  std::size_t send_once(std::span<const iovec> extra, bool with_bulk, std::size_t& sent_bytes) noexcept;
  bool pump(std::size_t budget) noexcept;
  bool report_sent() noexcept;
  void output_failed(int error) noexcept;

  // tcp_receive.cpp
  bool receive() noexcept;
  /// One recv. Gives the bytes, 0 when there are none (or the input has ended); `full` when it filled what it was
  /// given.
  std::size_t receive_once(bool& full) noexcept;
  void consume(std::size_t bytes) noexcept;
  void parse() noexcept;
  /// Starts, and maybe completes, a `data` packet whose header stands at in_begin_. False: nothing more to parse now.
  bool parse_data(const WireHeader& header) noexcept;
  void deliver(std::size_t& packets) noexcept;
  void make_hot() noexcept;
  void make_cold() noexcept;
  void fail(Errc code, int native, std::string_view cause) noexcept;

  TcpShared& shared_;
  UniqueFd fd_;
  std::int32_t peer_;

  // State of the socket.
  bool readable_ = true;  ///< the engine has reported an edge, or the last recv was not the last
  bool writable_ = true;  ///< the last send did not meet EAGAIN, or an edge came since
  bool hangup_ = false;   ///< the end of the stream is on its way: read until it is there
  bool hot_ = false;
  bool active_ = false;       ///< on shared_.active
  bool dirty_ = false;        ///< on shared_.dirty
  bool refused_ = false;      ///< try_send() has returned false since the last on_writable()
  bool broken_ = false;       ///< failed; loss_ says why
  bool input_ended_ = false;  ///< nothing more can be received
  int fruitless_ = 0;         ///< recv in a row that found nothing

  // Input: [in_begin_, in_end_) of in_ are bytes not yet delivered; none while bulk_left_ is not 0.
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  BufferPool::Buffer in_;
  std::byte* bulk_to_ = nullptr;
  std::size_t bulk_left_ = 0;
  WireHeader bulk_header_;

  // Output: [out_begin_, out_end_) of out_ are staged bytes.
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
  BufferPool::Buffer out_;
  // The open frame: frame_left_ bytes of its header and its frame_payload_ bytes for frame_bulk_ are still to be sent.
  std::size_t frame_left_ = 0;
  std::size_t frame_payload_ = 0;
  std::array<std::byte, kWireHeaderBytes> frame_header_{};
  BulkSend* frame_bulk_ = nullptr;
  BulkSend* bulk_front_ = nullptr;
  BulkSend** bulk_tail_ = &bulk_front_;

  TcpLoss loss_;
  std::string name_;
};

}  // namespace weft::net
