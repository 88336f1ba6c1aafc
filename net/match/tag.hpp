// What a receive asks for and what a message is filed under: the words in which matching is done.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::net {

/// As a source: a message of any rank.
inline constexpr std::int32_t kAnySource = -1;

/// As a mask: all bits of the tag must agree.
inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

/// The envelope of a message: all of it is known when it arrives.
struct MatchKey {
  std::uint32_t context = 0;  ///< which communicator, and whether point-to-point or collective
  std::int32_t source = 0;    ///< the sender's rank in the world
  std::uint64_t tag = 0;

  // Spelled out so that it loads field by field: one wide load of fields that were stored one by one a moment ago must
  // wait until the stores have left the store buffer.
  friend constexpr bool operator==(const MatchKey& a, const MatchKey& b) noexcept {
    return ((a.context ^ b.context) | static_cast<std::uint32_t>(a.source ^ b.source)) == 0 && a.tag == b.tag;
  }

  /// 64 well mixed bits: neighbouring tags, tags with low zero bits and neighbouring ranks spread over the high bits.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    // Odd multipliers with no regular pattern of bits: the golden ratio, and the two of MurmurHash3's fmix64.
    const std::uint64_t place = std::uint64_t{context} << 32 | static_cast<std::uint32_t>(source);
    std::uint64_t x = tag ^ std::rotl(place * 0x9e3779b97f4a7c15U, 32);
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdU;
    return (x ^ x >> 33) * 0xc4ceb9fe1a85ec53U;
  }
};

/// What a receive accepts.
struct MatchPattern {
  std::uint32_t context = 0;
  std::int32_t source = kAnySource;  ///< the sender's rank in the world, or kAnySource
  std::uint64_t tag = 0;
  std::uint64_t mask = kWholeTag;  ///< the bits of the tag that must agree

  /// Whether only one key fits.
  [[nodiscard]] constexpr bool exact() const noexcept { return source != kAnySource && mask == kWholeTag; }

  /// That key. Precondition: exact().
  [[nodiscard]] constexpr MatchKey key() const noexcept { return {context, source, tag}; }
};

[[nodiscard]] constexpr bool matches(const MatchPattern& pattern, const MatchKey& key) noexcept {
  return pattern.context == key.context && (pattern.source == key.source || pattern.source == kAnySource) &&
         ((pattern.tag ^ key.tag) & pattern.mask) == 0;
}

[[nodiscard]] constexpr bool matches(const MatchPattern& pattern, std::uint32_t context, std::int32_t source,
                                     std::uint64_t tag) noexcept {
  return matches(pattern, MatchKey{context, source, tag});
}

}  // namespace weft::net
