// A TCP connection over loopback between ranks 0 and 1, apart from Weft's own: what the socket floors run on.
#pragma once

#include <cstddef>
#include <span>

#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace bench {

/// See the top of the file. Empty on ranks above 1, and where the two cannot connect. Never blocks in the kernel: it
/// spins, which is the fastest that sockets can be. Thread: any, one at a time.
class RawSocket {
 public:
  RawSocket() = default;

  /// Collective. Whoever connects must know a random number that went from rank 0 to rank 1 through Weft.
  [[nodiscard]] static weft::Task<RawSocket> open(weft::Communicator& world);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  /// Errors of all three: throws Error(peer_lost | io | timed_out).
  void send(std::span<const std::byte> bytes);
  void receive(std::span<std::byte> bytes);
  /// Both at once, so that two ranks can exchange more than the kernel buffers.
  void exchange(std::span<const std::byte> out, std::span<std::byte> in);

 private:
  explicit RawSocket(weft::UniqueFd fd) noexcept : fd_(std::move(fd)) {}

  weft::UniqueFd fd_;
};

}  // namespace bench
