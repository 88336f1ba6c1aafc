// Which samples a rank works on. Every rank computes the same order of an epoch from the seed and takes its own part of
// each mini-batch, so that nothing about the samples is ever sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace digits {

/// Fills `order` with a permutation of 0..size-1 that depends on the seed and the epoch alone.
void epoch_order(std::span<std::uint32_t> order, std::uint64_t seed, std::uint64_t epoch) noexcept;

/// first..last-1.
struct Range {
  std::size_t first;
  std::size_t last;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return last - first; }
};

/// Part `part` of `count` things cut into `parts` contiguous parts that differ by one at most; some are empty when
/// there are more parts than things. part < parts.
[[nodiscard]] constexpr Range part_of(std::size_t count, std::size_t part, std::size_t parts) noexcept {
  return Range{count * part / parts, count * (part + 1) / parts};
}

}  // namespace digits
