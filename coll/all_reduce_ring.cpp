#include "weft/coll/all_reduce_algorithms.hpp"
#include "weft/coll/chunking.hpp"
#include "weft/coll/reduce_kernels.hpp"
#include "weft/coll/scratch.hpp"

namespace weft::coll::detail {

Task<void> ring(net::CollectiveChannel& channel, Reduction reduction) {
  const Rank rank = channel.rank();
  const Rank ranks = channel.size();
  const Rank next = (rank + 1) % ranks;
  const Rank previous = (rank + ranks - 1) % ranks;
  const std::size_t element = reduction.element_bytes();
  const Partition parts(reduction.count, static_cast<std::size_t>(ranks), 64 / element);
  const auto bytes_of = [&](Rank part) {
    const Chunk chunk = parts.chunk(static_cast<std::size_t>(part));
    return std::span(reduction.data + chunk.offset * element, chunk.count * element);
  };
  const Scratch scratch(parts.max_count() * element);

  // Part i starts at rank i and collects one rank's contribution at each hop; it is complete at rank i-1.
  std::uint32_t step = 0;
  for (Rank hop = 0; hop < ranks - 1; ++hop, ++step) {
    const std::span<std::byte> out = bytes_of((rank + ranks - hop) % ranks);
    const std::span<std::byte> mine = bytes_of((rank + 2 * ranks - hop - 1) % ranks);
    const std::span<std::byte> incoming = scratch.bytes().first(mine.size());
    co_await channel.exchange(next, out, previous, incoming, step);
    combine(reduction.dtype, reduction.op, mine.data(), incoming.data(), mine.size() / element);
  }
  const std::span<std::byte> own = bytes_of(next);
  finish(reduction.dtype, reduction.op, own.data(), own.size() / element, static_cast<std::uint32_t>(ranks));

  for (Rank hop = 0; hop < ranks - 1; ++hop, ++step) {
    const std::span<std::byte> out = bytes_of((rank + 1 + ranks - hop) % ranks);
    const std::span<std::byte> in = bytes_of((rank + ranks - hop) % ranks);
    co_await channel.exchange(next, out, previous, in, step);
  }
}

}  // namespace weft::coll::detail
