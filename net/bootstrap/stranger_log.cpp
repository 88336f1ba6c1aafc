#include "weft/net/bootstrap/stranger_log.hpp"

#include <string>

#include "weft/runtime/log.hpp"

namespace weft::net {

void StrangerLog::turned_away(std::string_view reason, Instant now) {
  ++count_;
  if (now >= quiet_until_ && in_burst_ >= kLines) in_burst_ = unreported_ > 0 ? kLines - 1 : 0;
  if (in_burst_ >= kLines) {
    ++unreported_;
    return;
  }
  std::string line = "store: turned a stranger away: " + std::string(reason);
  if (unreported_ > 0) line += " (and " + std::to_string(unreported_) + " more since the last line)";
  unreported_ = 0;
  ++in_burst_;
  ++lines_;
  quiet_until_ = saturating_add(now, kPause);
  log(LogLevel::warning, line);
}

}  // namespace weft::net
