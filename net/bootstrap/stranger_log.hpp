// Notes connections that did not prove the job's token, at a rate that nobody can drive up.
#pragma once

#include <cstddef>
#include <string_view>

#include "weft/runtime/clock.hpp"

namespace weft::net {

/// Thread: the reactor's.
class StrangerLog {
 public:
  /// A burst of kLines is written as it comes, then one line in kPause: it sums up what was left out since.
  static constexpr std::size_t kLines = 5;
  static constexpr Duration kPause = std::chrono::seconds(10);

  /// `reason` is what() of the error that ended the connection.
  void turned_away(std::string_view reason, Instant now);

  /// Connections turned away so far.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Lines written so far.
  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }

 private:
  std::size_t count_ = 0;
  std::size_t lines_ = 0;
  std::size_t unreported_ = 0;
  std::size_t in_burst_ = 0;
  Instant quiet_until_{};
};

}  // namespace weft::net
