#include "weft/runtime/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace weft {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels = {{
    {"trace", LogLevel::trace},
    {"debug", LogLevel::debug},
    {"info", LogLevel::info},
    {"warning", LogLevel::warning},
    {"error", LogLevel::error},
    {"off", LogLevel::off},
}};

[[nodiscard]] spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return spdlog::level::trace;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: break;
  }
  return spdlog::level::off;
}

[[nodiscard]] LogLevel level_from_environment() noexcept {
  const char* const text = std::getenv("WEFT_LOG");
  return text == nullptr ? LogLevel::warning : parse_log_level(text).value_or(LogLevel::warning);
}

/// A logger of its own: spdlog's registry belongs to the program around us.
[[nodiscard]] spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e weft[%P] %l: %v");
    made->set_level(spdlog_level(log_level()));
    made->flush_on(spdlog::level::trace);
    made->set_error_handler([](const std::string& /*message*/) {});
    return made;
  }();
  return *instance;
}

[[nodiscard]] std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string clean;
  clean.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      clean += c;
    } else {
      clean += "\\x";
      clean += kDigits[byte >> 4];
      clean += kDigits[byte & 15];
    }
  }
  return clean;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) noexcept {
  for (const auto& [name, level] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

LogLevel log_level() noexcept {
  static const LogLevel level = level_from_environment();
  return level;
}

void log(LogLevel level, std::string_view text) noexcept {
  if (level == LogLevel::off || level < log_level()) return;
  try {
    const std::string line = printable(text);
    logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {
    // Out of memory, or stderr is closed: a lost line is the smaller evil.
  }
}

}  // namespace weft
