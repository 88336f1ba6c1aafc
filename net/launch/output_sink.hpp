// One of the launcher's own outputs, written to without ever blocking: a reader that has stopped reading (a pager, a
// terminal after Ctrl-S) must not keep the launcher from noticing a death or a Ctrl-C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/net/launch/descriptor.hpp"

namespace weft::net::launch {

class OutputSink {
 public:
  enum class State : std::uint8_t {
    empty,    ///< everything is written
    blocked,  ///< wait until descriptor() is writable, then flush again
    broken,   ///< nobody reads any more, or the disk is full: error() says; what is appended from now on is dropped
  };

  /// Writes to `fd`, which stays the caller's and must stay open. SIGPIPE must be ignored or blocked.
  explicit OutputSink(int fd);

  /// Where to append what shall be written next; flush() takes it from there.
  [[nodiscard]] std::string& buffer() noexcept { return pending_; }

  /// Writes as much as goes without waiting.
  State flush();

  [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_.size() - written_; }
  /// The descriptor to wait on.
  [[nodiscard]] int descriptor() const noexcept { return own_ ? own_.get() : fd_; }
  /// errno of the write that failed; 0 while none has.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  enum class Kind : std::uint8_t { nonblocking, socket, file, other };

  [[nodiscard]] long write_some(std::string_view bytes) const;

  int fd_;
  Descriptor own_;  ///< the same pipe or terminal opened again as non-blocking, which leaves the caller's mode alone
  Kind kind_;
  std::string pending_;
  std::size_t written_ = 0;  ///< leading bytes of pending_ that are out
  int error_ = 0;
};

}  // namespace weft::net::launch
