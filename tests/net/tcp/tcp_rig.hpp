// Ranks with a TcpTransport and a scripted protocol above it, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/net/tcp/tcp_transport.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/poller.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net::test {

/// No timing decides a test: this only turns a hang into a failure.
inline constexpr Duration kTooLong = std::chrono::seconds(60);

inline std::vector<std::byte> pattern(std::size_t size, std::size_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = std::byte((i * 131 + i / 4096 + seed * 17) & 0xFF);
  return bytes;
}

inline WireHeader eager_header(std::uint64_t tag, std::size_t length) {
  WireHeader header;
  header.kind = PacketKind::eager;
  header.tag = tag;
  header.length = static_cast<std::uint32_t>(length);
  return header;
}

struct Packet {
  WireHeader header;
  std::vector<std::byte> payload;
};

/// One rank: the protocol's side of a transport, written down.
class TcpRank final : public TransportSink, private Poller {
 public:
  TcpRank(Reactor& reactor, const JobToken& token, std::int32_t rank, std::int32_t world_size = 2)
      : reactor_(reactor), transport(reactor, *this, token, rank, world_size, "127.0.0.1") {
    reactor_.add_poller(*this);
  }
  ~TcpRank() { reactor_.remove_poller(*this); }

  void on_connected(std::int32_t /*peer*/, Transport& /*via*/) noexcept override {
    ++connected;
    changed.set();
  }
  void on_packets(std::int32_t peer, std::span<const IncomingPacket> burst) noexcept override {
    EXPECT_EQ(lost, 0U) << "after the peer was reported lost";
    EXPECT_LE(burst.size(), 16U);
    for (const IncomingPacket& packet : burst) {
      ++received;
      received_bytes += packet.payload.size();
      if (keep) packets.push_back({packet.header, {packet.payload.begin(), packet.payload.end()}});
    }
    if (disconnect_on_packet) transport.disconnect(peer);
    changed.set();
  }
  std::byte* bulk_destination(std::int32_t /*peer*/, const WireHeader& header) noexcept override {
    const auto place = destinations.find(header.aux);
    if (place == destinations.end() || header.tag + header.length > place->second.size()) return nullptr;
    return place->second.data() + header.tag;
  }
  void on_bulk_received(std::int32_t /*peer*/, const WireHeader& header) noexcept override {
    bulk_bytes += header.length;
    if (bulk_bytes == bulk_total) received_at_bulk_end = received;
    changed.set();
  }
  void on_get_done(GetRequest& /*request*/, Outcome /*outcome*/) noexcept override { ADD_FAILURE(); }
  void on_bulk_sent(BulkSend& /*bulk*/, Outcome outcome) noexcept override {
    EXPECT_EQ(lost, 0U) << "requests come back before the loss is reported";
    bulk_outcomes.push_back(outcome);
    ++bulks_sent;
    changed.set();
  }
  void on_writable(std::int32_t /*peer*/) noexcept override {
    ++writable;
    changed.set();
  }
  void on_peer_lost(std::int32_t peer, Outcome outcome, std::string_view why) noexcept override {
    ++lost;
    lost_peer = peer;
    lost_outcome = outcome;
    cause = why;
    changed.set();
  }

  /// Keeps away from recv until told otherwise: a rank that computes.
  bool stopped = false;
  bool keep = true;
  bool disconnect_on_packet = false;

  std::size_t connected = 0;
  std::size_t received = 0;
  std::size_t received_bytes = 0;
  std::size_t bulk_bytes = 0;
  std::size_t bulk_total = 0;
  std::size_t received_at_bulk_end = 0;
  std::size_t bulks_sent = 0;
  std::size_t writable = 0;
  std::size_t lost = 0;
  std::int32_t lost_peer = kNoRank;
  Outcome lost_outcome;
  std::string cause;
  std::vector<Packet> packets;
  std::vector<Outcome> bulk_outcomes;
  std::map<std::uint32_t, std::span<std::byte>> destinations;
  Event changed;

 private:
  bool poll() noexcept override {
    transport.flush();
    return !stopped && transport.poll();
  }
  bool prepare_to_block() noexcept override { return stopped || transport.prepare_to_block(); }
  void after_block() noexcept override {
    if (!stopped) transport.after_block();
  }

  Reactor& reactor_;

 public:
  TcpTransport transport;
};

/// Suspends until `counter` of `rank` has reached `goal`: by events only, so that the reactor really blocks meanwhile.
inline Task<void> until(TcpRank* rank, std::size_t TcpRank::*counter, std::size_t goal) {
  while (rank->*counter < goal) {
    rank->changed.reset();
    co_await rank->changed.wait();
  }
}

/// Sends, however long that takes.
inline Task<void> send(TcpRank* rank, std::int32_t peer, WireHeader header, std::span<const std::byte> payload) {
  while (!rank->transport.try_send(peer, header, payload)) {
    const std::size_t before = rank->writable;
    co_await until(rank, &TcpRank::writable, before + 1);
  }
}

/// Rank 0 serves, rank 1 connects.
inline Task<void> connect_pair(TcpRank* server, TcpRank* client) {
  co_await client->transport.connect(0, server->transport.address());
  co_await until(server, &TcpRank::connected, 1);
}

inline ReactorOptions options_for(IoEngineKind io, IdleMode idle) {
  ReactorOptions options;
  options.io = io;
  options.idle.mode = idle;
  return options;
}

using Script = Task<void> (*)(Nursery&, TcpRank*, TcpRank*);

/// The frame around a script: rank 0 serves meanwhile.
inline Task<void> serve_and_run(Nursery& nursery, Script script, TcpRank* server, TcpRank* client) {
  nursery.start(server->transport.serve());
  nursery.start(client->transport.serve());
  co_await script(nursery, server, client);
  nursery.cancel();
}

/// Two ranks on one reactor, connected before the script begins.
class TcpPair {
 public:
  TcpPair(IoEngineKind io, IdleMode idle)
      : reactor(options_for(io, idle)),
        token(JobToken::random()),
        a(std::make_unique<TcpRank>(reactor, token, 0)),
        b(std::make_unique<TcpRank>(reactor, token, 1)) {}

  void run(Script script) {
    Task<void> all = with_nursery(&serve_and_run, script, a.get(), b.get());
    reactor.run(with_deadline(kTooLong, std::move(all)));
  }

  Reactor reactor;
  JobToken token;
  std::unique_ptr<TcpRank> a;
  std::unique_ptr<TcpRank> b;
};

}  // namespace weft::net::test
