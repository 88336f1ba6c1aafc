// Which message belongs to which receive.
//
// hot: match_arrival(), post(), match_post(), add_unexpected(), release(). Receives that wait and messages that wait
// are each kept in a hash table by (context, source, tag); receives with a wildcard stand apart in the order in which
// they were posted, and messages also in the order in which they arrived. The oldest match wins on both sides, so
// messages of one source, context and tag never overtake one another.
//
// The protocol calls it in two steps, so that nothing that matches at once is ever queued:
//   receive:  match_post(pattern) gives a message to consume and release(), or nullptr: then post(receive).
//   arrival:  match_arrival(...) gives a receive to complete, or nullptr: then add_unexpected(...).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/net/match/keyed_queue.hpp"
#include "weft/net/match/posted_receive.hpp"
#include "weft/net/match/tag.hpp"
#include "weft/net/match/unexpected_message.hpp"
#include "weft/net/protocol/wire_header.hpp"
#include "weft/runtime/assert.hpp"
#include "weft/runtime/intrusive_list.hpp"
#include "weft/runtime/size_class_pool.hpp"

namespace weft::net {

/// What a matcher has done so far.
struct MatchCounters {
  std::uint64_t posted = 0;      ///< receives that had to wait
  std::uint64_t unexpected = 0;  ///< messages that had to wait
  std::uint64_t visited = 0;     ///< receives and messages looked at in search of a match: the work done
};

/// The posted and the unexpected queue of one rank.
///
/// Lifetime: pinned. Before it dies every receive must have left it and every message that match_post() gave out must
/// have been released; messages still queued are dropped.
/// Thread: the rank's reactor.
/// Cost: O(1) where the receive is exact, whatever is queued. A wildcard receive costs a walk over the older messages
/// when it is posted, and one step of every arrival while it waits. No allocation in steady state: tables grow to the
/// largest number of keys seen, messages come from a SizeClassPool.
class TagMatcher {
 public:
  TagMatcher() = default;
  TagMatcher(const TagMatcher&) = delete;
  TagMatcher& operator=(const TagMatcher&) = delete;
  ~TagMatcher();

  /// Takes off the oldest posted receive that accepts such a message. nullptr where there is none.
  [[nodiscard]] PostedReceive* match_arrival(std::uint32_t context, std::int32_t source, std::uint64_t tag) noexcept;

  /// Queues a message that match_arrival() had no receive for. Copies `payload`; payload.size() == header.length.
  UnexpectedMessage& add_unexpected(std::int32_t source, const WireHeader& header,
                                    std::span<const std::byte> payload) noexcept;

  /// Takes off the oldest unexpected message that `pattern` accepts; the caller must release() it. nullptr where there
  /// is none.
  [[nodiscard]] UnexpectedMessage* match_post(const MatchPattern& pattern) noexcept;

  /// Queues a receive that match_post() had no message for.
  void post(PostedReceive& receive) noexcept;

  /// Takes `receive` off. Returns false where it was not posted (matched already, or never posted).
  bool cancel(PostedReceive& receive) noexcept;

  /// Ends `message`, whether match_post() gave it out or it is still queued.
  void release(UnexpectedMessage& message) noexcept;

  /// The queued RTS with this slot of its sender; it stays. nullptr where it has been matched or never came.
  /// Cost: O(1).
  [[nodiscard]] UnexpectedMessage* find_unexpected_rts(std::int32_t source, std::uint32_t sender_slot) noexcept;

  /// Takes off every receive that names exactly `source` and hands each to `visit(PostedReceive&)`, in no particular
  /// order; receives from any source stay, unless `source` is kAnySource, which takes those and no others. Messages of
  /// the source stay too: they were delivered (whether an RTS can still be served is for the protocol to say). `visit`
  /// may call anything but the fail_ and drop_ functions. Cost: linear in what is posted.
  template <typename Visit>
  void fail_source(std::int32_t source, Visit visit) noexcept {
    take_posted(&names_source, source, 0);
    hand_out_taken(visit);
  }

  /// The same for every receive of `context`.
  template <typename Visit>
  void fail_context(std::uint32_t context, Visit visit) noexcept {
    take_posted(&names_context, 0, context);
    hand_out_taken(visit);
  }

  /// Shows every queued message of `context` to `visit(const UnexpectedMessage&)`, oldest first; they stay. `visit`
  /// must not call the matcher. Cost: linear in what is queued.
  template <typename Visit>
  void for_each_unexpected(std::uint32_t context, Visit visit) noexcept {
    for (UnexpectedMessage* message = arrivals_.first(); message != nullptr;
         message = arrivals_.next(*message)) {
      if (message->header().context == context) visit(static_cast<const UnexpectedMessage&>(*message));
    }
  }

  /// Hands every queued message of `context` to `visit(const UnexpectedMessage&)`, oldest first, then releases it. For
  /// a communicator that is closed: the protocol answers the RTS among them. `visit` must not call the matcher.
  /// Cost: linear in what is queued.
  template <typename Visit>
  void drop_context(std::uint32_t context, Visit visit) noexcept {
    UnexpectedMessage* next = nullptr;
    for (UnexpectedMessage* message = arrivals_.first(); message != nullptr; message = next) {
      next = arrivals_.next(*message);
      if (message->header().context != context) continue;
      visit(static_cast<const UnexpectedMessage&>(*message));
      release(*message);
    }
  }
  void drop_context(std::uint32_t context) noexcept {
    drop_context(context, [](const UnexpectedMessage&) noexcept {});
  }

  /// Receives that wait.
  [[nodiscard]] std::size_t posted_count() const noexcept { return posted_count_; }
  /// Messages not released yet, and the bytes of their payload.
  [[nodiscard]] std::size_t unexpected_count() const noexcept { return unexpected_count_; }
  [[nodiscard]] std::size_t unexpected_bytes() const noexcept { return unexpected_bytes_; }

  [[nodiscard]] MatchCounters counters() const noexcept;
  [[nodiscard]] const SizeClassPool& pool() const noexcept { return pool_; }
  /// Of both tables: they double when they hold more keys than this.
  [[nodiscard]] std::size_t buckets() const noexcept { return posted_.buckets() + unexpected_.buckets(); }

 private:
  using Selector = bool (*)(const MatchPattern&, std::int32_t source, std::uint32_t context) noexcept;

  static bool names_source(const MatchPattern& pattern, std::int32_t source, std::uint32_t context) noexcept;
  static bool names_context(const MatchPattern& pattern, std::int32_t source, std::uint32_t context) noexcept;

  // Moves the receives that are selected to taken_.
  void take_posted(Selector selects, std::int32_t source, std::uint32_t context) noexcept;

  template <typename Visit>
  void hand_out_taken(Visit& visit) noexcept {
    while (PostedReceive* receive = taken_.pop_front()) {
      --posted_count_;
      visit(*receive);
    }
  }

  PostedReceive* oldest_wildcard(const MatchKey& key, std::uint64_t before) noexcept;
  void dequeue(UnexpectedMessage& message) noexcept;

  SizeClassPool pool_;

  KeyedQueue<PostedReceive, detail::ByPattern> posted_;  // exact
  IntrusiveList<PostedReceive> wildcard_;                // in the order of posting
  IntrusiveList<PostedReceive> taken_;  // on their way out of fail_source() or fail_context(); can be cancelled still

  KeyedQueue<UnexpectedMessage, detail::ByEnvelope> unexpected_;
  IntrusiveList<UnexpectedMessage> arrivals_;                     // the same messages, in the order of arrival
  KeyedQueue<UnexpectedMessage, detail::BySlot> unexpected_rts_;  // the RTS among them

  std::uint64_t next_sequence_ = 1;  // of receives and messages alike
  std::size_t posted_count_ = 0;
  std::size_t unexpected_count_ = 0;
  std::size_t unexpected_bytes_ = 0;
  MatchCounters counters_;
};

}  // namespace weft::net
