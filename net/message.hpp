// Words of two-sided messages that users write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

/// A rank within a communicator.
using Rank = std::int32_t;
/// Chosen by the application; matched in whole, or under a mask.
using Tag = std::uint64_t;

/// As the source of a receive: whichever rank sends first.
inline constexpr Rank any_rank = -1;

/// What a receive accepts besides its source. Converts from a plain tag.
struct TagPattern {
  Tag tag = 0;
  Tag mask = ~Tag{0};  ///< the bits that must agree; 0 accepts every tag

  constexpr TagPattern(Tag exact) noexcept : tag(exact) {}
  constexpr TagPattern(Tag bits, Tag significant) noexcept : tag(bits), mask(significant) {}
};

/// Accepts every tag.
inline constexpr TagPattern any_tag{0, 0};

/// What came with a message.
struct MessageInfo {
  Rank source = -1;        ///< in the communicator of the receive
  Tag tag = 0;
  std::size_t length = 0;  ///< bytes; for a truncated message its true length
};

}  // namespace weft
