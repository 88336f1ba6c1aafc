// StreamWork: a closure on its way to a stream's worker. What std::function cannot do: hold what only moves, and keep
// closures of the usual size in place, so that enqueuing them allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weft::gpu {

/// A callable without arguments and result; empty by default. Move-only.
/// Cost: an allocation for closures above kInlineBytes, or whose move can throw.
class StreamWork {
 public:
  static constexpr std::size_t kInlineBytes = 96;

  StreamWork() noexcept = default;
  template <typename Function>
  requires(std::is_invocable_v<std::decay_t<Function>&> &&
           !std::is_same_v<std::decay_t<Function>, StreamWork>) explicit StreamWork(Function&& function) {
    using Closure = std::decay_t<Function>;
    if constexpr (fits<Closure>()) {
      ::new (static_cast<void*>(storage_)) Closure(std::forward<Function>(function));
      actions_ = &kInPlace<Closure>;
    } else {
      ::new (static_cast<void*>(storage_)) Closure*(new Closure(std::forward<Function>(function)));
      actions_ = &kOnHeap<Closure>;
    }
  }
  StreamWork(StreamWork&& other) noexcept { take(other); }
  StreamWork& operator=(StreamWork&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~StreamWork() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return actions_ != nullptr; }

  /// Precondition: not empty.
  void operator()() { actions_->run(storage_); }

  /// Destroys the closure and what it captured.
  void reset() noexcept {
    if (actions_ != nullptr) std::exchange(actions_, nullptr)->destroy(storage_);
  }

 private:
  struct Actions {
    void (*run)(void* storage);
    void (*move)(void* from, void* to) noexcept;  ///< leaves `from` destroyed
    void (*destroy)(void* storage) noexcept;
  };

  template <typename Closure>
  static constexpr bool fits() noexcept {
    return sizeof(Closure) <= kInlineBytes && alignof(Closure) <= alignof(std::max_align_t) &&
           std::is_nothrow_move_constructible_v<Closure>;
  }

  template <typename Closure>
  static Closure& in(void* storage) noexcept {
    return *std::launder(static_cast<Closure*>(storage));
  }

  template <typename Closure>
  static constexpr Actions kInPlace{[](void* storage) { static_cast<void>(in<Closure>(storage)()); },
                                    [](void* from, void* to) noexcept {
                                      ::new (to) Closure(std::move(in<Closure>(from)));
                                      in<Closure>(from).~Closure();
                                    },
                                    [](void* storage) noexcept { in<Closure>(storage).~Closure(); }};

  template <typename Closure>
  static constexpr Actions kOnHeap{[](void* storage) { static_cast<void>((*in<Closure*>(storage))()); },
                                   [](void* from, void* to) noexcept { ::new (to) Closure*(in<Closure*>(from)); },
                                   [](void* storage) noexcept { delete in<Closure*>(storage); }};

  void take(StreamWork& other) noexcept {
    actions_ = std::exchange(other.actions_, nullptr);
    if (actions_ != nullptr) actions_->move(other.storage_, storage_);
  }

  const Actions* actions_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
};

}  // namespace weft::gpu
