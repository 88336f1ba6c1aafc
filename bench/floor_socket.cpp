// Floors of TCP over loopback, spinning on sockets that never block.
#include <algorithm>

#include "floor.hpp"
#include "private_buffer.hpp"
#include "spin.hpp"

namespace bench {
namespace {

// A message of no bytes cannot be waited for.
std::size_t at_least_one(std::size_t bytes) {
  return std::max<std::size_t>(bytes, 1);
}

class SocketPingPong final : public Floor {
 public:
  SocketPingPong(RawSocket& socket, weft::Rank rank, std::size_t bytes)
      : socket_(socket), rank_(rank), buffer_(at_least_one(bytes)) {}

  [[nodiscard]] const char* what() const noexcept override { return "spinning sockets to and fro"; }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    if (rank_ > 1) return;
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i) {
        if (rank_ == 0) socket_.send(buffer_.bytes());
        socket_.receive(buffer_.bytes());
        if (rank_ == 1) socket_.send(buffer_.bytes());
      }
      if (samples != nullptr) samples->add(now_ns() - begin, 2 * batch);
    }
  }

 private:
  RawSocket& socket_;
  weft::Rank rank_;
  PrivateBuffer buffer_;
};

class SocketStream final : public Floor {
 public:
  SocketStream(RawSocket& socket, weft::Rank rank, std::size_t bytes)
      : socket_(socket), rank_(rank), bytes_(at_least_one(bytes)), buffer_(kCallBytes) {}

  [[nodiscard]] const char* what() const noexcept override { return "a socket stream of the same bytes, coalesced"; }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    if (rank_ > 1) return;
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t left = batch * bytes_; left > 0;) {
        const std::size_t count = std::min(left, kCallBytes);
        const std::span<std::byte> part = buffer_.bytes().first(count);
        rank_ == 0 ? socket_.send(part) : socket_.receive(part);
        left -= count;
      }
      const std::span<std::byte> acknowledgement = buffer_.bytes().first(1);
      rank_ == 0 ? socket_.receive(acknowledgement) : socket_.send(acknowledgement);
      if (samples != nullptr) samples->add(now_ns() - begin, batch);
    }
  }

 private:
  static constexpr std::size_t kCallBytes = std::size_t{256} << 10;  // more gains nothing and leaves the cache

  RawSocket& socket_;
  weft::Rank rank_;
  std::size_t bytes_;
  PrivateBuffer buffer_;
};

class SocketExchange final : public Floor {
 public:
  SocketExchange(RawSocket& socket, weft::Rank rank, std::size_t bytes)
      : socket_(socket), rank_(rank), out_(at_least_one(bytes)), in_(at_least_one(bytes)) {}

  [[nodiscard]] const char* what() const noexcept override { return "spinning sockets that exchange the same bytes"; }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    if (rank_ > 1) return;
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i)
        socket_.exchange(out_.bytes(), in_.bytes());
      if (samples != nullptr) samples->add(now_ns() - begin, batch);
    }
  }

 private:
  RawSocket& socket_;
  weft::Rank rank_;
  PrivateBuffer out_;
  PrivateBuffer in_;
};

}  // namespace

std::unique_ptr<Floor> socket_ping_pong(RawSocket& socket, weft::Rank rank, std::size_t bytes) {
  return std::make_unique<SocketPingPong>(socket, rank, bytes);
}

std::unique_ptr<Floor> socket_stream(RawSocket& socket, weft::Rank rank, std::size_t bytes) {
  return std::make_unique<SocketStream>(socket, rank, bytes);
}

std::unique_ptr<Floor> socket_exchange(RawSocket& socket, weft::Rank rank, std::size_t bytes) {
  return std::make_unique<SocketExchange>(socket, rank, bytes);
}

}  // namespace bench
