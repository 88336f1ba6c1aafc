// Memory blocks by size, kept for reuse: what makes coroutine frames and unexpected messages free of malloc once a
// program has warmed up.
//
// hot: allocate() and deallocate(). Every block comes from ::operator new by itself, never from a slab, so a block may
// be given back to another pool than its own (a frame that ends on another thread): it then simply lives there.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "weft/runtime/assert.hpp"

namespace weft {

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_DETAIL_POOLING false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_DETAIL_POOLING false
#endif
#endif
#ifndef WEFT_DETAIL_POOLING
#define WEFT_DETAIL_POOLING true
#endif

/// A cache of memory blocks in 22 sizes: steps of 64 bytes up to 1 KiB, then powers of two up to 64 KiB. What is larger
/// goes straight to operator new and delete.
///
/// Units: sizes in bytes; every block is aligned to kAlignment.
/// Lifetime: blocks in use may outlive the pool and may be given to another one.
/// Thread: one at a time.
/// Cost: no allocation where a block of that size was given back before, else one operator new.
class SizeClassPool {
 public:
  /// False under AddressSanitizer, where every block goes straight to operator new and its slack is poisoned, so that
  /// use after free and writes past the end are seen. Tests that count allocations skip then.
  static constexpr bool kPooling = WEFT_DETAIL_POOLING;

  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kStepBytes = 64;
  static constexpr std::size_t kLastStepBytes = 1024;
  static constexpr std::size_t kLargestBytes = std::size_t{64} << 10;
  static constexpr std::size_t kClasses = kLastStepBytes / kStepBytes + 6;

  /// What one class keeps at most; what comes back beyond goes to operator delete. 4 MiB hold 10,000 frames of 400
  /// bytes or 64 blocks of 64 KiB, the deepest steady state that is promised to be free of malloc; a burst of one size
  /// does not stay resident for ever.
  static constexpr std::size_t kCachedBytesPerClass = std::size_t{4} << 20;

  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kAlignment, "compilers store frames with 16-byte aligned moves");
  static_assert(kStepBytes % kAlignment == 0);

  struct Counters {
    std::uint64_t hits = 0;      ///< served from the cache
    std::uint64_t misses = 0;    ///< of a pooled size, but operator new had to serve it
    std::uint64_t oversize = 0;  ///< larger than kLargestBytes
  };

  SizeClassPool() noexcept;
  SizeClassPool(const SizeClassPool&) = delete;
  SizeClassPool& operator=(const SizeClassPool&) = delete;
  ~SizeClassPool();

  /// A block of at least `bytes` bytes. Never nullptr: aborts with a message when memory is out.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept {
    if (kPooling && bytes <= kLastStepBytes) [[likely]] {
      FreeList& list = lists_[step_class(bytes)];
      if (list.head != nullptr) [[likely]]
        return take(list);
    }
    return allocate_slow(bytes);
  }

  /// Takes back a block that allocate() of this or another pool, or allocate_unpooled(), returned for the same `bytes`.
  void deallocate(void* block, std::size_t bytes) noexcept {
    if (kPooling && bytes <= kLastStepBytes) [[likely]] {
      FreeList& list = lists_[step_class(bytes)];
      if (list.room_blocks != 0) [[likely]]
        return put(list, block);
    }
    deallocate_slow(block, bytes);
  }

  /// Like allocate() and deallocate() where there is no pool; such a block may be given to any pool later.
  [[nodiscard]] static void* allocate_unpooled(std::size_t bytes) noexcept;
  static void deallocate_unpooled(void* block, std::size_t bytes) noexcept;

  /// Gives everything that is cached back to operator delete.
  void trim() noexcept;

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::size_t cached_bytes() const noexcept;

  /// The size of the block that a request of `bytes` gets. The same with and without pooling: a program under
  /// AddressSanitizer may be linked with a library that is not.
  [[nodiscard]] static constexpr std::size_t block_bytes(std::size_t bytes) noexcept {
    return bytes > kLargestBytes ? bytes : class_bytes(class_of(bytes));
  }

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  struct FreeList {
    FreeBlock* head = nullptr;
    std::size_t room_blocks = 0;  // how many more blocks may be cached
  };

  static constexpr std::size_t kSteps = kLastStepBytes / kStepBytes;

  // 0 belongs to the first class.
  static constexpr std::size_t step_class(std::size_t bytes) noexcept { return (bytes - (bytes != 0)) / kStepBytes; }
  static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    if (bytes <= kLastStepBytes) return step_class(bytes);
    return kSteps + static_cast<std::size_t>(std::bit_width(bytes - 1) - std::bit_width(kLastStepBytes));
  }
  static constexpr std::size_t class_bytes(std::size_t index) noexcept {
    return index < kSteps ? (index + 1) * kStepBytes : kLastStepBytes << (index - kSteps + 1);
  }

  void* take(FreeList& list) noexcept {
    FreeBlock* block = list.head;
    list.head = block->next;
    ++list.room_blocks;
    ++counters_.hits;
    return block;
  }
  static void put(FreeList& list, void* block) noexcept {
    list.head = ::new (block) FreeBlock{list.head};
    --list.room_blocks;
  }

  [[gnu::noinline]] void* allocate_slow(std::size_t bytes) noexcept;
  [[gnu::noinline]] void deallocate_slow(void* block, std::size_t bytes) noexcept;

  std::array<FreeList, kClasses> lists_;
  Counters counters_;
};

#undef WEFT_DETAIL_POOLING

}  // namespace weft
