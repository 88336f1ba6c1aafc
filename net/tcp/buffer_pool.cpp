#include "weft/net/tcp/buffer_pool.hpp"

#include <new>
#include <utility>

namespace weft::net {

BufferPool::BufferPool() {
  idle_.reserve(kIdleBuffers);
}

BufferPool::Buffer BufferPool::lease() noexcept {
  if (idle_.empty()) [[unlikely]]
    return Buffer(new (std::nothrow) std::byte[kBufferBytes]);
  Buffer buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void BufferPool::give_back(Buffer buffer) noexcept {
  if (idle_.size() < kIdleBuffers) idle_.push_back(std::move(buffer));
}

}  // namespace weft::net
