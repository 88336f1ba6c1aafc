#include "message_window.hpp"

#include <algorithm>

#include "payload.hpp"
#include "spin.hpp"
#include "weft/runtime/nursery.hpp"

namespace bench {
namespace {

using weft::Communicator;
using weft::Nursery;
using weft::Task;

constexpr weft::Tag kMessage = 1;
constexpr weft::Tag kAnswer = 2;
constexpr std::size_t kCheckedMessages = 200;
constexpr std::size_t kCheckedBytes = std::size_t{256} << 20;

Task<void> send_one(Communicator* world, std::span<const std::byte> bytes) {
  co_await world->send(1, kMessage, bytes);
}
Task<void> take_one(Communicator* world, std::span<std::byte> bytes) {
  co_await world->recv(0, kMessage, bytes);
}

Task<void> send_window(Nursery& nursery, Communicator* world, std::span<const std::byte> bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    nursery.start(send_one(world, bytes));
  co_return;
}

// All into one buffer, as the OSU benchmarks do: whose bytes end there does not matter to the clock.
Task<void> take_window(Nursery& nursery, Communicator* world, std::span<std::byte> bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    nursery.start(take_one(world, bytes));
  co_return;
}

}  // namespace

MessageWindow::MessageWindow(Communicator& world, std::size_t bytes, std::size_t window, WindowStyle style)
    : world_(world), window_(window), style_(style), buffer_(bytes) {}

Task<void> MessageWindow::move_window() {
  if (style_ == WindowStyle::concurrent) {
    const std::span<std::byte> bytes = buffer_.bytes();
    if (world_.rank() == 0) {
      co_await weft::with_nursery(&send_window, &world_, std::span<const std::byte>(bytes), window_);
    } else {
      co_await weft::with_nursery(&take_window, &world_, bytes, window_);
    }
    co_return;
  }
  for (std::size_t i = 0; i < window_; ++i) {
    if (world_.rank() == 0) {
      co_await world_.send(1, kMessage, buffer_.bytes());
    } else {
      co_await world_.recv(0, kMessage, buffer_.bytes());
    }
  }
}

Task<void> MessageWindow::run(std::size_t grains, Samples* samples) {
  const weft::Rank rank = world_.rank();
  const std::span<std::byte> nothing;
  for (std::size_t grain = 0; grain < grains && rank <= 1; ++grain) {
    const double begin = now_ns();
    co_await move_window();
    if (rank == 0) {
      co_await world_.recv(1, kAnswer, nothing);
    } else {
      co_await world_.send(0, kAnswer, nothing);
    }
    if (samples != nullptr && rank == 0) samples->add(now_ns() - begin, window_);
  }
}

Task<void> MessageWindow::check() {
  if (world_.rank() > 1) co_return;
  const std::size_t fitting = kCheckedBytes / std::max<std::size_t>(buffer_.size(), 1);
  const std::size_t messages = std::clamp<std::size_t>(fitting, 1, kCheckedMessages);
  for (std::uint64_t number = 0; number < messages; ++number) {
    if (world_.rank() == 0) {
      fill_payload(buffer_.bytes(), number);
      co_await world_.send(1, kMessage, buffer_.bytes());
    } else {
      const weft::MessageInfo info = co_await world_.recv(0, kMessage, buffer_.bytes());
      check_length(info.length, buffer_.size());
      check_payload(buffer_.bytes(), number);
    }
  }
}

}  // namespace bench
