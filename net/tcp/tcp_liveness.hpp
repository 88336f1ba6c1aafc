// Finds peers whose host has vanished without a word.
//
// A dead process needs no care: its kernel resets the connection. A dead host, switch or cable is silence, and TCP by
// itself is patient for a quarter of an hour. TCP_USER_TIMEOUT would cut that short, but it also ends a connection
// whose peer is alive and has just not read for a while (a rank that computes for three seconds with a full window), so
// it cannot be used. Instead every connection that leaves this machine is looked at every 0.4 s (TCP_INFO). Keepalive
// probes make a living peer answer at least once a second, so
//
//   overdue = nothing heard for 1.05 s although an answer is due: unacknowledged data, or a probe without an answer
//   silent  = overdue at two looks in a row
//
// which takes 1.85 s at most. Two looks, because a peer that keeps its window closed is probed at growing distances:
// one look may fall between such a probe and its answer, two cannot.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/net/tcp/tcp_connection.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/timer_wheel.hpp"

namespace weft::net {

/// Thread: the reactor's. Pinned.
class TcpLiveness final : private Timer {
 public:
  explicit TcpLiveness(Reactor& reactor) noexcept : reactor_(reactor) {}
  TcpLiveness(const TcpLiveness&) = delete;
  TcpLiveness& operator=(const TcpLiveness&) = delete;
  ~TcpLiveness() { reactor_.timers().cancel(*this); }

  /// Sets the socket's keepalive and watches it from now on; nothing for a peer on this machine, which cannot vanish
  /// alone. Throws std::bad_alloc.
  void watch(TcpConnection& connection);
  void forget(TcpConnection& connection) noexcept;

  /// What the kernel says of a connection, apart from the socket so that the rule can be tested.
  struct Signs {
    std::uint32_t silent_ms = 0;       ///< since the last segment from the peer
    std::uint32_t unacknowledged = 0;  ///< segments sent and not acknowledged
    std::uint32_t probes = 0;          ///< keepalive or window probes without an answer
  };
  [[nodiscard]] static bool overdue(const Signs& signs) noexcept;

 private:
  void on_timer() noexcept override;
  void arm() noexcept;

  struct Watched {
    TcpConnection* connection;
    int overdue_looks;
  };

  Reactor& reactor_;
  std::vector<Watched> watched_;
};

}  // namespace weft::net
