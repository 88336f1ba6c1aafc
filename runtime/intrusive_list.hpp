// A doubly linked list whose links live in the waiting object: waiting costs no allocation, and an object can leave
// in constant time when it is cancelled.
#pragma once

#include <cstddef>

#include "weft/runtime/assert.hpp"

namespace weft {

template <typename T, typename Tag>
class IntrusiveList;

/// The links of one membership. `Tag` tells apart several lists that one object may be on. Pinned: a list holds its
/// address. Must have left its list before it dies.
template <typename Tag = void>
class ListHook {
 public:
  ListHook() noexcept = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { WEFT_ASSERT(next_ == nullptr, "an object died while it was still on an intrusive list"); }

  [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }

  /// Leaves its list, whichever that is. Precondition: linked().
  void unlink() noexcept {
    WEFT_DEBUG_ASSERT(linked(), "ListHook::unlink: not on a list");
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  template <typename T, typename ListTag>
  friend class IntrusiveList;
  ListHook* next_ = nullptr;
  ListHook* previous_ = nullptr;
};

/// A list of objects that derive from ListHook<Tag>. Owns nothing.
template <typename T, typename Tag = void>
class IntrusiveList {
  using Hook = ListHook<Tag>;

 public:
  IntrusiveList() noexcept { head_.next_ = head_.previous_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    WEFT_ASSERT(empty(), "an intrusive list died while objects were still waiting on it");
    head_.next_ = head_.previous_ = nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }
  [[nodiscard]] T& front() noexcept { return *static_cast<T*>(head_.next_); }

  void push_back(T& object) noexcept { insert_before(head_, object); }
  void push_front(T& object) noexcept { insert_before(*head_.next_, object); }

  /// Takes the oldest object off. Returns nullptr when there is none.
  T* pop_front() noexcept {
    if (empty()) return nullptr;
    T& object = front();
    static_cast<Hook&>(object).unlink();
    return &object;
  }

  static void erase(T& object) noexcept { static_cast<Hook&>(object).unlink(); }

  /// The object behind `object`, or nullptr at the end.
  [[nodiscard]] T* next(T& object) noexcept {
    Hook* hook = static_cast<Hook&>(object).next_;
    return hook == &head_ ? nullptr : static_cast<T*>(hook);
  }
  [[nodiscard]] T* first() noexcept { return empty() ? nullptr : &front(); }

  /// Moves everything from `other` to the end of this list.
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    Hook* first = other.head_.next_;
    Hook* last = other.head_.previous_;
    other.head_.next_ = other.head_.previous_ = &other.head_;
    first->previous_ = head_.previous_;
    head_.previous_->next_ = first;
    last->next_ = &head_;
    head_.previous_ = last;
  }

 private:
  void insert_before(Hook& place, Hook& hook) noexcept {
    WEFT_DEBUG_ASSERT(!hook.linked(), "IntrusiveList: the object is on a list already");
    hook.next_ = &place;
    hook.previous_ = place.previous_;
    place.previous_->next_ = &hook;
    place.previous_ = &hook;
  }

  Hook head_;
};

}  // namespace weft
