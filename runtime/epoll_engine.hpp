// The io engine on epoll: works on every Linux, also where io_uring is refused.
#pragma once

#include <cstdint>

#include "weft/runtime/detail/watch_table.hpp"
#include "weft/runtime/io_engine.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft {

/// See IoEngine. Edge-triggered.
class EpollEngine final : public IoEngine {
 public:
  /// Errors: throws Error(exhausted) when no descriptor is left.
  EpollEngine();

  [[nodiscard]] const char* name() const noexcept override { return "epoll"; }
  [[nodiscard]] Outcome add(int fd, IoHandler& handler) noexcept override;
  void remove(int fd) noexcept override;
  bool poll() noexcept override;
  bool wait(Duration timeout) noexcept override;

 private:
  /// One epoll_wait for at most `timeout`, and the delivery of what it returned.
  bool reap(Duration timeout) noexcept;

  UniqueFd epoll_;
  detail::WatchTable watches_;
  bool has_pwait2_ = true;  ///< the kernel knows epoll_pwait2 (5.11)
};

}  // namespace weft
