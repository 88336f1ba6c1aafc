// Memory of one rank for messages: page-aligned, touched before any clock runs, and wiped in a known way.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace bench {

/// `size()` bytes, all 1 at first: pages that nobody has written are one shared page of zeros, and far too fast.
class PrivateBuffer {
 public:
  explicit PrivateBuffer(std::size_t bytes)
      : memory_(static_cast<std::byte*>(::operator new(bytes, kAlignment))), bytes_(bytes) {
    std::memset(memory_.get(), 1, bytes);
  }

  [[nodiscard]] std::byte* data() noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {memory_.get(), bytes_}; }
  /// As T, as many as fit.
  template <typename T>
  [[nodiscard]] std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T)};
  }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_;
};

}  // namespace bench
