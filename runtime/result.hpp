// A value or the Error that stands in its place; libstdc++ 12 has no std::expected in C++20.
#pragma once

#include <utility>
#include <variant>

#include "weft/runtime/assert.hpp"
#include "weft/runtime/error.hpp"

namespace weft {

/// Either a T or an Error. Reading the side that is not there aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() & {
    WEFT_ASSERT(has_value(), "Result::value: this result holds an error");
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    WEFT_ASSERT(has_value(), "Result::value: this result holds an error");
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && { return std::move(this->value()); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    WEFT_ASSERT(!has_value(), "Result::error: this result holds a value");
    return *std::get_if<1>(&state_);
  }
  /// Errc::ok when there is a value.
  [[nodiscard]] Errc code() const noexcept { return has_value() ? Errc::ok : std::get_if<1>(&state_)->code(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const { WEFT_ASSERT(has_value(), "Result::value: this result holds an error"); }
  [[nodiscard]] const Error& error() const {
    WEFT_ASSERT(!has_value(), "Result::error: this result holds a value");
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Errc code() const noexcept { return has_value() ? Errc::ok : std::get_if<1>(&state_)->code(); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace weft
