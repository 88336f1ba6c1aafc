#include "weft/net/launch/terminal_input.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace weft::net::launch {

TerminalInput::TerminalInput(int terminal_fd, Descriptor to_rank)
    : terminal_(terminal_fd), to_rank_(std::move(to_rank)) {
  const int flags = ::fcntl(to_rank_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(to_rank_.get(), F_SETFL, flags | O_NONBLOCK) < 0) to_rank_.reset();
}

bool TerminalInput::in_foreground() const noexcept {
  return ::tcgetpgrp(terminal_) == ::getpgrp();
}

void TerminalInput::move() {
  if (pending_.empty()) {
    std::array<char, 4096> typed{};
    const ssize_t count = ::read(terminal_, typed.data(), typed.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return to_rank_.reset();
    pending_.assign(typed.data(), static_cast<std::size_t>(count));
  }
  const ssize_t count = ::write(to_rank_.get(), pending_.data(), pending_.size());
  if (count >= 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
  } else if (errno != EINTR && errno != EAGAIN) {
    to_rank_.reset();
    pending_.clear();
  }
}

}  // namespace weft::net::launch
