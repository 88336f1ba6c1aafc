#include "weft/coll/all_reduce_algorithms.hpp"
#include "weft/coll/chunking.hpp"
#include "weft/coll/reduce_kernels.hpp"
#include "weft/coll/scratch.hpp"

namespace weft::coll::detail {

Task<void> halving_doubling(net::CollectiveChannel& channel, Reduction reduction) {
  const Rank rank = channel.rank();
  const Rank ranks = channel.size();
  const std::size_t element = reduction.element_bytes();
  const Partition parts(reduction.count, static_cast<std::size_t>(ranks), 64 / element);
  const auto bytes_of = [&](Rank first, Rank last) {
    const std::size_t begin = parts.offset(static_cast<std::size_t>(first));
    const std::size_t end = parts.offset(static_cast<std::size_t>(last));
    return std::span(reduction.data + begin * element, (end - begin) * element);
  };
  const Scratch scratch(bytes_of(0, ranks / 2).size() + bytes_of(0, 1).size());

  // Halving: [low, low + width) are the parts that this rank still reduces.
  Rank low = 0;
  std::uint32_t step = 0;
  for (Rank width = ranks; width > 1; width /= 2, ++step) {
    const Rank half = width / 2;
    const Rank partner = rank ^ half;
    const bool keeps_upper = (rank & half) != 0;
    const Rank kept = keeps_upper ? low + half : low;
    const Rank given = keeps_upper ? low : low + half;
    const std::span<std::byte> mine = bytes_of(kept, kept + half);
    const std::span<std::byte> theirs = bytes_of(given, given + half);
    const std::span<std::byte> incoming = scratch.bytes().first(mine.size());
    co_await channel.exchange(partner, theirs, partner, incoming, step);
    combine(reduction.dtype, reduction.op, mine.data(), incoming.data(), mine.size() / element);
    low = kept;
  }
  const std::span<std::byte> own = bytes_of(rank, rank + 1);
  finish(reduction.dtype, reduction.op, own.data(), own.size() / element, static_cast<std::uint32_t>(ranks));

  // Doubling: the same partners in reverse; what two of them hold is always adjacent.
  for (Rank width = 1; width < ranks; width *= 2, ++step) {
    const Rank partner = rank ^ width;
    const Rank mine = rank / width * width;
    const Rank theirs = partner / width * width;
    const std::span<std::byte> out = bytes_of(mine, mine + width);
    const std::span<std::byte> in = bytes_of(theirs, theirs + width);
    co_await channel.exchange(partner, out, partner, in, step);
  }
}

}  // namespace weft::coll::detail
