#include "weft/coll/signature.hpp"

#include <array>
#include <cstdio>

namespace weft::coll {

std::uint32_t make_signature(Collective kind, Dtype dtype, ReduceOp op, std::size_t count, Rank root,
                             std::uint32_t algorithm) noexcept {
  // SplitMix64's finalizer: every input bit reaches the 21 that are kept.
  std::uint64_t x = static_cast<std::uint64_t>(count) * 0x9e3779b97f4a7c15U;
  x ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32 | algorithm;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return static_cast<std::uint32_t>(kind) << 28 | static_cast<std::uint32_t>(dtype) << 24 |
         static_cast<std::uint32_t>(op) << 21 | static_cast<std::uint32_t>(x & 0x1fffff);
}

std::string describe_signature(std::uint32_t signature) {
  const auto kind = static_cast<Collective>(signature >> 28);
  const auto dtype = static_cast<Dtype>(signature >> 24 & 0xf);
  const auto op = static_cast<ReduceOp>(signature >> 21 & 0x7);
  const std::uint32_t fingerprint = signature & 0x1fffff;
  std::array<char, 64> tail{};
  std::snprintf(tail.data(), tail.size(), " (fingerprint of count, root and algorithm %05x)", fingerprint);
  switch (kind) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return std::string("broadcast") + tail.data();
    case Collective::all_reduce:
      if (!is_valid(dtype) || !is_valid(op)) break;
      return "all_reduce of " + std::string(to_string(dtype)) + ", " + std::string(to_string(op)) + tail.data();
  }
  return "a collective of another layer";
}

}  // namespace weft::coll
