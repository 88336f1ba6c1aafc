// Owner of one file descriptor of the launcher; move-only, closed once.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace weft::net::launch {

class Descriptor {
 public:
  Descriptor() noexcept = default;
  /// Takes over `fd`; a negative value owns nothing.
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed, so that no other file gets their numbers.
inline void fill_standard_descriptors() noexcept {
  for (int fd = 0; fd < 3; ++fd) {
    // open takes the lowest free number, and all below fd are taken.
    if (::fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int opened = ::open("/dev/null", O_RDWR);
  }
}

}  // namespace weft::net::launch
