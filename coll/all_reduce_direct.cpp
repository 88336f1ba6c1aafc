// The two algorithms that reduce in rank order: gather_local for short vectors, direct for long ones.
#include <algorithm>
#include <cstring>

#include "weft/coll/all_reduce_algorithms.hpp"
#include "weft/coll/chunking.hpp"
#include "weft/coll/reduce_kernels.hpp"
#include "weft/coll/scratch.hpp"

namespace weft::coll::detail {
namespace {

/// Pointers to one part of every rank, in rank order, in memory that outlives no call.
class Inputs {
 public:
  explicit Inputs(Rank ranks)
      : count_(static_cast<std::size_t>(ranks)), memory_(count_ * sizeof(const std::byte*)) {}
  void set(Rank rank, const std::byte* data) noexcept { pointers()[rank] = data; }
  [[nodiscard]] std::span<const std::byte* const> all() const noexcept { return {pointers(), count_}; }

 private:
  [[nodiscard]] const std::byte** pointers() const noexcept {
    return reinterpret_cast<const std::byte**>(memory_.data());
  }
  std::size_t count_;
  Scratch memory_;
};

}  // namespace

Task<void> gather_local(net::CollectiveChannel& channel, Reduction reduction) {
  const Rank rank = channel.rank();
  const Rank ranks = channel.size();
  const std::size_t bytes = reduction.bytes();
  const Scratch gathered(bytes * static_cast<std::size_t>(ranks));
  const auto blocks = [&](Rank first, Rank count) {
    return gathered.bytes().subspan(static_cast<std::size_t>(first) * bytes, static_cast<std::size_t>(count) * bytes);
  };
  if (bytes != 0) std::memcpy(gathered.data(), reduction.data, bytes);

  // Bruck: block j here is the one of rank (rank + j) mod p; the first `have` blocks are there.
  std::uint32_t step = 0;
  for (Rank have = 1; have < ranks; have *= 2, ++step) {
    const Rank moved = std::min(have, ranks - have);
    const Rank to = (rank + ranks - have) % ranks;
    const Rank from = (rank + have) % ranks;
    const std::span<std::byte> out = blocks(0, moved);
    const std::span<std::byte> in = blocks(have, moved);
    co_await channel.exchange(to, out, from, in, step);
  }
  Inputs inputs(ranks);
  for (Rank source = 0; source < ranks; ++source) {
    inputs.set(source, blocks((source + ranks - rank) % ranks, 1).data());
  }
  reduce_ranks(reduction.dtype, reduction.op, reduction.data, inputs.all(), reduction.count,
               static_cast<std::uint32_t>(ranks));
}

Task<void> direct(net::CollectiveChannel& channel, Reduction reduction) {
  const Rank rank = channel.rank();
  const Rank ranks = channel.size();
  const std::size_t element = reduction.element_bytes();
  const Partition parts(reduction.count, static_cast<std::size_t>(ranks), 64 / element);
  const auto bytes_of = [&](Rank part) {
    const Chunk chunk = parts.chunk(static_cast<std::size_t>(part));
    return std::span(reduction.data + chunk.offset * element, chunk.count * element);
  };
  const std::span<std::byte> own = bytes_of(rank);
  const Scratch received(own.size() * static_cast<std::size_t>(ranks - 1));
  Inputs inputs(ranks);
  inputs.set(rank, own.data());

  std::uint32_t step = 0;
  for (Rank distance = 1; distance < ranks; ++distance, ++step) {
    const Rank to = (rank + distance) % ranks;
    const Rank from = (rank + ranks - distance) % ranks;
    const std::span<std::byte> place =
        received.bytes().subspan(static_cast<std::size_t>(distance - 1) * own.size(), own.size());
    inputs.set(from, place.data());
    const std::span<std::byte> out = bytes_of(to);
    co_await channel.exchange(to, out, from, place, step);
  }
  reduce_ranks(reduction.dtype, reduction.op, own.data(), inputs.all(), own.size() / element,
               static_cast<std::uint32_t>(ranks));
  for (Rank distance = 1; distance < ranks; ++distance, ++step) {
    const Rank to = (rank + distance) % ranks;
    const Rank from = (rank + ranks - distance) % ranks;
    const std::span<std::byte> in = bytes_of(from);
    co_await channel.exchange(to, own, from, in, step);
  }
}

}  // namespace weft::coll::detail
