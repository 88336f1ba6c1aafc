#include "weft/coll/barrier.hpp"

#include "weft/coll/signature.hpp"
#include "weft/net/collective_channel.hpp"

namespace weft::coll {

Task<void> barrier(Communicator& communicator) {
  net::CollectiveChannel channel(communicator, "barrier",
                                 make_signature(Collective::barrier, Dtype::u8, ReduceOp::sum, 0, 0, 0),
                                 &describe_signature);
  const Rank rank = channel.rank();
  const Rank ranks = channel.size();
  std::uint32_t step = 0;
  for (Rank distance = 1; distance < ranks; distance *= 2, ++step) {
    const Rank to = (rank + distance) % ranks;
    const Rank from = (rank + ranks - distance) % ranks;
    const std::span<std::byte> nothing;
    co_await channel.exchange(to, nothing, from, nothing, step);
  }
}

}  // namespace weft::coll
