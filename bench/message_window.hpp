// What bandwidth and rate have in common: rank 0 sends a window of messages, rank 1 takes them and answers with an
// empty one, as the OSU benchmarks do. A grain is a window, and a sample the window's time, answer included, per
// message.
#pragma once

#include <cstddef>

#include "measure.hpp"
#include "private_buffer.hpp"

namespace bench {

/// How the messages of a window are awaited.
enum class WindowStyle : std::uint8_t {
  concurrent,  ///< one task a message, in a nursery: large messages overlap their handshakes
  sequential,  ///< one after the other: a small send ends when its buffer is free, so a window is on its way all the
               ///< same
};

/// See the top of the file.
class MessageWindow final : public Subject {
 public:
  MessageWindow(weft::Communicator& world, std::size_t bytes, std::size_t window, WindowStyle style);

  [[nodiscard]] weft::Task<void> run(std::size_t grains, Samples* samples) override;
  [[nodiscard]] weft::Task<void> check() override;

 private:
  [[nodiscard]] weft::Task<void> move_window();

  weft::Communicator& world_;
  std::size_t window_;
  WindowStyle style_;
  PrivateBuffer buffer_;
};

}  // namespace bench
