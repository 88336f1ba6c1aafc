// Working memory of collectives, kept between calls so that a training step allocates nothing.
#pragma once

#include <cstddef>
#include <span>

namespace weft::coll {

/// At least `bytes` of memory, aligned to 64, contents unspecified; goes back to a cache of the thread. Move-only.
/// Size classes are powers of two; up to kCachedBytes per thread stay cached, more is freed.
/// Errors: std::bad_alloc. Cost: no allocation when a block of the class is cached.
class Scratch {
 public:
  /// Large enough for the scratch of two 32 MiB reductions in flight.
  static constexpr std::size_t kCachedBytes = std::size_t{64} << 20;

  explicit Scratch(std::size_t bytes);
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  unsigned size_class_ = 0;
};

}  // namespace weft::coll
