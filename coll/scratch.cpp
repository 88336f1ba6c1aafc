#include "weft/coll/scratch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>
#include <vector>

namespace weft::coll {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr unsigned kSmallestClass = 12;  // a page
constexpr unsigned kClasses = 64;

class Cache {
 public:
  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() {
    for (std::vector<std::byte*>& blocks : free_) {
      for (std::byte* block : blocks) ::operator delete(block, std::align_val_t{kAlignment});
    }
  }

  std::byte* take(unsigned size_class) {
    std::vector<std::byte*>& blocks = free_[size_class];
    if (blocks.empty()) {
      blocks.reserve(8);  // giving back must not throw
      return static_cast<std::byte*>(::operator new(std::size_t{1} << size_class, std::align_val_t{kAlignment}));
    }
    std::byte* block = blocks.back();
    blocks.pop_back();
    cached_bytes_ -= std::size_t{1} << size_class;
    return block;
  }

  void give(std::byte* block, unsigned size_class) noexcept {
    const std::size_t bytes = std::size_t{1} << size_class;
    std::vector<std::byte*>& blocks = free_[size_class];
    if (cached_bytes_ + bytes > Scratch::kCachedBytes || blocks.size() == blocks.capacity()) {
      ::operator delete(block, std::align_val_t{kAlignment});
      return;
    }
    blocks.push_back(block);
    cached_bytes_ += bytes;
  }

 private:
  std::array<std::vector<std::byte*>, kClasses> free_;
  std::size_t cached_bytes_ = 0;
};

// One per thread, which is one per reactor: a collective stays on its thread.
[[gnu::noinline]] Cache& cache() {
  thread_local Cache instance;
  return instance;
}

}  // namespace

Scratch::Scratch(std::size_t bytes)
    : bytes_(bytes),
      size_class_(std::max(kSmallestClass, static_cast<unsigned>(std::bit_width(bytes - (bytes != 0))))) {
  data_ = cache().take(size_class_);
}

Scratch::Scratch(Scratch&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), size_class_(other.size_class_) {}

Scratch::~Scratch() {
  if (data_ != nullptr) cache().give(data_, size_class_);
}

}  // namespace weft::coll
