// The transport over TCP: between hosts, and wherever shared memory is not wanted.
//
// Files: tcp_transport (life, set-up, the turn), tcp_connection (one peer; tcp_send and tcp_receive are its data path),
// tcp_address (where to listen), buffer_pool, tcp_liveness (silent peers).
//
// Lost peers: a process that dies closes its sockets, and its kernel says so at once. A host that vanishes says
// nothing; TcpLiveness finds that in less than 2 s. Thread: the rank's reactor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/net/tcp/tcp_connection.hpp"
#include "weft/net/tcp/tcp_liveness.hpp"
#include "weft/net/transport/transport.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft::net {

/// See the top of the file. Pinned.
class TcpTransport final : public Transport {
 public:
  /// Listens on a free port of `host`, a numeric address of this machine (see tcp_local_host); peers can connect as
  /// soon as serve() runs. World: ranks 0 to world_size - 1, this one is `rank`.
  /// Lifetime: `reactor` and `sink` outlive it.
  /// Errors: throws Error(unreachable | exhausted | io).
  TcpTransport(Reactor& reactor, TransportSink& sink, const JobToken& token, std::int32_t rank, std::int32_t world_size,
               const std::string& host);
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  /// Closes every connection without a callback; requests that it still holds are dropped.
  ~TcpTransport() override;

  [[nodiscard]] const TransportCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::string address() const override { return address_; }
  Task<void> serve() override;
  Task<void> connect(std::int32_t peer, std::string address) override;
  [[nodiscard]] bool try_send(std::int32_t peer, const WireHeader& header,
                              std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] bool can_get(std::int32_t /*peer*/) const noexcept override { return false; }
  /// Never called: can_get() is false.
  void get(GetRequest& request) noexcept override;
  void send_bulk(BulkSend& bulk) noexcept override;
  void flush() noexcept override;
  bool poll() noexcept override;
  bool prepare_to_block() noexcept override;
  void after_block() noexcept override {}
  [[nodiscard]] bool drained() const noexcept override;
  void disconnect(std::int32_t peer) noexcept override;

 private:
  static Task<void> accept_all(Nursery& nursery, TcpTransport* self);
  static Task<void> accept_one(TcpTransport* self, Socket socket);
  void adopt(std::int32_t peer, Socket socket);
  void lose(TcpConnection& connection) noexcept;
  void close(TcpConnection& connection) noexcept;
  void reap() noexcept;
  [[nodiscard]] TcpConnection* connection(std::int32_t peer) const noexcept {
    return by_peer_[static_cast<std::size_t>(peer)];
  }

  Reactor& reactor_;
  TransportSink& sink_;
  JobToken token_;
  std::int32_t rank_;
  TransportCapabilities capabilities_;
  UniqueFd listener_;
  std::string address_;
  TcpShared shared_;
  std::vector<TcpConnection*> by_peer_;  ///< null: not connected
  std::vector<std::unique_ptr<TcpConnection>> connections_;
  TcpLiveness liveness_;
  BulkSend* orphans_ = nullptr;  ///< towards peers that are gone; given back by the next poll()
  std::size_t closed_ = 0;       ///< connections that await reap()
  bool polling_ = false;
};

}  // namespace weft::net
