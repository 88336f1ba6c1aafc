// Messenger: the protocol of one rank. It turns sends and receives into packets, and packets into completed requests.
//
// A message goes eager (header and payload in one packet) when it is small and the receiver has granted window for it,
// else by rendezvous: RTS, then the receiver either reads the sender's memory (get) and says FIN, or says CTS and the
// sender streams data packets out of its buffer.
//
// Flow control. Each side may have eager_window_bytes of eager messages at the other that no receive has taken yet.
// Without window a send of any size goes by rendezvous: its RTS costs the receiver a fixed few dozen bytes, and the
// sender's own task is what waits. So the receiver's memory is bounded by the windows plus one RTS per waiting task,
// and nothing ever waits for credit alone: no deadlock can come from it.
//
// Order. Everything towards one peer leaves through one queue in the order in which it was started; only control
// packets, which no receive matches, go ahead.
//
// Files: messenger.cpp (peers, queues, dispatch), eager.cpp, rendezvous.cpp, peer_failure.cpp.
// Thread: the rank's reactor.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/match/tag_matcher.hpp"
#include "weft/net/protocol/peer.hpp"
#include "weft/net/protocol/request.hpp"
#include "weft/net/protocol/slot_table.hpp"
#include "weft/net/transport/transport.hpp"

namespace weft::net {

/// Each communicator has two contexts: an even one for its users' messages, the odd one above it for its collectives,
/// so that neither ever matches the other's receives.
[[nodiscard]] constexpr bool is_collective(std::uint32_t context) noexcept { return (context & 1) != 0; }

/// The 32 bits that came beside the tag of a message that waits.
[[nodiscard]] std::uint32_t note_of(const UnexpectedMessage& message) noexcept;

/// What the messenger asks of the one who knows how to reach peers (the Fabric).
class Connector {
 public:
  /// Connect to `peer`; the answer is on_connected() by a transport, or Messenger::peer_ended().
  virtual void request_connection(std::int32_t peer) noexcept = 0;
  /// `peer` has left or is lost, for whichever reason came first. Called once per peer.
  virtual void on_peer_ended(std::int32_t peer) noexcept = 0;
  /// A send to `peer` is being taken back, under this name; ask still_withdrawing() when the answer is overdue.
  virtual void on_withdrawing(std::int32_t peer, std::uint32_t slot) noexcept = 0;
  /// A message of a collective came before its receive: the one chance to see that two ranks are in different ones.
  virtual void on_early_collective(std::int32_t peer, const WireHeader& header, std::uint32_t note) noexcept = 0;

 protected:
  ~Connector() = default;
};

/// Counted costs, for tests and weft-info.
struct MessengerCounters {
  std::uint64_t eager_sent = 0;
  std::uint64_t rendezvous_sent = 0;
  std::uint64_t received = 0;
  std::uint64_t credit_packets = 0;
};

/// See the top of the file. Pinned.
class Messenger final : public TransportSink {
 public:
  Messenger(std::int32_t self, std::int32_t world_size, Connector& connector);
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  ~Messenger();

  /// Starts a request; it may be done when this returns. The request stays in place until on_request_done().
  void start_send(SendRequest& request) noexcept;
  void start_recv(RecvRequest& request) noexcept;

  /// Asks a request that is not done to end with `outcome`. It may be done when this returns, or later, or it may end
  /// with its value because it can no longer be stopped.
  void cancel_send(SendRequest& request, Outcome outcome) noexcept;
  void cancel_recv(RecvRequest& request, Outcome outcome) noexcept;
  /// The receiver has not answered yet whether it lets this send go.
  [[nodiscard]] bool still_withdrawing(std::uint32_t slot) const noexcept;

  /// News from elsewhere than a transport (the store, a failed connect): `peer` is gone, for `outcome`. Everything that
  /// needs it fails; a connection that still stands is closed. A second report changes nothing.
  void peer_ended(std::int32_t peer, PeerState how, Outcome outcome, std::string_view cause) noexcept;

  /// Fails everything in `context` that can still be stopped: receives that wait, sends nobody has matched.
  void fail_context(std::uint32_t context, Outcome outcome) noexcept;

  /// Forgets what nobody has received in `context`, whose communicator is gone here, and tells the senders that wait:
  /// `why` blames the member because of which it was given up, and is ok where nobody is to blame.
  void drop_context(std::uint32_t context, Outcome why) noexcept;

  /// Sends a goodbye to every connected peer: this rank leaves with `code`, and `at_fault` (or kNoRank) is why.
  void say_goodbye(Errc code, std::int32_t at_fault) noexcept;
  /// Peers that have a connection and have not said goodbye themselves.
  [[nodiscard]] bool any_connected() const noexcept;

  /// True when nothing waits to be handed to a transport.
  [[nodiscard]] bool idle() const noexcept;

  /// What has become of a rank that an Outcome blames: "is lost: its connection was reset", "has left: ...", or who
  /// says so where this rank has not seen it itself.
  [[nodiscard]] std::string describe_end(std::int32_t rank) const;

  [[nodiscard]] PeerState peer_state(std::int32_t peer) const noexcept { return peers_[index(peer)].state; }
  [[nodiscard]] const Peer& peer(std::int32_t peer) const noexcept { return peers_[index(peer)]; }
  [[nodiscard]] TagMatcher& matcher() noexcept { return matcher_; }
  [[nodiscard]] const MessengerCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::int32_t self() const noexcept { return self_; }
  [[nodiscard]] std::int32_t world_size() const noexcept { return static_cast<std::int32_t>(peers_.size()); }

  // TransportSink
  void on_connected(std::int32_t peer, Transport& via) noexcept override;
  void on_packets(std::int32_t peer, std::span<const IncomingPacket> packets) noexcept override;
  std::byte* bulk_destination(std::int32_t peer, const WireHeader& header) noexcept override;
  void on_bulk_received(std::int32_t peer, const WireHeader& header) noexcept override;
  void on_get_done(GetRequest& get, Outcome outcome) noexcept override;
  void on_bulk_sent(BulkSend& bulk, Outcome outcome) noexcept override;
  void on_writable(std::int32_t peer) noexcept override;
  void on_peer_lost(std::int32_t peer, Outcome outcome, std::string_view cause) noexcept override;

 private:
  /// How a receiver is done, in the tag of a `fin`: the Errc, and above it the rank at fault + 1, or 0.
  [[nodiscard]] static std::uint64_t fin_verdict(Outcome outcome) noexcept {
    return static_cast<std::uint64_t>(outcome.code) | static_cast<std::uint64_t>(outcome.peer + 1) << 8;
  }
  [[nodiscard]] Outcome outcome_of_fin(std::int32_t rank, std::uint64_t verdict) const noexcept;

  [[nodiscard]] static std::size_t index(std::int32_t peer) noexcept { return static_cast<std::size_t>(peer); }

  // messenger.cpp
  [[nodiscard]] bool try_start(Peer& peer, SendRequest& request) noexcept;
  void drain(std::int32_t rank) noexcept;
  void send_control(std::int32_t rank, const WireHeader& header, const CtsPayload* cts = nullptr) noexcept;
  void dispatch(std::int32_t rank, const IncomingPacket& packet) noexcept;
  static void finish(SendRequest& request, Outcome outcome) noexcept;
  static void finish(RecvRequest& request, Outcome outcome) noexcept;
  static void finish_receive(PostedReceive& receive, Outcome outcome) noexcept {
    finish(static_cast<RecvRequest&>(receive), outcome);
  }

  // eager.cpp
  [[nodiscard]] bool fits_eager(const Peer& peer, std::size_t bytes) const noexcept;
  [[nodiscard]] bool try_send_eager(Peer& peer, SendRequest& request) noexcept;
  void receive_eager(RecvRequest& request, std::int32_t source, const WireHeader& header,
                     std::span<const std::byte> payload) noexcept;
  void give_window_back(std::int32_t rank, std::size_t payload_bytes) noexcept;
  void on_eager(std::int32_t rank, const IncomingPacket& packet) noexcept;

  // rendezvous.cpp
  [[nodiscard]] bool try_send_rts(Peer& peer, SendRequest& request) noexcept;
  void accept_rts(RecvRequest& request, std::int32_t source, const WireHeader& header,
                  std::span<const std::byte> payload) noexcept;
  void on_rts(std::int32_t rank, const IncomingPacket& packet) noexcept;
  void on_cts(std::int32_t rank, const IncomingPacket& packet) noexcept;
  void on_data(std::int32_t rank, const IncomingPacket& packet) noexcept;
  void on_fin(std::int32_t rank, const WireHeader& header) noexcept;
  void on_rts_cancel(std::int32_t rank, const WireHeader& header) noexcept;
  void on_rts_gone(std::int32_t rank, const WireHeader& header) noexcept;
  void finish_transfer(RecvRequest& request, Outcome outcome) noexcept;
  [[nodiscard]] RecvRequest* receiving(std::int32_t rank, const WireHeader& header) noexcept;
  [[nodiscard]] SendRequest* offered(std::int32_t rank, std::uint32_t slot) noexcept;

  // peer_failure.cpp
  void on_goodbye(std::int32_t rank, const WireHeader& header) noexcept;
  void end_peer(std::int32_t rank, PeerState how, Outcome outcome, std::string_view cause) noexcept;
  void fail_waiting(std::int32_t rank, Outcome outcome) noexcept;
  void fail_offered(std::int32_t rank, Outcome outcome) noexcept;
  void fail_transfers(std::int32_t rank, Outcome outcome) noexcept;
  void fail_orphaned_wildcards() noexcept;

  std::int32_t self_;
  Connector& connector_;
  std::deque<Peer> peers_;  ///< by rank in the world; a deque because a Peer is pinned
  TagMatcher matcher_;
  SlotTable<SendRequest> sends_;    ///< offered, withdrawing, streaming
  SlotTable<RecvRequest> receives_; ///< receiving
  SlotTable<RecvRequest> reads_;    ///< reading
  MessengerCounters counters_;
  std::optional<WireHeader> goodbye_;  ///< once it has been said: who connects later hears it first
};

}  // namespace weft::net
