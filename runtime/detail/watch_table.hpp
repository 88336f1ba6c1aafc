// Which handler belongs to which descriptor, for the io engines.
//
// The kernel reports in batches, and a handler may remove or replace other descriptors of the same batch, even close
// one and open another under the same number. So every watch has a generation, which travels through the kernel as part
// of a 64-bit key; an event whose generation is no longer the descriptor's own is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/runtime/assert.hpp"
#include "weft/runtime/io_engine.hpp"

namespace weft::detail {

/// Indexed by descriptor: the kernel hands out the smallest free number, so the table is as long as it must be.
class WatchTable {
 public:
  /// The key of a new watch, never 0. Throws std::bad_alloc.
  std::uint64_t insert(int fd, IoHandler& handler) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= watches_.size()) watches_.resize(index + 1);
    WEFT_ASSERT(watches_[index].handler == nullptr, "IoEngine::add: the descriptor is watched already");
    if (++last_generation_ == 0) ++last_generation_;
    watches_[index] = Watch{&handler, last_generation_};
    ++size_;
    return std::uint64_t{last_generation_} << 32 | static_cast<std::uint32_t>(fd);
  }

  /// The key the watch had, or 0 when `fd` is not watched.
  std::uint64_t erase(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd);
    if (fd < 0 || index >= watches_.size() || watches_[index].handler == nullptr) return 0;
    watches_[index].handler = nullptr;
    --size_;
    return std::uint64_t{watches_[index].generation} << 32 | static_cast<std::uint32_t>(fd);
  }

  /// The handler of a live watch, or nullptr for a key whose watch has been erased.
  [[nodiscard]] IoHandler* find(std::uint64_t key) const noexcept {
    const std::size_t index = key & 0xFFFFFFFF;
    if (index >= watches_.size() || watches_[index].generation != key >> 32) return nullptr;
    return watches_[index].handler;
  }

  /// Calls `action` with the key of every live watch.
  template <typename Action>
  void for_each_key(Action action) const {
    for (std::size_t index = 0; index < watches_.size(); ++index) {
      if (watches_[index].handler != nullptr) action(std::uint64_t{watches_[index].generation} << 32 | index);
    }
  }

  [[nodiscard]] static int fd_of(std::uint64_t key) noexcept { return static_cast<int>(key & 0x7FFFFFFF); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Watch {
    IoHandler* handler = nullptr;
    std::uint32_t generation = 0;
  };

  std::vector<Watch> watches_;
  std::size_t size_ = 0;
  std::uint32_t last_generation_ = 0;
};

/// What a poll mask (the same bits for poll, epoll and io_uring) says. A dead descriptor is readable and writable: the
/// next call on it does not block, it fails.
[[nodiscard]] IoEvents events_from_poll_mask(std::uint32_t mask) noexcept;

}  // namespace weft::detail
