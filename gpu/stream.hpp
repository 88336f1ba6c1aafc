// StreamLike: what the layers above need of a stream, and no more.
//
// A stream is a queue of work that runs in order, asynchronously to the thread that enqueues and independently of other
// streams: the semantics of a CUDA stream. HostStream is one on a worker thread. How work is launched is the engine's
// own business (a closure on the host, a kernel on a GPU), so it is not part of the concept.
//
//   copy(to, from)            copies bytes when the stream gets there
//   write_value(flag, v)      stores v into the flag after all earlier work, visible to everybody
//   wait_value(flag, v)       later work runs after the flag has reached v
//   record(event), wait(event)   later work of the waiting stream runs after what preceded the last record(); a wait
//                             for an event that was never recorded does nothing
//
// No call blocks, calls into a reactor from the stream, or waits for the stream. A failure of the stream is sticky:
// flags that it was to write show kFlagAborted, or, on engines that cannot tell, never change.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/gpu/flag.hpp"

namespace weft::gpu {

/// See the top of the file. kWakesReactor: write_value goes through Flag::store(); false where hardware stores into
/// Flag::word().
template <typename S>
concept StreamLike = requires(S& stream, Flag& flag, const Flag& seen, std::uint64_t value, std::span<std::byte> to,
                              std::span<const std::byte> from, typename S::Event& event,
                              const typename S::Event& recorded) {
  { S::kWakesReactor } -> std::convertible_to<bool>;
  stream.copy(to, from);
  stream.write_value(flag, value);
  stream.wait_value(seen, value);
  stream.record(event);
  stream.wait(recorded);
};

}  // namespace weft::gpu
