// Buffers that connections borrow while they have bytes to keep, and give back when they are empty.
//
// An idle connection holds none, so a thousand peers cost no more than those that are busy at the moment; and the one
// buffer that all quiet connections take in turn stays in the cache.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace weft::net {

/// Thread: the transport's.
class BufferPool {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  /// The largest packet (64 KiB and its header) fits with as much again beside it, so that a buffer never has to be
  /// emptied for one packet alone; more would push the rest of a small machine's second-level cache out.
  static constexpr std::size_t kBufferBytes = 160 * 1024;

  BufferPool();

  /// A buffer of kBufferBytes, or null when there is no memory. Cost: an allocation only when none is idle.
  [[nodiscard]] Buffer lease() noexcept;
  /// Takes a buffer back; more than kIdleBuffers idle ones are freed.
  void give_back(Buffer buffer) noexcept;

 private:
  // In and out of four busy peers: as many as are polled directly.
  static constexpr std::size_t kIdleBuffers = 8;
  std::vector<Buffer> idle_;
};

}  // namespace weft::net
