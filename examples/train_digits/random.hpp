// The random numbers of this example: SplitMix64, and the draws made from it. The standard library fixes its engines
// but not std::shuffle or its distributions, and here every rank, built by whichever compiler, must draw the same
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace digits {

/// SplitMix64: 64 bits of state, period 2^64, every seed is a good one.
/// Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

  /// Two streams of one seed (say, the weights and the order of the samples) that share no numbers in practice.
  constexpr SplitMix64(std::uint64_t seed, std::uint64_t stream) noexcept : state_(SplitMix64(seed).next()) {
    state_ ^= SplitMix64(~stream).next();
  }

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// Uniform in 0..bound-1 without bias: draws from the incomplete last block of 2^64 are thrown away. bound > 0.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t draw = next();
    while (draw < rejected)
      draw = next();
    return draw % bound;
  }

  /// Uniform in [0, 1), a multiple of 2^-53.
  [[nodiscard]] constexpr double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

/// Fisher-Yates, from the last element down.
template <typename T>
constexpr void shuffle(std::span<T> items, SplitMix64& random) noexcept {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(random.below(i))]);
  }
}

}  // namespace digits
