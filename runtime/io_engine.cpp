#include "weft/runtime/io_engine.hpp"

#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "weft/runtime/detail/watch_table.hpp"
#include "weft/runtime/epoll_engine.hpp"
#include "weft/runtime/io_uring_engine.hpp"

namespace weft {
namespace {

IoEngineKind kind_from_environment() {
  const char* text = std::getenv("WEFT_IO_ENGINE");
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty() || value == "auto") return IoEngineKind::automatic;
  if (value == "io_uring") return IoEngineKind::io_uring;
  if (value == "epoll") return IoEngineKind::epoll;
  throw Error(Errc::bad_environment, "WEFT_IO_ENGINE",
              "'" + std::string(value) + "' is not an io engine; use auto, io_uring or epoll");
}

// The kernel, a filter or a limit says no, and epoll may still say yes. Anything else (no descriptor left) would hit
// epoll as well and is an error.
bool epoll_may_do(int error) noexcept {
  return error == 0 || error == EPERM || error == EACCES || error == ENOSYS || error == ENOMEM || error == EINVAL;
}

}  // namespace

IoEvents detail::events_from_poll_mask(std::uint32_t mask) noexcept {
  const bool dead = (mask & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  // POLLRDHUP alone is a peer that has ended its own stream; no part of Weft does that and then goes on reading.
  const bool ended = (mask & POLLRDHUP) != 0;
  return IoEvents{.readable = dead || ended || (mask & (POLLIN | POLLPRI)) != 0,
                  .writable = dead || (mask & POLLOUT) != 0,
                  .hangup = dead || ended};
}

std::unique_ptr<IoEngine> make_io_engine(IoEngineKind kind, std::string* notice) {
  if (kind == IoEngineKind::automatic) kind = kind_from_environment();
  if (kind == IoEngineKind::epoll) return std::make_unique<EpollEngine>();
  IoUringAttempt attempt = try_make_io_uring_engine();
  if (attempt.engine != nullptr) return std::move(attempt.engine);
  if (kind == IoEngineKind::io_uring || !epoll_may_do(attempt.error)) {
    const Errc refused = epoll_may_do(attempt.error) ? Errc::unsupported : errc_from_errno(attempt.error);
    throw Error(refused, "io engine",
                std::string("io_uring is not available: ") + attempt.reason +
                    (refused == Errc::unsupported ? "; WEFT_IO_ENGINE=epoll works everywhere" : ""),
                kNoRank, attempt.error);
  }
  if (notice != nullptr) {
    *notice = std::string("io_uring is not available, epoll is used instead: ") + attempt.reason +
              (attempt.error != 0 ? std::string(" (") + std::strerror(attempt.error) + ")" : std::string()) + ".";
  }
  return std::make_unique<EpollEngine>();
}

}  // namespace weft
