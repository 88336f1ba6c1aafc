// What the launcher waits for: descriptors with a kind and an index that say whose they are. Epoll, because it hands
// out events in the order in which they came, and so tells which of several ranks died first.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "weft/net/launch/descriptor.hpp"

namespace weft::net::launch {

enum class EventKind : std::uint32_t { signal, start_failure, death, rank_output, sink, terminal, terminal_pipe };

struct Event {
  EventKind kind;
  std::uint32_t index;
};

class EventSet {
 public:
  EventSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(epoll_); }

  /// Reports `fd` as {kind, index} whenever it has `events` (EPOLLIN, EPOLLOUT), until it is removed. False when the
  /// kernel refuses, with errno.
  bool add(int fd, std::uint32_t events, EventKind kind, std::size_t index) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(kind)} << 32 | static_cast<std::uint32_t>(index);
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  /// Must come before the descriptor is closed.
  void remove(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  /// Waits at most `timeout_ms` (-1: for ever) and fills the front of `events`; returns that part, empty on time-out.
  [[nodiscard]] std::span<const Event> wait(std::span<Event> events, int timeout_ms) noexcept {
    epoll_event raw[kBatch];
    const std::size_t room = events.size() < kBatch ? events.size() : kBatch;
    const int count = ::epoll_wait(epoll_.get(), raw, static_cast<int>(room), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = raw[i].data.u64;
      events[static_cast<std::size_t>(i)] = {static_cast<EventKind>(data >> 32), static_cast<std::uint32_t>(data)};
    }
    return events.first(count > 0 ? static_cast<std::size_t>(count) : 0);
  }

  static constexpr std::size_t kBatch = 64;

 private:
  Descriptor epoll_;
};

}  // namespace weft::net::launch
