#include "weft/net/launch/output_sink.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft::net::launch {

OutputSink::OutputSink(int fd) : fd_(fd), kind_(Kind::other) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISSOCK(info.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISREG(info.st_mode)) {
    kind_ = Kind::file;
  } else if (S_ISFIFO(info.st_mode) || ::isatty(fd) != 0) {
    // O_NONBLOCK belongs to the open file description, which other processes share; so we make one of our own.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_ = Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (own_) kind_ = Kind::nonblocking;
  }
}

long OutputSink::write_some(std::string_view bytes) const {
  switch (kind_) {
    case Kind::socket: return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::nonblocking:
    case Kind::file: return ::write(descriptor(), bytes.data(), bytes.size());
    case Kind::other: break;
  }
  // A pipe that is writable takes PIPE_BUF bytes without blocking; a character device is as good as its driver.
  struct pollfd ready {
    fd_, POLLOUT, 0
  };
  const int count = ::poll(&ready, 1, 0);
  if (count == 0) errno = EAGAIN;
  if (count <= 0) return -1;
  return ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
}

OutputSink::State OutputSink::flush() {
  while (error_ == 0 && written_ < pending_.size()) {
    const long count = write_some(std::string_view(pending_).substr(written_));
    if (count >= 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return State::blocked;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  pending_.clear();
  written_ = 0;
  return error_ == 0 ? State::empty : State::broken;
}

}  // namespace weft::net::launch
