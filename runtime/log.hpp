// What Weft tells the operator of a job: one line each on stderr, from WEFT_LOG's level on.
//
// Logging is for what no caller can be told (a stranger at the port, a fallback that was taken). A failure that
// somebody awaits is an Error and is not logged as well. Never on the data path.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };

/// "trace", "debug", "info", "warning", "error", "off"; nothing for any other text.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view text) noexcept;

/// The level from which lines are written: WEFT_LOG as it stood at the first call, `warning` where it is unset or no
/// level. Thread: any.
[[nodiscard]] LogLevel log_level() noexcept;

/// Writes one line with time, process and level. Line ends and control characters inside `text` are made visible, so
/// that what a peer sent cannot forge a line. Never throws; a line that cannot be written is dropped. Thread: any.
void log(LogLevel level, std::string_view text) noexcept;

}  // namespace weft
