#include "weft/coll/all_reduce.hpp"

#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "weft/coll/all_reduce_algorithms.hpp"
#include "weft/coll/signature.hpp"

namespace weft::coll {
namespace {

constexpr std::size_t kRecursiveDoublingBytes = 8 * 1024;
constexpr std::size_t kRingBytes = std::size_t{32} << 20;
constexpr Rank kRingRanks = 64;
// Gathering everything moves (p-1) n bytes to each rank where direct moves 2 n: it pays while the messages it saves
// cost more than those bytes. 8 KiB in all keeps it within one packet of every transport.
constexpr std::size_t kGatherLocalBytes = 8 * 1024;

bool is_half(Dtype dtype) noexcept { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

bool keeps_rank_order(AllReduceAlgorithm algorithm) noexcept {
  return algorithm == AllReduceAlgorithm::gather_local || algorithm == AllReduceAlgorithm::direct;
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  return std::less<>()(a, b + bytes) && std::less<>()(b, a + bytes);
}

void check(AllReduceAlgorithm algorithm, Dtype dtype, Order order, Rank ranks) {
  if (algorithm == AllReduceAlgorithm::halving_doubling && !std::has_single_bit(static_cast<unsigned>(ranks))) {
    throw Error(Errc::invalid_argument, "all_reduce",
                "halving_doubling needs a power of two of ranks, there are " + std::to_string(ranks));
  }
  const bool must_keep_order = order == Order::canonical || is_half(dtype);
  if (must_keep_order && !keeps_rank_order(algorithm)) {
    throw Error(Errc::invalid_argument, "all_reduce",
                std::string(to_string(algorithm)) + " does not reduce in rank order, as " +
                    (order == Order::canonical ? "the canonical order" : "a 16-bit type, which rounds once,") +
                    " needs; use gather_local, direct or automatic");
  }
}

Task<void> run(net::CollectiveChannel& channel, detail::Reduction reduction, AllReduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllReduceAlgorithm::recursive_doubling: return detail::recursive_doubling(channel, reduction);
    case AllReduceAlgorithm::halving_doubling: return detail::halving_doubling(channel, reduction);
    case AllReduceAlgorithm::ring: return detail::ring(channel, reduction);
    case AllReduceAlgorithm::gather_local: return detail::gather_local(channel, reduction);
    case AllReduceAlgorithm::direct:
    case AllReduceAlgorithm::automatic: break;
  }
  return detail::direct(channel, reduction);
}

}  // namespace

std::string_view to_string(AllReduceAlgorithm algorithm) noexcept {
  switch (algorithm) {
    case AllReduceAlgorithm::automatic: return "automatic";
    case AllReduceAlgorithm::recursive_doubling: return "recursive_doubling";
    case AllReduceAlgorithm::halving_doubling: return "halving_doubling";
    case AllReduceAlgorithm::ring: return "ring";
    case AllReduceAlgorithm::gather_local: return "gather_local";
    case AllReduceAlgorithm::direct: return "direct";
  }
  return "unknown";
}

AllReduceAlgorithm choose_all_reduce(std::size_t bytes, Dtype dtype, Order order, Rank ranks) noexcept {
  if (order == Order::canonical || is_half(dtype)) {
    const bool short_vector = bytes * static_cast<std::size_t>(ranks) <= kGatherLocalBytes;
    return short_vector ? AllReduceAlgorithm::gather_local : AllReduceAlgorithm::direct;
  }
  if (bytes <= kRecursiveDoublingBytes) return AllReduceAlgorithm::recursive_doubling;
  if (bytes >= kRingBytes && ranks <= kRingRanks) return AllReduceAlgorithm::ring;
  if (std::has_single_bit(static_cast<unsigned>(ranks))) return AllReduceAlgorithm::halving_doubling;
  return AllReduceAlgorithm::ring;
}

Task<void> all_reduce(Communicator& communicator, const std::byte* in, std::byte* out, std::size_t count, Dtype dtype,
                      ReduceOp op, AllReduceAlgorithm algorithm) {
  const detail::Reduction reduction{out, count, dtype, op};
  if (in != out && overlap(in, out, reduction.bytes())) {
    throw Error(Errc::invalid_argument, "all_reduce", "in and out overlap in part; they must be the same or apart");
  }
  if (algorithm == AllReduceAlgorithm::automatic) {
    algorithm = choose_all_reduce(reduction.bytes(), dtype, communicator.order(), communicator.size());
  } else {
    check(algorithm, dtype, communicator.order(), communicator.size());
  }
  const std::uint32_t signature =
      make_signature(Collective::all_reduce, dtype, op, count, 0, static_cast<std::uint32_t>(algorithm));
  net::CollectiveChannel channel(communicator, "all_reduce", signature, &describe_signature);
  if (in != out && count != 0) std::memcpy(out, in, reduction.bytes());
  if (communicator.size() == 1) co_return;
  co_await run(channel, reduction, algorithm);
}

}  // namespace weft::coll
