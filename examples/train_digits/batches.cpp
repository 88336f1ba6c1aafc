#include "batches.hpp"

#include <numeric>

#include "random.hpp"

namespace digits {

// Stream 1 draws the weights; an epoch's order comes from a stream of its own, so that epoch 7 of a run is that of
// every other run of the seed, however many came before.
constexpr std::uint64_t kFirstOrderStream = 2;

void epoch_order(std::span<std::uint32_t> order, std::uint64_t seed, std::uint64_t epoch) noexcept {
  std::iota(order.begin(), order.end(), 0U);
  SplitMix64 random(seed, kFirstOrderStream + epoch);
  shuffle(order, random);
}

}  // namespace digits
