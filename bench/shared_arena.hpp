// Memory that all ranks of this host map, apart from Weft's own: what the floors run in.
//
// Rank 0 makes a memfd and tells the others its process and descriptor; they open it through /proc and check that it is
// the right one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"

namespace bench {

/// A word with a cache line of its own, and room for a small payload beside it.
struct alignas(64) FlagLine {
  std::atomic<std::uint64_t> value;
  std::byte room[56];
};
static_assert(sizeof(FlagLine) == 64);

/// See the top of the file. Empty where the ranks cannot share memory. Move-only.
class SharedArena {
 public:
  SharedArena() = default;
  SharedArena(SharedArena&& other) noexcept;
  SharedArena& operator=(SharedArena&& other) noexcept;
  ~SharedArena();

  /// Collective. `bytes` of data besides the flag lines. Empty on all ranks where one of them cannot map it.
  [[nodiscard]] static weft::Task<SharedArena> open(weft::Communicator& world, std::size_t bytes);

  [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }

  /// One a rank; zero at first.
  [[nodiscard]] FlagLine& line(weft::Rank rank) const noexcept;
  /// The data, page-aligned.
  [[nodiscard]] std::span<std::byte> data() const noexcept;

  /// Values for flags that count: the last one used before. All ranks must take the same number at the same place.
  [[nodiscard]] std::uint64_t take(std::uint64_t count) noexcept {
    const std::uint64_t last = taken_;
    taken_ += count;
    return last;
  }

 private:
  void reset() noexcept;

  void* memory_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t data_offset_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace bench
