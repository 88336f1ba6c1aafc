// hot, but for the destructor and take_posted().
#include "weft/net/match/tag_matcher.hpp"

#include <cstring>
#include <limits>
#include <new>

#include "weft/runtime/assert.hpp"

namespace weft::net {

namespace {

// Up to here a payload lies behind its message in one block of the pool's fine steps. A larger one gets a block of its
// own, so that 32 KiB of payload do not ask for the class of 64 KiB.
constexpr std::size_t kOneBlockBytes = SizeClassPool::kLastStepBytes;

constexpr bool one_block(std::size_t payload_bytes) noexcept {
  return sizeof(UnexpectedMessage) + payload_bytes <= kOneBlockBytes;
}

}  // namespace

TagMatcher::~TagMatcher() {
  while (UnexpectedMessage* message = arrivals_.first())
    release(*message);
  WEFT_ASSERT(posted_count_ == 0, "a tag matcher died while receives were still posted");
  WEFT_ASSERT(unexpected_count_ == 0, "a tag matcher died before every message it had given out was released");
}

PostedReceive* TagMatcher::match_arrival(std::uint32_t context, std::int32_t source, std::uint64_t tag) noexcept {
  const MatchKey key{context, source, tag};
  PostedReceive* match = posted_.oldest(key);
  if (!wildcard_.empty()) [[unlikely]] {
    const std::uint64_t before = match != nullptr ? match->sequence_ : std::numeric_limits<std::uint64_t>::max();
    if (PostedReceive* older = oldest_wildcard(key, before)) {
      IntrusiveList<PostedReceive>::erase(*older);
      --posted_count_;
      return older;
    }
  }
  if (match == nullptr) return nullptr;
  posted_.erase(*match);
  --posted_count_;
  return match;
}

PostedReceive* TagMatcher::oldest_wildcard(const MatchKey& key, std::uint64_t before) noexcept {
  for (PostedReceive* receive = wildcard_.first(); receive != nullptr; receive = wildcard_.next(*receive)) {
    if (receive->sequence_ > before) return nullptr;
    ++counters_.visited;
    if (matches(receive->pattern_, key)) return receive;
  }
  return nullptr;
}

UnexpectedMessage& TagMatcher::add_unexpected(std::int32_t source, const WireHeader& header,
                                              std::span<const std::byte> payload) noexcept {
  WEFT_ASSERT(payload.size() == header.length, "add_unexpected: header and payload disagree about the length");
  const bool joined = one_block(payload.size());
  void* block = pool_.allocate(sizeof(UnexpectedMessage) + (joined ? payload.size() : 0));
  auto* bytes = joined ? static_cast<std::byte*>(block) + sizeof(UnexpectedMessage)
                       : static_cast<std::byte*>(pool_.allocate(payload.size()));
  auto& message = *::new (block) UnexpectedMessage(source, header, next_sequence_++, bytes);
  if (!payload.empty()) std::memcpy(bytes, payload.data(), payload.size());

  unexpected_.push_back(message);
  arrivals_.push_back(message);
  if (header.kind == PacketKind::rts) unexpected_rts_.push_back(message);
  ++counters_.unexpected;
  ++unexpected_count_;
  unexpected_bytes_ += payload.size();
  return message;
}

UnexpectedMessage* TagMatcher::match_post(const MatchPattern& pattern) noexcept {
  UnexpectedMessage* match = nullptr;
  if (pattern.exact()) [[likely]] {
    match = unexpected_.oldest(pattern.key());
  } else {
    for (match = arrivals_.first(); match != nullptr; match = arrivals_.next(*match)) {
      ++counters_.visited;
      if (matches(pattern, match->key())) break;
    }
  }
  if (match != nullptr) dequeue(*match);
  return match;
}

void TagMatcher::post(PostedReceive& receive) noexcept {
  WEFT_ASSERT(!receive.posted(), "post: this receive is posted already");
  receive.sequence_ = next_sequence_++;
  if (receive.pattern_.exact()) [[likely]] {
    posted_.push_back(receive);
  } else {
    wildcard_.push_back(receive);
  }
  ++counters_.posted;
  ++posted_count_;
}

bool TagMatcher::cancel(PostedReceive& receive) noexcept {
  if (receive.by_key().queued()) {
    posted_.erase(receive);
  } else if (static_cast<ListHook<>&>(receive).linked()) {
    IntrusiveList<PostedReceive>::erase(receive);  // of wildcard_ or taken_
  } else {
    return false;
  }
  --posted_count_;
  return true;
}

void TagMatcher::dequeue(UnexpectedMessage& message) noexcept {
  unexpected_.erase(message);
  IntrusiveList<UnexpectedMessage>::erase(message);
  if (message.header_.kind == PacketKind::rts) unexpected_rts_.erase(message);
}

void TagMatcher::release(UnexpectedMessage& message) noexcept {
  if (message.queued()) dequeue(message);
  const std::size_t payload_bytes = message.header_.length;
  --unexpected_count_;
  unexpected_bytes_ -= payload_bytes;
  const bool joined = one_block(payload_bytes);
  if (!joined) pool_.deallocate(message.payload_, payload_bytes);
  message.~UnexpectedMessage();
  pool_.deallocate(&message, sizeof(UnexpectedMessage) + (joined ? payload_bytes : 0));
}

UnexpectedMessage* TagMatcher::find_unexpected_rts(std::int32_t source, std::uint32_t sender_slot) noexcept {
  return unexpected_rts_.oldest(detail::BySlot::key(source, sender_slot));
}

bool TagMatcher::names_source(const MatchPattern& pattern, std::int32_t source, std::uint32_t) noexcept {
  return pattern.source == source;
}

bool TagMatcher::names_context(const MatchPattern& pattern, std::int32_t, std::uint32_t context) noexcept {
  return pattern.context == context;
}

void TagMatcher::take_posted(Selector selects, std::int32_t source, std::uint32_t context) noexcept {
  WEFT_ASSERT(taken_.empty(), "fail_source or fail_context was called by its own visitor");
  posted_.for_each([&](PostedReceive& receive) noexcept {
    if (!selects(receive.pattern_, source, context)) return;
    posted_.erase(receive);
    taken_.push_back(receive);
  });
  PostedReceive* next = nullptr;
  for (PostedReceive* receive = wildcard_.first(); receive != nullptr; receive = next) {
    next = wildcard_.next(*receive);
    if (!selects(receive->pattern_, source, context)) continue;
    IntrusiveList<PostedReceive>::erase(*receive);
    taken_.push_back(*receive);
  }
}

MatchCounters TagMatcher::counters() const noexcept {
  MatchCounters all = counters_;
  all.visited += posted_.visited() + unexpected_.visited() + unexpected_rts_.visited();
  return all;
}

}  // namespace weft::net
