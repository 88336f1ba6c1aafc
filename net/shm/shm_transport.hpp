// The transport between ranks of one host: threads of one process or processes, in any mixture.
//
// Small packets go through a ring in shared memory (shm_ring.hpp), one per direction and connected pair: 68 KiB a pair,
// and two descriptors. A large message is read by its receiver straight out of the sender's memory, one copy; where the
// kernel forbids that, it is streamed through the ring in packets, two copies.
//
// Files: shm_transport.cpp (life and set-up), shm_datapath.cpp (packets, reads, bulk, waiting, death of a peer),
// shm_setup (two ranks meet), shm_connection (one peer), shm_ring, shm_segment, peer_memory, shm_address.
// Thread: the rank's reactor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/shm/request_queue.hpp"
#include "weft/net/shm/shm_address.hpp"
#include "weft/net/shm/shm_connection.hpp"
#include "weft/net/shm/shm_segment.hpp"
#include "weft/net/shm/shm_setup.hpp"
#include "weft/net/transport/transport.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft::net {

struct ShmOptions {
  bool read_same_process = true;   ///< large messages between threads by memcpy from the sender's buffer
  bool read_other_process = true;  ///< between processes by process_vm_readv, where the kernel permits it

  /// `WEFT_SHM_CMA=auto|off`: off forbids process_vm_readv (as a container may), so that large messages between
  /// processes go through the ring. Errors: throws Error(bad_environment) for any other value.
  [[nodiscard]] static ShmOptions from_environment();
};

/// See the top of the file. Pinned. Needs a reactor whose io engine outlives it.
class ShmTransport final : public Transport {
 public:
  /// Listens at once; peers can connect as soon as serve() runs.
  /// Lifetime: `reactor` and `sink` outlive it. World: ranks 0 to world_size - 1, this one is `rank`.
  /// Errors: throws Error(unsupported | exhausted | io).
  ShmTransport(Reactor& reactor, TransportSink& sink, const JobToken& token, std::int32_t rank, std::int32_t world_size,
               const ShmOptions& options);
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;
  /// Closes every connection without a callback; requests that it still holds are dropped.
  ~ShmTransport() override;

  [[nodiscard]] const TransportCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::string address() const override { return to_string(address_); }
  Task<void> serve() override;
  Task<void> connect(std::int32_t peer, std::string address) override;
  [[nodiscard]] bool try_send(std::int32_t peer, const WireHeader& header,
                              std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] bool can_get(std::int32_t peer) const noexcept override;
  void get(GetRequest& request) noexcept override;
  void send_bulk(BulkSend& bulk) noexcept override;
  void flush() noexcept override;
  bool poll() noexcept override;
  bool prepare_to_block() noexcept override;
  void after_block() noexcept override;
  /// Always: shared memory has what try_send() took, and outlives this process.
  [[nodiscard]] bool drained() const noexcept override { return true; }
  void disconnect(std::int32_t peer) noexcept override;

 private:
  /// Empties the eventfd that peers ring.
  class EventHandler final : public IoHandler {
   public:
    explicit EventHandler(int event_fd) noexcept : event_fd_(event_fd) {}
    void on_io(IoEvents events) noexcept override {
      if (events.readable) drain_event_fd(event_fd_);
    }

   private:
    int event_fd_;
  };

  /// More would let one peer keep the others waiting; fewer would make the burst's fixed costs visible.
  static constexpr std::size_t kBurstPackets = 16;

  // shm_transport.cpp
  static Task<void> accept_all(Nursery& nursery, ShmTransport* self);
  static Task<void> accept_one(ShmTransport* self, Socket socket);
  void turned_away(const Error& error) const noexcept;
  void adopt(ShmLink link);
  void reap() noexcept;

  // shm_datapath.cpp
  [[nodiscard]] ShmConnection* connection(std::int32_t peer) const noexcept {
    return by_peer_[static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] Doorbell& doorbell() const noexcept { return *reinterpret_cast<Doorbell*>(doorbell_.data()); }
  [[nodiscard]] RingTake receive(ShmConnection& connection, std::size_t& packets) noexcept;
  void drain(ShmConnection& connection) noexcept;
  void mark_dirty(ShmConnection& connection) noexcept;
  [[nodiscard]] bool move_gets() noexcept;
  [[nodiscard]] bool move_out(ShmConnection& connection) noexcept;
  [[nodiscard]] static bool can_move_out(ShmConnection& connection) noexcept;
  [[nodiscard]] bool finish_orphans() noexcept;
  void look_at_sockets() noexcept;
  void lose(ShmConnection& connection, Outcome outcome, std::string_view cause) noexcept;
  void close(ShmConnection& connection) noexcept;

  Reactor& reactor_;
  TransportSink& sink_;
  JobToken token_;
  TransportCapabilities capabilities_;
  ShmAddress address_;
  UniqueFd listener_;
  SharedMemory doorbell_;
  UniqueFd event_fd_;
  EventHandler event_handler_;
  ProbeWord probe_word_;
  std::vector<ShmConnection*> by_peer_;  ///< null: not connected
  ShmSelf self_;

  std::vector<std::unique_ptr<ShmConnection>> connections_;
  std::vector<ShmConnection*> dirty_;  ///< sent to since the last flush; has room for all
  RequestQueue<GetRequest> gets_;
  RequestQueue<BulkSend> orphan_bulks_;  ///< towards peers that are gone; given back by the next poll()
  std::size_t waiting_for_room_ = 0;     ///< connections that are blocked or have bulks
  std::size_t closed_ = 0;               ///< connections that await reap()
  bool attention_ = false;               ///< a socket has something to say
  bool polling_ = false;
  std::array<IncomingPacket, kBurstPackets> burst_;
};

}  // namespace weft::net
