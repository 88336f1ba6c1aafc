// Stream sockets for coroutines: bootstrap, handshakes, and the set-up of transports. Not the data path: transports
// take the descriptor with release() when a connection is proven and register their own IoHandler.
//
// Thread: the reactor's. All operations honour the cancel scope and deadline of the awaiting coroutine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/runtime/reactor.hpp"
#include "weft/runtime/unique_fd.hpp"
#include "weft/runtime/wait.hpp"

namespace weft::net {

/// A connected stream socket (TCP or AF_UNIX). Move-only. At most one reader and one writer wait at a time. A task that
/// was started on a socket stays valid when the socket is moved, and ends with Errc::closed when it is destroyed.
class Socket {
 public:
  Socket() noexcept;
  /// Takes a connected descriptor over, makes it non-blocking and watches it. `peer` names the other end in messages.
  /// Errors: throws Error(exhausted).
  Socket(Reactor& reactor, UniqueFd fd, std::string peer);
  Socket(Socket&& other) noexcept = default;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Fills `bytes`. Errors: peer_closed (end of stream before the first byte), peer_lost (in the middle, or reset),
  /// io, cancelled, timed_out. `bytes` must live until the task is done.
  [[nodiscard]] Task<void> read_exact(std::span<std::byte> bytes);
  /// Reads what there is, at least one byte; 0 at the end of the stream.
  [[nodiscard]] Task<std::size_t> read_some(std::span<std::byte> bytes);
  /// Hands all of `bytes` to the kernel. Never raises SIGPIPE.
  [[nodiscard]] Task<void> write_all(std::span<const std::byte> bytes);

  /// AF_UNIX only: sends at least one byte together with descriptors (SCM_RIGHTS, at most 8), which stay the caller's.
  [[nodiscard]] Task<void> write_with_fds(std::span<const std::byte> bytes, std::span<const int> fds);
  /// AF_UNIX only: fills `bytes` and appends the descriptors that came with them (close-on-exec) to `fds`.
  /// Errors: as read_exact; protocol when more than `max_fds` came (they are closed).
  [[nodiscard]] Task<void> read_with_fds(std::span<std::byte> bytes, std::vector<UniqueFd>& fds, std::size_t max_fds);

  [[nodiscard]] const std::string& peer() const noexcept;
  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] bool open() const noexcept { return fd() >= 0; }

  /// Stops watching and gives the descriptor up. Nobody may be waiting.
  [[nodiscard]] UniqueFd release() noexcept;
  /// Closes. Waiting coroutines end with Errc::closed.
  void close() noexcept;

 private:
  friend class SocketTasks;
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the tasks in flight
};

/// A listening socket.
class Acceptor {
 public:
  /// Takes a listening descriptor over. Errors: throws Error(exhausted).
  Acceptor(Reactor& reactor, UniqueFd fd);
  Acceptor(Acceptor&& other) noexcept = default;
  Acceptor& operator=(Acceptor&& other) noexcept;
  ~Acceptor();

  /// The next connection. Failures of one connection (aborted before it was accepted) are skipped; running out of
  /// descriptors pauses instead of spinning, and is logged once. Errors: cancelled, timed_out, closed, io.
  [[nodiscard]] Task<Socket> accept();

  [[nodiscard]] int fd() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the task in flight
};

/// Listens on `host`:`port` (numeric or a name; empty: all addresses, IPv6 with IPv4 where there is IPv6).
/// SO_REUSEADDR is set, SO_REUSEPORT is not: a taken port is an error. Port 0 takes a free one.
/// Errors: throws Error(address_in_use | unreachable | io) that names host and port.
[[nodiscard]] UniqueFd listen_tcp(const std::string& host, std::uint16_t port);

/// The port a socket is bound to.
[[nodiscard]] std::uint16_t local_port(int fd);

/// Listens on an AF_UNIX socket in the abstract namespace; `name` without the leading zero byte.
[[nodiscard]] UniqueFd listen_unix(std::string_view name);

/// Connects to the first address of `host` that answers, each tried in turn (IPv6 and IPv4), refused ones again with
/// growing pauses (10 ms, doubled up to 500 ms) until `deadline`; TCP_NODELAY is set.
/// The name is resolved by getaddrinfo, which blocks: for set-up only.
/// Errors: throws Error(unreachable) listing each address with its reason; timed_out, cancelled.
[[nodiscard]] Task<Socket> connect_tcp(Reactor& reactor, std::string host, std::uint16_t port, Instant deadline);

[[nodiscard]] Task<Socket> connect_unix(Reactor& reactor, std::string name);

}  // namespace weft::net
