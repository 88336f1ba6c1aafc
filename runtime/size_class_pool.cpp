#include "weft/runtime/size_class_pool.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_DETAIL_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_DETAIL_ASAN
#endif
#endif
#ifdef WEFT_DETAIL_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft {

static_assert(SizeClassPool::block_bytes(SizeClassPool::kLargestBytes) == SizeClassPool::kLargestBytes);
static_assert(SizeClassPool::block_bytes(SizeClassPool::kLastStepBytes + 1) == 2 * SizeClassPool::kLastStepBytes);
static_assert(SizeClassPool::block_bytes(0) == SizeClassPool::kStepBytes);

SizeClassPool::SizeClassPool() noexcept {
  for (std::size_t index = 0; index < kClasses; ++index) {
    lists_[index].room_blocks = kCachedBytesPerClass / class_bytes(index);
  }
}

SizeClassPool::~SizeClassPool() {
  trim();
}

void* SizeClassPool::allocate_unpooled(std::size_t bytes) noexcept {
  void* block = ::operator new(block_bytes(bytes), std::nothrow);
  WEFT_ASSERT(block != nullptr, "out of memory: a coroutine frame or a message buffer could not be allocated");
#ifdef WEFT_DETAIL_ASAN
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes, block_bytes(bytes) - bytes);
#endif
  return block;
}

void SizeClassPool::deallocate_unpooled(void* block, std::size_t bytes) noexcept {
  ::operator delete(block, block_bytes(bytes));
}

void* SizeClassPool::allocate_slow(std::size_t bytes) noexcept {
  if (bytes > kLargestBytes) {
    ++counters_.oversize;
    return allocate_unpooled(bytes);
  }
  if (kPooling) {
    FreeList& list = lists_[class_of(bytes)];
    if (list.head != nullptr) return take(list);
  }
  ++counters_.misses;
  return allocate_unpooled(bytes);
}

void SizeClassPool::deallocate_slow(void* block, std::size_t bytes) noexcept {
  if (kPooling && bytes <= kLargestBytes) {
    FreeList& list = lists_[class_of(bytes)];
    if (list.room_blocks != 0) return put(list, block);
  }
  deallocate_unpooled(block, bytes);
}

void SizeClassPool::trim() noexcept {
  for (std::size_t index = 0; index < kClasses; ++index) {
    FreeList& list = lists_[index];
    while (list.head != nullptr) {
      FreeBlock* block = list.head;
      list.head = block->next;
      ++list.room_blocks;
      ::operator delete(block, class_bytes(index));
    }
  }
}

std::size_t SizeClassPool::cached_bytes() const noexcept {
  std::size_t total = 0;
  for (std::size_t index = 0; index < kClasses; ++index) {
    const std::size_t room_bytes = lists_[index].room_blocks * class_bytes(index);
    total += kCachedBytesPerClass / class_bytes(index) * class_bytes(index) - room_bytes;
  }
  return total;
}

}  // namespace weft
