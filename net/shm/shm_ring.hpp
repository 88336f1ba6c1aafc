// The ring through which one rank sends packets to one other rank of this host. // hot
//
// One producer, one consumer, 512 lines of 64 bytes in memory that both have mapped. A record is a wire header and its
// payload, contiguous, rounded up to whole lines; a packet with up to 40 bytes of payload is exactly one line, so one
// cache line carries all of it from core to core. A record that does not fit in front of the end of the ring is
// preceded by a skip record, which fills the ring up to its end.
//
// Positions count lines, never wrap (64 bits), and name line `position % 512` in lap `position / 512`.
//
//   released <= consumer's position <= head <= released + 511
//
// Publishing. The first 8 bytes of a record, {version, kind, channel, length}, are one word. It is written last, by one
// release store; the consumer looks at nothing but the word at its position, by an acquire load, until that word is
// *fresh*: version is right and channel is the lap's number modulo 2^16. So the consumer never sees half a record, and
// the payload needs no flag of its own.
//
// No stale word looks fresh. The word at position E, where a record ends and the next one will begin, holds whatever
// the producer wrote there in an earlier lap: an old header, or bytes of a payload, which may have any value. Before
// the producer publishes the record that ends at E it reads that word, and zeroes it if it looks fresh for E.
// This is complete: the consumer looks at E only after it has acquired the record that ends there, hence after the
// check; only the producer writes to the line, and its next write there is the record at E itself. It holds for every
// payload, and for old headers after 65536 laps as well. It costs a read of a line that the producer wrote a lap ago
// (no traffic between cores) and requires line E to be free, which is why at most 511 lines are in use.
//
// The consumer trusts nothing it reads: a header is copied out of the ring once, then checked, then used. What it
// passes on is in bounds whatever the producer does; the payload itself may change under the reader's eyes when the
// producer is malicious.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "weft/net/protocol/wire_header.hpp"
#include "weft/runtime/assert.hpp"

namespace weft::net {

/// 32 KiB a direction: all rings of a few peers stay in the L2 cache, and the largest record is a quarter of it, so
/// that three more can be under way while one is taken.
inline constexpr std::size_t kRingLines = 512;
inline constexpr std::size_t kRingBytes = kRingLines * kLineBytes;
/// Largest payload of a packet.
inline constexpr std::size_t kRingMaxPayload = 8192;

/// Lines of the record of a packet with so much payload.
[[nodiscard]] constexpr std::size_t ring_lines_of(std::size_t payload_bytes) noexcept {
  return (kWireHeaderBytes + payload_bytes + kLineBytes - 1) / kLineBytes;
}
/// Free lines that are enough for any packet, at any place of the ring: a skip, the record, the line behind it.
inline constexpr std::size_t kRingLinesForAny = 2 * ring_lines_of(kRingMaxPayload);
static_assert(kRingLinesForAny < kRingLines, "an empty ring takes any packet");

/// The consumer's half of the bookkeeping, in a pair of lines of its own (the prefetcher fetches pairs).
struct RingControl {
  alignas(2 * kLineBytes) std::atomic<std::uint64_t> released{0};  ///< the producer may overwrite what lies before
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(RingControl) == 2 * kLineBytes);

namespace detail {

/// A kind of this ring only: nothing here up to the end of the ring.
inline constexpr PacketKind kRingSkip = PacketKind{0xff};

inline std::uint64_t ring_first_word(PacketKind kind, std::uint64_t position, std::uint32_t length) noexcept {
  return std::uint64_t{kWireVersion} | std::uint64_t{static_cast<std::uint8_t>(kind)} << 8 |
         std::uint64_t{static_cast<std::uint16_t>(position / kRingLines)} << 16 | std::uint64_t{length} << 32;
}

/// Whether `word` announces a record at `position`.
inline bool ring_word_is_fresh(std::uint64_t word, std::uint64_t position) noexcept {
  constexpr std::uint64_t kMask = 0xffff00ff;
  return (word & kMask) == (ring_first_word(PacketKind{0}, position, 0) & kMask);
}

/// memcpy for at most 40 bytes, without a call.
inline void copy_small(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes >= 16) {
    if (bytes > 32) std::memcpy(to + 16, from + 16, 16);
    std::byte last[16];
    std::memcpy(last, from + bytes - 16, 16);
    std::memcpy(to, from, 16);
    std::memcpy(to + bytes - 16, last, 16);
  } else if (bytes >= 8) {
    std::uint64_t first, last;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, from + bytes - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + bytes - 8, &last, 8);
  } else {
    for (std::size_t i = 0; i < bytes; ++i)
      to[i] = from[i];
  }
}

}  // namespace detail

/// The sending end. Thread: one. The memory outlives it.
class RingProducer {
 public:
  RingProducer() noexcept = default;
  /// `lines`: kRingBytes, zeroed, aligned to a line.
  RingProducer(std::byte* lines, const RingControl& control) noexcept : lines_(lines), control_(&control) {}

  /// Copies a packet in and publishes it; false when there is no room. header.channel is not used.
  /// Precondition: payload.size() == header.length <= kRingMaxPayload.
  [[nodiscard]] bool try_push(const WireHeader& header, std::span<const std::byte> payload) noexcept {
    WEFT_DEBUG_ASSERT(payload.size() == header.length && payload.size() <= kRingMaxPayload, "shm ring: wrong length");
    const std::size_t lines = ring_lines_of(payload.size());
    const std::size_t skipped = lines_skipped(lines);
    if (!has_room(skipped + lines + 1)) [[unlikely]]
      return false;

    const std::uint64_t start = head_ + skipped;
    const std::uint64_t end = start + lines;
    const auto behind = first_word(end);
    // relaxed: ordered by the release store below; see "No stale word looks fresh".
    if (detail::ring_word_is_fresh(behind.load(std::memory_order_relaxed), end)) [[unlikely]] {
      behind.store(0, std::memory_order_relaxed);
    }
    std::byte* const record = line(start);
    std::memcpy(record + 8, reinterpret_cast<const std::byte*>(&header) + 8, kWireHeaderBytes - 8);
    if (payload.size() <= kPayloadBytesInFirstLine) {
      detail::copy_small(record + kWireHeaderBytes, payload.data(), payload.size());
    } else {
      std::memcpy(record + kWireHeaderBytes, payload.data(), payload.size());
    }
    // release: whoever sees the word sees the rest of the record, and the line behind it as it was left above.
    first_word(start).store(detail::ring_first_word(header.kind, start, header.length), std::memory_order_release);
    if (skipped != 0) {
      first_word(head_).store(detail::ring_first_word(detail::kRingSkip, head_, 0), std::memory_order_release);
    }
    head_ = end;
    return true;
  }

  /// Whether that many lines are free. Looks at the consumer's side only when its last known position is not enough.
  [[nodiscard]] bool has_room(std::size_t lines) noexcept {
    if (kRingLines - (head_ - released_) >= lines) [[likely]]
      return true;
    // acquire: the consumer has read what is to be overwritten.
    const std::uint64_t released = control_->released.load(std::memory_order_acquire);
    if (released - released_ > head_ - released_) {
      broken_ = true;  // ahead of us, or gone back: no consumer writes that
      return false;
    }
    released_ = released;
    return kRingLines - (head_ - released_) >= lines;
  }

  /// Whether try_push() would take a packet with so much payload.
  [[nodiscard]] bool has_room_for(std::size_t payload_bytes) noexcept {
    const std::size_t lines = ring_lines_of(payload_bytes);
    return has_room(lines_skipped(lines) + lines + 1);
  }

  /// The consumer has written a position that cannot be; nothing was done with it.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

 private:
  /// What a record of so many lines leaves unused at the end of the ring.
  [[nodiscard]] std::size_t lines_skipped(std::size_t lines) const noexcept {
    const std::size_t to_end = kRingLines - head_ % kRingLines;
    return lines > to_end ? to_end : 0;
  }
  [[nodiscard]] std::byte* line(std::uint64_t position) const noexcept {
    return lines_ + position % kRingLines * kLineBytes;
  }
  [[nodiscard]] std::atomic_ref<std::uint64_t> first_word(std::uint64_t position) const noexcept {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(line(position)));
  }

  std::byte* lines_ = nullptr;
  const RingControl* control_ = nullptr;
  std::uint64_t head_ = 0;      ///< where the next record begins
  std::uint64_t released_ = 0;  ///< the consumer's position as last read
  bool broken_ = false;
};

/// What take() found.
enum class RingTake : std::uint8_t {
  empty,    ///< nothing
  record,   ///< a packet
  corrupt,  ///< bytes that no producer of this version writes; the ring is of no use any more
};

/// The receiving end. Thread: one. The memory outlives it.
class RingConsumer {
 public:
  RingConsumer() noexcept = default;
  RingConsumer(std::byte* lines, RingControl& control) noexcept : lines_(lines), control_(&control) {}

  /// Whether take() would find something.
  [[nodiscard]] bool ready() const noexcept {
    return detail::ring_word_is_fresh(first_word(position_).load(std::memory_order_acquire), position_);
  }

  /// The next packet. `payload` points into the ring and stays until release(); `header` is a checked copy.
  [[nodiscard]] RingTake take(WireHeader& header, std::span<const std::byte>& payload) noexcept {
    std::uint64_t word = first_word(position_).load(std::memory_order_acquire);  // pairs with try_push()
    if (!detail::ring_word_is_fresh(word, position_)) return RingTake::empty;
    std::size_t offset = position_ % kRingLines;
    if (static_cast<std::uint8_t>(word >> 8) == static_cast<std::uint8_t>(detail::kRingSkip)) [[unlikely]] {
      if (offset == 0) return RingTake::corrupt;  // a record fits in front of the end then
      const std::uint64_t next_lap = position_ + kRingLines - offset;
      word = first_word(next_lap).load(std::memory_order_acquire);
      // The record behind a skip is published before it.
      if (!detail::ring_word_is_fresh(word, next_lap)) return RingTake::corrupt;
      position_ = next_lap;
      offset = 0;
    }
    std::byte copy[kWireHeaderBytes];
    const std::byte* const record = lines_ + offset * kLineBytes;
    std::memcpy(copy, &word, sizeof word);  // the word that was checked, not what the ring says by now
    std::memcpy(copy + 8, record + 8, kWireHeaderBytes - 8);
    if (decode(copy, kRingMaxPayload, header) != Errc::ok) [[unlikely]]
      return RingTake::corrupt;
    const std::size_t lines = ring_lines_of(header.length);
    if (offset + lines > kRingLines || position_ + lines - released_ >= kRingLines) [[unlikely]] {
      return RingTake::corrupt;  // leaves the ring, or covers lines that have not been given back
    }
    payload = {record + kWireHeaderBytes, header.length};
    position_ += lines;
    return RingTake::record;
  }

  /// Gives everything that was taken back to the producer. Returns the number of lines.
  /// Cost: the producer reads the position only when it runs out of room, so this line seldom moves between cores.
  std::size_t release() noexcept {
    const std::uint64_t lines = position_ - released_;
    if (lines == 0) return 0;
    released_ = position_;
    control_->released.store(position_, std::memory_order_release);  // our reads of the lines come before
    return lines;
  }

 private:
  [[nodiscard]] std::atomic_ref<std::uint64_t> first_word(std::uint64_t position) const noexcept {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(lines_ + position % kRingLines * kLineBytes));
  }

  std::byte* lines_ = nullptr;
  RingControl* control_ = nullptr;
  std::uint64_t position_ = 0;
  std::uint64_t released_ = 0;  ///< what the producer has been told
};

}  // namespace weft::net
