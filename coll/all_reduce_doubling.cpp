#include <bit>

#include "weft/coll/all_reduce_algorithms.hpp"
#include "weft/coll/reduce_kernels.hpp"
#include "weft/coll/scratch.hpp"

namespace weft::coll::detail {

Task<void> recursive_doubling(net::CollectiveChannel& channel, Reduction reduction) {
  const Rank rank = channel.rank();
  const Rank core = static_cast<Rank>(std::bit_floor(static_cast<unsigned>(channel.size())));
  const Rank folded = channel.size() - core;  // ranks 2i and 2i+1 below 2*folded act as one
  const std::span<std::byte> data(reduction.data, reduction.bytes());
  const auto divisor = static_cast<std::uint32_t>(channel.size());
  constexpr std::uint32_t kFoldStep = 100;
  constexpr std::uint32_t kUnfoldStep = 101;

  if (rank < 2 * folded && rank % 2 == 1) {
    co_await channel.send(rank - 1, kFoldStep, data);
    co_await channel.recv(rank - 1, kUnfoldStep, data);
    co_return;
  }
  const Scratch scratch(reduction.bytes());
  if (rank < 2 * folded) {
    co_await channel.recv(rank + 1, kFoldStep, scratch.bytes());
    combine(reduction.dtype, reduction.op, reduction.data, scratch.data(), reduction.count);
  }
  const Rank core_rank = rank < 2 * folded ? rank / 2 : rank - folded;
  std::uint32_t step = 0;
  for (Rank distance = 1; distance < core; distance *= 2, ++step) {
    const Rank core_partner = core_rank ^ distance;
    const Rank partner = core_partner < folded ? core_partner * 2 : core_partner + folded;
    co_await channel.exchange(partner, data, partner, scratch.bytes(), step);
    // combine() gives the same bits whichever operand comes first: both partners have the same sum.
    combine(reduction.dtype, reduction.op, reduction.data, scratch.data(), reduction.count);
  }
  finish(reduction.dtype, reduction.op, reduction.data, reduction.count, divisor);
  if (rank < 2 * folded) co_await channel.send(rank + 1, kUnfoldStep, data);
}

}  // namespace weft::coll::detail
