// A hash table of queues: for every key the objects that have it, oldest first. Both halves of matching are one.
//
// hot: push_back(), oldest(), erase(). The links live in the objects. The oldest object of a key, its leader, stands in
// the chain of its bucket; the younger ones stand in a list that the leader carries. So a chain holds each key once,
// and ten thousand objects under one key cost those under other keys nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "weft/net/match/tag.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft::net {

namespace detail {
template <typename KeyOf>
struct LeaderBy;
template <typename KeyOf>
struct FollowerBy;
}  // namespace detail

/// The links of one membership. `KeyOf` says by which key, and so tells apart several queues that one object may be on:
/// KeyOf::key(const T&) returns its MatchKey, which must not change while it is queued.
template <typename KeyOf>
class KeyedHook : public ListHook<detail::LeaderBy<KeyOf>>, public ListHook<detail::FollowerBy<KeyOf>> {
 public:
  [[nodiscard]] bool queued() const noexcept { return leader() || follower(); }

 private:
  template <typename T, typename QueueKeyOf>
  friend class KeyedQueue;

  [[nodiscard]] bool leader() const noexcept { return ListHook<detail::LeaderBy<KeyOf>>::linked(); }
  [[nodiscard]] bool follower() const noexcept { return ListHook<detail::FollowerBy<KeyOf>>::linked(); }

  IntrusiveList<KeyedHook, detail::FollowerBy<KeyOf>> followers_;  // empty unless this is a leader
};

/// Objects that derive from KeyedHook<KeyOf>, by key. Owns nothing; must be empty when it dies.
///
/// Thread: one at a time.
/// Cost: every operation is O(1) for a mixing hash. No allocation, but that the table doubles whenever there are more
/// keys than buckets; it never shrinks. Where memory for that is out it stays as it is, with longer chains.
template <typename T, typename KeyOf>
class KeyedQueue {
  using Node = KeyedHook<KeyOf>;
  using Chain = IntrusiveList<Node, detail::LeaderBy<KeyOf>>;
  using Followers = IntrusiveList<Node, detail::FollowerBy<KeyOf>>;

 public:
  /// 256 heads of a chain fill one page.
  static constexpr std::size_t kFirstBuckets = 256;

  KeyedQueue() : chains_(new Chain[kFirstBuckets]), shift_(shift_for(kFirstBuckets)) {}

  [[nodiscard]] bool empty() const noexcept { return keys_ == 0; }

  /// Files `object` behind the others of its key.
  void push_back(T& object) noexcept {
    Node& node = object;
    const MatchKey key = KeyOf::key(object);
    Chain& chain = chain_of(key);
    if (Node* leader = leader_in(chain, key)) {
      leader->followers_.push_back(node);
      return;
    }
    chain.push_front(node);
    if (++keys_ > buckets()) [[unlikely]]
      grow();
  }

  /// The object that has been under `key` for longest; it stays. nullptr where there is none.
  [[nodiscard]] T* oldest(const MatchKey& key) noexcept {
    return empty() ? nullptr : static_cast<T*>(leader_in(chain_of(key), key));
  }

  /// Takes `object` off. Precondition: it is on this queue.
  void erase(T& object) noexcept {
    Node& node = object;
    if (node.follower()) return Followers::erase(node);
    WEFT_DEBUG_ASSERT(node.leader(), "KeyedQueue::erase: not on the queue");
    Chain::erase(node);
    if (node.followers_.empty()) {
      --keys_;
      return;
    }
    Node& heir = *node.followers_.pop_front();
    heir.followers_.splice_back(node.followers_);
    chain_of(key_of(heir)).push_front(heir);
  }

  /// Calls visit(T&) for every object, those of one key oldest first; visit may erase the object that it was given, and
  /// nothing else. Cost: linear in buckets and objects.
  template <typename Visit>
  void for_each(Visit visit) noexcept {
    for (std::size_t index = 0; index < buckets() && !empty(); ++index) {
      Node* next_leader = nullptr;
      for (Node* leader = chains_[index].first(); leader != nullptr; leader = next_leader) {
        next_leader = chains_[index].next(*leader);
        visit_key(*leader, visit);
      }
    }
  }

  [[nodiscard]] std::size_t buckets() const noexcept { return std::size_t{1} << (64 - shift_); }
  /// Objects looked at by push_back() and oldest() so far: the work of matching, for tests.
  [[nodiscard]] std::uint64_t visited() const noexcept { return visited_; }

 private:
  static int shift_for(std::size_t buckets) noexcept { return 64 - std::countr_zero(buckets); }
  static MatchKey key_of(const Node& node) noexcept { return KeyOf::key(static_cast<const T&>(node)); }
  Chain& chain_of(const MatchKey& key) noexcept { return chains_[key.hash() >> shift_]; }

  Node* leader_in(Chain& chain, const MatchKey& key) noexcept {
    for (Node* node = chain.first(); node != nullptr; node = chain.next(*node)) {
      ++visited_;
      if (key_of(*node) == key) return node;
    }
    return nullptr;
  }

  template <typename Visit>
  void visit_key(Node& leader, Visit& visit) noexcept {
    Node* front = &leader;  // an erased leader is followed by the next node, which then carries the rest
    for (Node *node = &leader, *next = nullptr; node != nullptr; node = next) {
      if (node->leader()) front = node;
      next = node == front ? front->followers_.first() : front->followers_.next(*node);
      visit(static_cast<T&>(*node));
    }
  }

  [[gnu::cold, gnu::noinline]] void grow() noexcept {
    const std::size_t old_buckets = buckets();
    std::unique_ptr<Chain[]> old(new (std::nothrow) Chain[2 * old_buckets]);
    if (old == nullptr) return;
    chains_.swap(old);
    --shift_;
    for (std::size_t index = 0; index < old_buckets; ++index) {
      while (Node* leader = old[index].pop_front())
        chain_of(key_of(*leader)).push_back(*leader);
    }
  }

  std::unique_ptr<Chain[]> chains_;
  int shift_;             // the high bits of a hash choose the chain: buckets() == 2^(64 - shift_)
  std::size_t keys_ = 0;  // leaders
  std::uint64_t visited_ = 0;
};

}  // namespace weft::net
