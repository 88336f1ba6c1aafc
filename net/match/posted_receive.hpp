// A receive that waits for its message: the part of it that matching knows.
#pragma once

#include <cstdint>

#include "weft/net/match/keyed_queue.hpp"
#include "weft/net/match/tag.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft::net {

class PostedReceive;

namespace detail {

/// Files exact receives under the one key that they accept.
struct ByPattern {
  static MatchKey key(const PostedReceive& receive) noexcept;
};

}  // namespace detail

/// Base of a receive operation; lives in the receiver's coroutine frame. Pinned, and must have left the matcher (by a
/// match, cancel(), fail_source() or fail_context()) before it dies; dying posted aborts.
class PostedReceive : public KeyedHook<detail::ByPattern>, public ListHook<> {
 public:
  explicit PostedReceive(const MatchPattern& pattern) noexcept : pattern_(pattern) {}

  [[nodiscard]] const MatchPattern& pattern() const noexcept { return pattern_; }
  /// Its place in the order of posting; 0 before it was posted.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// Whether a matcher holds it.
  [[nodiscard]] bool posted() const noexcept { return by_key().queued() || ListHook<>::linked(); }

 protected:
  ~PostedReceive() = default;

 private:
  friend class TagMatcher;

  [[nodiscard]] const KeyedHook<detail::ByPattern>& by_key() const noexcept { return *this; }

  MatchPattern pattern_;
  std::uint64_t sequence_ = 0;
};

inline MatchKey detail::ByPattern::key(const PostedReceive& receive) noexcept {
  return receive.pattern().key();
}

}  // namespace weft::net
