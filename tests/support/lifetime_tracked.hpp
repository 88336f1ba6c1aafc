// A value that notices being used after it was moved from or destroyed, and counts how many are alive: what shows that
// a compiler or a container destroys something twice or never.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weft::test {

/// Thread: any; the count is of one thread.
class LifetimeTracked {
 public:
  explicit LifetimeTracked(int value = 0) noexcept : value_(value) { born(); }
  LifetimeTracked(const LifetimeTracked& other) noexcept : value_(other.value()) { born(); }
  LifetimeTracked(LifetimeTracked&& other) noexcept : value_(other.value()) {
    other.state_ = State::moved_from;
    born();
  }
  LifetimeTracked& operator=(const LifetimeTracked& other) noexcept {
    check_not_dead();
    value_ = other.value();
    state_ = State::alive;
    return *this;
  }
  LifetimeTracked& operator=(LifetimeTracked&& other) noexcept {
    check_not_dead();
    if (this == &other) return *this;
    value_ = other.value();
    state_ = State::alive;
    other.state_ = State::moved_from;
    return *this;
  }
  ~LifetimeTracked() {
    if (self_ != this || state_ == State::dead) ++double_deaths();
    state_ = State::dead;
    --alive();
  }

  [[nodiscard]] int value() const noexcept {
    if (state_ != State::alive || self_ != this) {
      std::fprintf(stderr, "LifetimeTracked: used after it was moved from or destroyed\n");
      std::abort();
    }
    return value_;
  }

  /// Constructed and not destroyed on this thread: 0 again at the end, negative when something died twice.
  [[nodiscard]] static std::int64_t& alive() noexcept {
    static thread_local std::int64_t count = 0;
    return count;
  }
  /// Destructions of what was not alive at its place.
  [[nodiscard]] static std::int64_t& double_deaths() noexcept {
    static thread_local std::int64_t count = 0;
    return count;
  }

 private:
  // Distinct values, so that stale memory is unlikely to look right.
  enum class State : std::uint32_t { alive = 0xA11CE0DE, moved_from = 0x30FEDF0A, dead = 0xDEADDEAD };

  void born() noexcept {
    self_ = this;
    ++alive();
  }
  void check_not_dead() const noexcept {
    if (state_ == State::dead || self_ != this) {
      std::fprintf(stderr, "LifetimeTracked: assigned to after it was destroyed\n");
      std::abort();
    }
  }

  volatile State state_ = State::alive;
  LifetimeTracked* volatile self_ = nullptr;
  int value_;
};

}  // namespace weft::test
