// The floors: the least that hardware or kernel takes for what a benchmark does, measured between the same two cores,
// in the same processes, in the same run.
//
// A floor blocks its rank's thread: it spins, with no coroutine and no reactor in between. So all ranks start it
// together, with nothing of Weft's in flight.
#pragma once

#include <cstddef>
#include <memory>

#include "raw_socket.hpp"
#include "shared_arena.hpp"
#include "statistics.hpp"
#include "weft/net/message.hpp"

namespace bench {

/// One floor at one size. All ranks have one; those that have no part in it return at once.
class Floor {
 public:
  virtual ~Floor() = default;
  /// What it is, for the table: "one cache line to and fro".
  [[nodiscard]] virtual const char* what() const noexcept = 0;
  /// `grains` times `batch` operations. Samples, one a grain, on rank 0, and elsewhere where it makes sense.
  /// Errors: throws Error(timed_out | peer_lost) when the other rank does not play.
  virtual void run(std::size_t grains, std::size_t batch, Samples* samples) = 0;
};

/// Ranks 0 and 1. One way: half of the time until an answer has come back. Up to 56 bytes travel in the cache line of
/// the flag; more lies in shared memory, and whoever sees the flag copies it out. Precondition: the arena has room for
/// twice `bytes`.
[[nodiscard]] std::unique_ptr<Floor> memory_ping_pong(SharedArena& arena, weft::Rank rank, std::size_t bytes);

/// A cache line that crosses in less than this (microseconds, one way) has not left a core: two cores take 0.14 and
/// more.
inline constexpr double kSharedCoreUs = 0.08;
inline constexpr const char* kSharedCoreNote =
    "ranks 0 and 1 seem to share one core (a cache line is too fast): do not compare with other runs";

/// Rank 0 alone: memcpy from one private buffer into another one.
[[nodiscard]] std::unique_ptr<Floor> memory_copy(weft::Rank rank, std::size_t bytes);

/// Ranks 0 and 1: cells of one cache line each, written by rank 0 and read by rank 1 in order; a grain ends when rank 1
/// has said that it has seen them all. Precondition: the arena has room for `batch` cells.
[[nodiscard]] std::unique_ptr<Floor> memory_cells(SharedArena& arena, weft::Rank rank);

/// All ranks: each sums its part of everybody's f32 and stores it to everybody, flags before and after. Up to 4 KiB
/// each rank sums everything for itself, and one round of flags is enough. Precondition: the arena has room for 2 *
/// ranks buffers.
[[nodiscard]] std::unique_ptr<Floor> memory_sum(SharedArena& arena, weft::Rank rank, weft::Rank ranks,
                                                std::size_t bytes);

/// Ranks 0 and 1, spinning sockets on loopback. One way.
[[nodiscard]] std::unique_ptr<Floor> socket_ping_pong(RawSocket& socket, weft::Rank rank, std::size_t bytes);

/// Ranks 0 and 1: a grain is one stream of batch * bytes, in calls as large as the kernel takes, and one byte back.
[[nodiscard]] std::unique_ptr<Floor> socket_stream(RawSocket& socket, weft::Rank rank, std::size_t bytes);

/// Ranks 0 and 1 send each other `bytes` at the same time: what an all_reduce of two ranks cannot avoid.
[[nodiscard]] std::unique_ptr<Floor> socket_exchange(RawSocket& socket, weft::Rank rank, std::size_t bytes);

}  // namespace bench
