// How n elements are divided over p ranks. Every rank computes the same division from (n, p, alignment) alone.
#pragma once

#include <cstddef>

#include "weft/runtime/assert.hpp"

namespace weft::coll {

/// Elements [offset, offset + count) of a buffer.
struct Chunk {
  std::size_t offset = 0;
  std::size_t count = 0;

  [[nodiscard]] constexpr std::size_t end() const noexcept { return offset + count; }
  [[nodiscard]] constexpr bool operator==(const Chunk&) const noexcept = default;
};

/// `elements` divided over `parts` consecutive chunks that cover them exactly, in order, without a gap.
///
/// The remainder rule: chunks differ by at most one element and the first `elements % parts` are the longer ones. With
/// an `alignment` above 1 the same rule holds for groups of `alignment` elements (the last group may be short), so that
/// every chunk starts at a multiple of `alignment`; chunks after the last group are empty and start at `elements`.
class Partition {
 public:
  /// `parts` and `alignment` are at least 1.
  constexpr Partition(std::size_t elements, std::size_t parts, std::size_t alignment = 1) noexcept
      : elements_(elements), parts_(parts), alignment_(alignment) {
    WEFT_ASSERT(parts > 0, "Partition: parts must be at least 1");
    WEFT_ASSERT(alignment > 0, "Partition: alignment must be at least 1");
    const std::size_t groups = elements / alignment + (elements % alignment != 0 ? 1 : 0);
    groups_per_part_ = groups / parts;
    longer_parts_ = groups % parts;
  }

  [[nodiscard]] constexpr std::size_t elements() const noexcept { return elements_; }
  [[nodiscard]] constexpr std::size_t parts() const noexcept { return parts_; }

  /// The first element of chunk `part`; `offset(parts())` is `elements()`.
  [[nodiscard]] constexpr std::size_t offset(std::size_t part) const noexcept {
    WEFT_ASSERT(part <= parts_, "Partition: no such part");
    const std::size_t group = part * groups_per_part_ + (part < longer_parts_ ? part : longer_parts_);
    // Compared by division, because group * alignment_ may pass the end of size_t in the last, short group.
    return group > elements_ / alignment_ ? elements_ : group * alignment_;
  }

  [[nodiscard]] constexpr std::size_t count(std::size_t part) const noexcept { return offset(part + 1) - offset(part); }

  [[nodiscard]] constexpr Chunk chunk(std::size_t part) const noexcept {
    const std::size_t first = offset(part);
    return Chunk{first, offset(part + 1) - first};
  }

  /// The largest count of any chunk: what a scratch buffer for one chunk must hold.
  [[nodiscard]] constexpr std::size_t max_count() const noexcept { return count(0); }

 private:
  std::size_t elements_;
  std::size_t parts_;
  std::size_t alignment_;
  std::size_t groups_per_part_ = 0;
  std::size_t longer_parts_ = 0;
};

}  // namespace weft::coll
