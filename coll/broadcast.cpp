#include "weft/coll/broadcast.hpp"

#include <algorithm>
#include <string>

#include "weft/coll/signature.hpp"
#include "weft/net/collective_channel.hpp"

namespace weft::coll {
namespace {

// A segment must be long against the cost of a message (some us) and short against the whole: 128 KiB move in 10 us
// through memory, in 100 us through a socket.
constexpr std::size_t kSegmentBytes = 128 * 1024;

}  // namespace

Task<void> broadcast(Communicator& communicator, std::span<std::byte> bytes, Rank root) {
  if (root < 0 || root >= communicator.size()) {
    throw Error(Errc::invalid_argument, "broadcast",
                "root " + std::to_string(root) + " is not in '" + communicator.name() + "', which has ranks 0 to " +
                    std::to_string(communicator.size() - 1));
  }
  net::CollectiveChannel channel(communicator, "broadcast",
                                 make_signature(Collective::broadcast, Dtype::u8, ReduceOp::sum, bytes.size(), root, 0),
                                 &describe_signature);
  const Rank ranks = channel.size();
  const Rank place = (channel.rank() + ranks - root) % ranks;  // the root is 0 in its own numbering
  const auto rank_at = [&](Rank at) { return (at + root) % ranks; };
  // The parent of a place clears its lowest set bit; its children set one bit below that.
  Rank reach = 1;
  while (reach < ranks && (place & reach) == 0) reach *= 2;
  const Rank parent = rank_at(place - reach);

  std::uint32_t step = 0;
  std::size_t offset = 0;
  do {
    const std::span<std::byte> segment = bytes.subspan(offset, std::min(kSegmentBytes, bytes.size() - offset));
    if (place != 0) co_await channel.recv(parent, step, segment);
    for (Rank distance = reach / 2; distance > 0; distance /= 2) {
      if (place + distance < ranks) co_await channel.send(rank_at(place + distance), step, segment);
    }
    offset += segment.size();
    ++step;
  } while (offset < bytes.size());
}

}  // namespace weft::coll
