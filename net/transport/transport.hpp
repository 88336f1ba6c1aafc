// What the protocol asks of a transport, and what a transport tells the protocol.
//
// A Transport moves packets between this rank and its peers: reliable, in order per peer, each peer known by its rank
// in the world. It knows nothing of tags, matching or rendezvous; it never includes another transport. It speaks
// upwards only through TransportSink.
//
// Thread: everything here belongs to the thread of the rank's reactor. Everything is noexcept: failures are an Errc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/net/protocol/wire_header.hpp"
#include "weft/runtime/error.hpp"
#include "weft/runtime/task.hpp"

namespace weft::net {

/// A packet that has arrived. `payload` is valid only during the call that delivers it.
struct IncomingPacket {
  WireHeader header;
  std::span<const std::byte> payload;
};

/// What a transport can do, fixed when it is made.
struct TransportCapabilities {
  const char* name = "";                ///< "shm", "tcp": stands in messages and in weft-info
  std::size_t max_packet_bytes = 0;     ///< largest payload of try_send()
  std::size_t eager_limit_bytes = 0;    ///< largest message worth a copy; beyond it rendezvous is cheaper
  std::size_t eager_window_bytes = 0;   ///< what one peer may have sent and the receiver not yet taken
  bool can_get = false;                 ///< get() works, for the peers that can_get(peer) names
};

/// A read of a peer's memory, owned by the protocol and untouched by it until on_get_done().
struct GetRequest {
  GetRequest* next = nullptr;  ///< for the transport's own queue
  std::int32_t peer = kNoRank;
  std::uint64_t remote_address = 0;
  std::uint64_t remote_key = 0;
  std::span<std::byte> local;
  std::size_t done_bytes = 0;  ///< the transport's progress
  void* context = nullptr;     ///< the protocol's own
};

/// A message to be streamed in `data` packets straight out of the user's memory, owned by the protocol and untouched
/// by it until on_bulk_sent().
struct BulkSend {
  BulkSend* next = nullptr;  ///< for the transport's own queue
  std::int32_t peer = kNoRank;
  std::uint32_t receiver_slot = 0;  ///< aux of every `data` header
  std::span<const std::byte> payload;
  std::size_t sent_bytes = 0;  ///< the transport's progress; tag of the next `data` header
  void* context = nullptr;     ///< the protocol's own
};

class Transport;

/// The protocol as a transport sees it. A callback may call back into the transport (try_send, get, send_bulk) but
/// not into poll().
class TransportSink {
 public:
  /// `peer` can be sent to through `via` from now on. Called once for a connection, whichever side asked for it.
  virtual void on_connected(std::int32_t peer, Transport& via) noexcept = 0;

  /// One burst of packets of one peer, in order. Headers are decoded and checked.
  virtual void on_packets(std::int32_t peer, std::span<const IncomingPacket> packets) noexcept = 0;

  /// Where the payload of a `data` packet belongs that the transport can receive in place: header.length bytes at the
  /// result, or nullptr where the header names no live transfer or leaves its bounds (the connection must then be
  /// failed with Errc::protocol).
  virtual std::byte* bulk_destination(std::int32_t peer, const WireHeader& header) noexcept = 0;
  /// The bytes that bulk_destination() asked for are there.
  virtual void on_bulk_received(std::int32_t peer, const WireHeader& header) noexcept = 0;

  /// The transport will not touch the memory of the request again.
  virtual void on_get_done(GetRequest& request, Outcome outcome) noexcept = 0;
  virtual void on_bulk_sent(BulkSend& bulk, Outcome outcome) noexcept = 0;

  /// try_send() to `peer` returned false before and may work now.
  virtual void on_writable(std::int32_t peer) noexcept = 0;

  /// The connection is gone: all packets that had arrived were delivered before, no request of this peer is held any
  /// longer (each was given back by on_get_done / on_bulk_sent), and none will be accepted. `cause` is a literal or
  /// lives as long as the transport.
  virtual void on_peer_lost(std::int32_t peer, Outcome outcome, std::string_view cause) noexcept = 0;

 protected:
  ~TransportSink() = default;
};

/// One way to reach peers, for one rank.
class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual const TransportCapabilities& capabilities() const noexcept = 0;

  /// What a peer must know to connect; published through the bootstrap store. At most 512 printable bytes.
  [[nodiscard]] virtual std::string address() const = 0;

  /// Accepts connections until cancelled. Each stranger is turned away without effect (log only).
  virtual Task<void> serve() = 0;

  /// Connects to `peer`, whose transport of this kind published `address`, and reports it by on_connected().
  /// Only one side of a pair ever calls it.
  /// Errors: throws Error(unreachable | unauthorized | timed_out | unsupported | exhausted), wording both ends.
  virtual Task<void> connect(std::int32_t peer, std::string address) = 0;

  /// Copies header and payload towards a connected `peer`. Returns false, and later calls on_writable(), when there is
  /// no room. Never blocks. payload.size() == header.length <= max_packet_bytes.
  [[nodiscard]] virtual bool try_send(std::int32_t peer, const WireHeader& header,
                                      std::span<const std::byte> payload) noexcept = 0;

  /// Whether get() works for this connected peer: a kernel or a container may forbid it between two processes.
  [[nodiscard]] virtual bool can_get(std::int32_t peer) const noexcept = 0;

  /// Starts a read of the peer's memory (only where can_get(peer)). Done by later poll()s, in pieces that keep a turn
  /// short.
  virtual void get(GetRequest& request) noexcept = 0;

  /// Starts to stream request.payload in `data` packets. Small packets of later try_send()s may overtake the rest of
  /// it, packets sent before do not.
  virtual void send_bulk(BulkSend& bulk) noexcept = 0;

  /// Hands on what try_send() has staged; called at the end of a turn in which something was sent.
  virtual void flush() noexcept = 0;

  /// Delivers what has arrived and moves what is queued, within a bounded amount of work.
  /// Returns whether anything happened.
  virtual bool poll() noexcept = 0;

  /// Asks to be woken: after true, an arrival for this transport ends the reactor's blocking wait. False: something is
  /// there already, do not block.
  virtual bool prepare_to_block() noexcept = 0;
  /// The reactor is awake again.
  virtual void after_block() noexcept = 0;

  /// True when everything handed to try_send() has left this process's own buffers (kernel or shared memory has it).
  [[nodiscard]] virtual bool drained() const noexcept = 0;

  /// Closes the connection to `peer`, if there is one, and forgets its requests; no callback follows.
  virtual void disconnect(std::int32_t peer) noexcept = 0;
};

}  // namespace weft::net
