// The way into a reactor from other threads: a lock-free stack of items that many push and the reactor empties.
//
// A Treiber stack with a single consumer that takes everything at once, so there is no ABA and no node is read after
// it has been handed over. States of head_: null (empty), or the newest item, whose next_ leads to the older ones.
#pragma once

#include <atomic>

namespace weft {

/// Something to be done on the reactor's thread. Owned by whoever pushed it; it may free itself in deliver().
class MailboxItem {
 public:
  /// Runs on the reactor's thread; the mailbox does not touch the item afterwards.
  virtual void deliver() noexcept = 0;

 protected:
  MailboxItem() noexcept = default;
  ~MailboxItem() = default;

 private:
  friend class Mailbox;
  MailboxItem* next_ = nullptr;
};

class Mailbox {
 public:
  /// Any thread. Release: what the pusher wrote before is visible to deliver().
  void push(MailboxItem& item) noexcept {
    MailboxItem* head = head_.load(std::memory_order_relaxed);
    do {
      item.next_ = head;
    } while (!head_.compare_exchange_weak(head, &item, std::memory_order_release, std::memory_order_relaxed));
  }

  /// The reactor's thread. Relaxed: only a hint, or behind the full fence of the sleep protocol.
  [[nodiscard]] bool empty() const noexcept { return head_.load(std::memory_order_relaxed) == nullptr; }

  /// The reactor's thread: delivers what is there, oldest first. True if there was anything.
  bool deliver_all() noexcept {
    if (empty()) return false;
    MailboxItem* newest = head_.exchange(nullptr, std::memory_order_acquire);
    MailboxItem* oldest = nullptr;
    while (newest != nullptr) {
      MailboxItem* older = newest->next_;
      newest->next_ = oldest;
      oldest = newest;
      newest = older;
    }
    while (oldest != nullptr) {
      MailboxItem* next = oldest->next_;
      oldest->deliver();
      oldest = next;
    }
    return true;
  }

 private:
  std::atomic<MailboxItem*> head_{nullptr};
};

}  // namespace weft
