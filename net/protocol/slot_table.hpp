// Names for rendezvous operations on the wire: a peer repeats the name, and we look it up instead of trusting a
// pointer.
//
// A name is a 20-bit index and a 12-bit generation that changes with every use of the index, so that a late or invented
// packet finds nothing (or, after 4096 uses of one index by the same peer's mistake, another operation whose peer is
// then checked). Index 0 with generation 0 is never given out.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/runtime/assert.hpp"

namespace weft::net {

/// Thread: the rank's reactor. Cost: allocates only when more operations are live than ever before.
template <typename T>
class SlotTable {
 public:
  static constexpr std::uint32_t kIndexBits = 20;
  static constexpr std::uint32_t kMaxLive = (1U << kIndexBits) - 1;

  /// Names `object` until remove(). Aborts when a million operations are live.
  std::uint32_t add(T& object) {
    if (first_free_ == kNone) {
      WEFT_ASSERT(slots_.size() < kMaxLive, "more than a million rendezvous operations in flight");
      slots_.push_back(Slot{nullptr, kNone, 0});
      first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t index = first_free_;
    Slot& slot = slots_[index];
    first_free_ = slot.next_free;
    slot.generation = (slot.generation % kGenerations) + 1;
    slot.object = &object;
    return slot.generation << kIndexBits | index;
  }

  void remove(std::uint32_t name) noexcept {
    const std::uint32_t index = name & kMaxLive;
    WEFT_DEBUG_ASSERT(find(name) != nullptr, "SlotTable::remove: not a live name");
    slots_[index].object = nullptr;
    slots_[index].next_free = first_free_;
    first_free_ = index;
  }

  /// nullptr for a name that is not live.
  [[nodiscard]] T* find(std::uint32_t name) const noexcept {
    const std::uint32_t index = name & kMaxLive;
    if (index >= slots_.size() || slots_[index].generation != name >> kIndexBits) return nullptr;
    return slots_[index].object;
  }

  /// Calls visit(T&) for every live object; visit may remove the object it was given.
  template <typename Visit>
  void for_each(Visit visit) noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].object != nullptr) visit(*slots_[i].object);
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kGenerations = (1U << (32 - kIndexBits)) - 1;

  struct Slot {
    T* object;
    std::uint32_t next_free;
    std::uint32_t generation;
  };
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
};

}  // namespace weft::net
