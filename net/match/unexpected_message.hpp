// A message that arrived before its receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/net/match/keyed_queue.hpp"
#include "weft/net/match/tag.hpp"
#include "weft/net/protocol/wire_header.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft::net {

class UnexpectedMessage;

namespace detail {

/// Files messages under their envelope.
struct ByEnvelope {
  static MatchKey key(const UnexpectedMessage& message) noexcept;
};

/// Files RTS under their source and their sender's slot.
struct BySlot {
  static MatchKey key(std::int32_t source, std::uint32_t sender_slot) noexcept { return {0, source, sender_slot}; }
  static MatchKey key(const UnexpectedMessage& message) noexcept;
};

}  // namespace detail

/// Made by TagMatcher::add_unexpected() in the matcher's pool, ended by TagMatcher::release(). Holds a copy of the
/// payload: the whole message of an eager packet, the RtsPayload of an RTS.
class UnexpectedMessage : public KeyedHook<detail::ByEnvelope>, public KeyedHook<detail::BySlot>, public ListHook<> {
 public:
  [[nodiscard]] std::int32_t source() const noexcept { return source_; }
  [[nodiscard]] const WireHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::span<const std::byte> payload() const noexcept { return {payload_, header_.length}; }
  /// Its place in the order of arrival.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] MatchKey key() const noexcept { return {header_.context, source_, header_.tag}; }
  /// False once match_post() has given it out.
  [[nodiscard]] bool queued() const noexcept { return ListHook<>::linked(); }

 private:
  friend class TagMatcher;

  UnexpectedMessage(std::int32_t source, const WireHeader& header, std::uint64_t sequence, std::byte* payload) noexcept
      : header_(header), source_(source), sequence_(sequence), payload_(payload) {}
  ~UnexpectedMessage() = default;

  WireHeader header_;
  std::int32_t source_;
  std::uint64_t sequence_;
  std::byte* payload_;  // behind this object, or a block of its own
};

inline MatchKey detail::ByEnvelope::key(const UnexpectedMessage& message) noexcept {
  return message.key();
}
inline MatchKey detail::BySlot::key(const UnexpectedMessage& message) noexcept {
  return key(message.source(), message.header().aux);
}

}  // namespace weft::net
