// A rank for tests of the shared-memory transport: a reactor, the transport, and a sink that a test scripts.
#pragma once

#include <dirent.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "weft/net/shm/shm_transport.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/poller.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft::net::test {

inline void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::byte& byte : bytes) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    byte = static_cast<std::byte>(x >> 32);
  }
}

inline bool holds(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
  for (const std::byte byte : bytes) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    if (byte != static_cast<std::byte>(x >> 32)) return false;
  }
  return true;
}

/// The token of all tests' jobs.
inline JobToken job_token() {
  return JobToken::derived("shm tests");
}

inline constexpr std::uint64_t kByeTag = ~std::uint64_t{0};

/// What the transport says, kept, and handed on to whoever has set a function.
class ScriptedSink final : public TransportSink {
 public:
  struct Loss {
    std::int32_t peer;
    Outcome outcome;
    std::string cause;
    std::size_t gets_given_back;
    std::size_t bulks_given_back;
  };

  std::function<void(std::int32_t, const IncomingPacket&)> on_packet;
  Event bye;        ///< the peer has said that it is done: a packet with kByeTag, seen by nobody else
  Event connected;  ///< set when the first peer is connected
  Event writable;
  Event lost;
  Event arrived;  ///< a burst
  Event got;      ///< a get or a bulk is done
  std::vector<std::int32_t> connections;
  std::vector<Loss> losses;
  std::vector<Outcome> gets;
  std::vector<Outcome> bulks;
  std::uint64_t packets = 0;
  std::size_t byes = 0;
  std::uint64_t bursts = 0;
  bool after_loss = false;  ///< a callback came after on_peer_lost

  void on_connected(std::int32_t peer, Transport&) noexcept override {
    connections.push_back(peer);
    connected.set();
  }
  void on_packets(std::int32_t peer, std::span<const IncomingPacket> burst) noexcept override {
    after_loss |= !losses.empty();
    ++bursts;
    for (const IncomingPacket& packet : burst) {
      ++packets;
      if (packet.header.tag == kByeTag) {
        ++byes;
        bye.set();
      } else if (on_packet) {
        on_packet(peer, packet);
      }
    }
    arrived.set();
  }
  std::byte* bulk_destination(std::int32_t, const WireHeader&) noexcept override { return nullptr; }
  void on_bulk_received(std::int32_t, const WireHeader&) noexcept override {}
  void on_get_done(GetRequest&, Outcome outcome) noexcept override {
    gets.push_back(outcome);
    got.set();
  }
  void on_bulk_sent(BulkSend&, Outcome outcome) noexcept override {
    bulks.push_back(outcome);
    got.set();
  }
  void on_writable(std::int32_t) noexcept override { writable.set(); }
  void on_peer_lost(std::int32_t peer, Outcome outcome, std::string_view cause) noexcept override {
    losses.push_back({peer, outcome, std::string(cause), gets.size(), bulks.size()});
    lost.set();
  }
};

/// See the top of the file.
class ShmRank final : public Poller {
 public:
  ShmRank(std::int32_t rank, std::int32_t world_size, IdleMode idle, const ShmOptions& options = ShmOptions())
      : reactor(options_of(idle)), transport(reactor, sink, job_token(), rank, world_size, options), rank_(rank) {
    reactor.add_poller(*this);
  }
  ~ShmRank() { reactor.remove_poller(*this); }

  bool poll() noexcept override { return transport.poll(); }
  bool prepare_to_block() noexcept override { return transport.prepare_to_block(); }
  void after_block() noexcept override { transport.after_block(); }

  [[nodiscard]] std::int32_t rank() const noexcept { return rank_; }

  /// Runs `body(*this)` while the transport accepts connections.
  void run(std::function<Task<void>(ShmRank&)> body) {
    body_ = std::move(body);
    reactor.run(with_nursery(&ShmRank::main, this));
  }

  Reactor reactor;
  ScriptedSink sink;
  ShmTransport transport;

 private:
  static ReactorOptions options_of(IdleMode idle) {
    ReactorOptions options;
    options.idle.mode = idle;
    return options;
  }
  static Task<void> main(Nursery& nursery, ShmRank* self) {
    nursery.start(self->transport.serve());
    Task<void> body = self->body_(*self);
    co_await std::move(body);
    nursery.cancel();
  }

  std::int32_t rank_;
  std::function<Task<void>(ShmRank&)> body_;
};

inline Task<void> connect_to(ShmRank* self, std::int32_t peer, std::string address) {
  co_await self->transport.connect(peer, std::move(address));
}

/// Sends one packet, waiting for room.
inline Task<void> send(ShmRank* self, std::int32_t peer, WireHeader header, std::span<const std::byte> payload) {
  header.length = static_cast<std::uint32_t>(payload.size());
  for (;;) {
    if (self->transport.try_send(peer, header, payload)) co_return;
    self->sink.writable.reset();
    co_await self->sink.writable.wait();
  }
}

inline Task<void> say_bye(ShmRank* self, std::int32_t peer) {
  WireHeader header;
  header.tag = kByeTag;
  co_await send(self, peer, header, {});
}

/// Both tell each other that they are done, so that nobody leaves while the other still needs it.
inline Task<void> part(ShmRank* self, std::int32_t peer) {
  co_await say_bye(self, peer);
  co_await self->sink.bye.wait();
  self->sink.on_packet = {};
}

using Body = std::function<Task<void>(ShmRank&)>;

/// Two ranks as threads; rank 1 connects to rank 0. Both bodies run when their side is connected.
class ThreadPair {
 public:
  explicit ThreadPair(IdleMode idle, const ShmOptions& options = ShmOptions()) : idle_(idle), options_(options) {}

  void run(Body first, Body second) {
    std::promise<std::string> address;
    std::future<std::string> known = address.get_future();
    std::exception_ptr failures[2];
    std::thread acceptor([&] {
      try {
        ShmRank rank(0, 2, idle_, options_);
        address.set_value(rank.transport.address());
        body_ = &first;
        rank.run([&](ShmRank& self) { return when_connected(&self, &first); });
      } catch (...) {
        failures[0] = std::current_exception();
      }
    });
    std::thread connector([&] {
      try {
        const std::string there = known.get();
        ShmRank rank(1, 2, idle_, options_);
        rank.run([&](ShmRank& self) { return connect_first(&self, there, &second); });
      } catch (...) {
        failures[1] = std::current_exception();
      }
    });
    acceptor.join();
    connector.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure != nullptr) std::rethrow_exception(failure);
    }
  }

 private:
  static Task<void> when_connected(ShmRank* self, Body* body) {
    co_await self->sink.connected.wait();
    Task<void> task = (*body)(*self);
    co_await std::move(task);
  }
  static Task<void> connect_first(ShmRank* self, std::string address, Body* body) {
    Task<void> connecting = connect_to(self, 0, std::move(address));
    co_await std::move(connecting);
    Task<void> task = (*body)(*self);
    co_await std::move(task);
  }

  IdleMode idle_;
  ShmOptions options_;
  Body* body_ = nullptr;
};

/// Entries of a directory.
inline std::size_t count_entries(const char* path) {
  std::size_t count = 0;
  DIR* const directory = ::opendir(path);
  while (directory != nullptr && ::readdir(directory) != nullptr)
    ++count;
  if (directory != nullptr) ::closedir(directory);
  return count;
}
inline std::size_t open_descriptors() {
  return count_entries("/proc/self/fd");
}

/// Mappings of shared memory made by the transport.
inline std::size_t weft_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:weft") != std::string::npos ? 1 : 0;
  return count;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kSlow = true;
#else
inline constexpr bool kSlow = false;
#endif
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kSlow = true;
#else
inline constexpr bool kSlow = false;
#endif

}  // namespace weft::net::test
