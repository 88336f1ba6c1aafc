// Goal: the transport keeps its contract between two threads: packets whole and in order in both directions, large
// messages by one copy or through the ring, sleeping and waking without loss, an end that loses nothing, no allocation
// per message.
#include "weft/net/shm/shm_transport.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <barrier>

#include "net/shm/shm_rank.hpp"
#include "support/allocation_count.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

using namespace test;

/// Sends `count` packets of random sizes; tag is the number.
Task<void> send_stream(ShmRank* self, std::int32_t peer, std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> payload(kRingMaxPayload);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const std::size_t length = bits % 32 == 0 ? (bits >> 8) % (kRingMaxPayload + 1) : (bits >> 8) % 100;
    const std::span<std::byte> bytes(payload.data(), length);
    fill(bytes, i);
    WireHeader header;
    header.tag = i;
    co_await send(self, peer, header, bytes);
  }
}

/// Checks what send_stream sends.
struct StreamCheck {
  std::uint64_t next = 0;
  bool wrong = false;
  void operator()(const IncomingPacket& packet) {
    wrong |= packet.header.tag != next || packet.payload.size() != packet.header.length || !holds(packet.payload, next);
    ++next;
  }
};

Task<void> until_received(ShmRank* self, const std::uint64_t* received, std::uint64_t wanted) {
  while (*received < wanted) {
    self->sink.arrived.reset();
    co_await self->sink.arrived.wait();
  }
}

Task<void> until_done(ShmRank* self, const std::vector<Outcome>* done, std::size_t wanted) {
  while (done->size() < wanted) {
    self->sink.got.reset();
    co_await self->sink.got.wait();
  }
}

Task<void> exchange_streams(ShmRank* self, std::uint64_t count, std::uint64_t seed) {
  const std::int32_t peer = 1 - self->rank();
  StreamCheck check;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) { check(packet); };
  co_await send_stream(self, peer, count, seed + static_cast<std::uint64_t>(self->rank()));
  co_await until_received(self, &check.next, count);
  EXPECT_FALSE(check.wrong);
  co_await part(self, peer);
}

TEST(ShmTransport, RandomStreamsCrossInBothDirectionsWithBackpressure) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    const Body body = [&](ShmRank& self) { return exchange_streams(&self, kSlow ? 20'000 : 200'000, seed); };
    ThreadPair(idle).run(body, body);
  }
}

/// A message for a message: rank 0 sends, rank 1 answers from inside the callback.
Task<void> ping(ShmRank* self, std::size_t first, std::size_t last, std::size_t step) {
  std::uint64_t answers = 0;
  bool wrong = false;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    wrong |= !holds(packet.payload, packet.header.tag);
    ++answers;
  };
  std::vector<std::byte> payload(kRingMaxPayload);
  std::uint64_t sent = 0;
  for (std::size_t length = first; length <= last; length += step) {
    const std::span<std::byte> bytes(payload.data(), length);
    fill(bytes, length);
    WireHeader header;
    header.tag = length;
    co_await send(self, 1, header, bytes);
    ++sent;
    co_await until_received(self, &answers, sent);
  }
  EXPECT_FALSE(wrong);
  co_await say_bye(self, 1);
  co_await self->sink.lost.wait();
  self->sink.on_packet = {};
}

Task<void> pong(ShmRank* self) {
  bool full = false;
  self->sink.on_packet = [&](std::int32_t peer, const IncomingPacket& packet) {
    full |= !self->transport.try_send(peer, packet.header, packet.payload);
  };
  co_await self->sink.bye.wait();
  EXPECT_FALSE(full);
  self->sink.on_packet = {};
}

TEST(ShmTransport, EverySizeIsAnsweredFromInsideTheCallback) {
  ThreadPair(IdleMode::yield)
      .run([](ShmRank& self) { return ping(&self, 0, kRingMaxPayload, kSlow ? 16 : 1); },
           [](ShmRank& self) { return pong(&self); });
}

Task<void> ping_and_count(ShmRank* self, std::uint64_t* blocked) {
  co_await ping(self, 0, kSlow ? 4'000 : 8'000, 1);
  *blocked = self->reactor.counters().blocked;
}

// Every wait blocks: a lost wake-up is a hang.
TEST(ShmTransport, NoWakeUpIsLostWhenBothSleepAfterEachMessage) {
  for (int round = 0; round < 5; ++round) {
    std::uint64_t blocked = 0;
    const Body asleep = [&blocked](ShmRank& self) { return ping_and_count(&self, &blocked); };
    ThreadPair(IdleMode::block).run(asleep, [](ShmRank& self) { return pong(&self); });
    EXPECT_GT(blocked, 0U);
  }
}

/// One frame for the whole loop: what is counted is the transport's and the reactor's.
Task<void> count_allocations(ShmRank* self, std::uint64_t* allocations) {
  std::uint64_t answers = 0;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket&) { ++answers; };
  const std::array<std::byte, 2048> payload{};
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (i == 1000) before = weft::test::allocations_of_this_thread();
    WireHeader header;
    header.length = static_cast<std::uint32_t>(i % payload.size());
    EXPECT_TRUE(self->transport.try_send(1, header, std::span(payload).first(header.length)));
    while (answers <= i) {
      self->sink.arrived.reset();
      co_await self->sink.arrived.wait();
    }
  }
  *allocations = weft::test::allocations_of_this_thread() - before;
  co_await say_bye(self, 1);
  co_await self->sink.lost.wait();
  self->sink.on_packet = {};
}

TEST(ShmTransport, NothingIsAllocatedPerMessage) {
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    std::uint64_t allocations = 0;
    const Body counted = [&](ShmRank& self) { return count_allocations(&self, &allocations); };
    ThreadPair(idle).run(counted, [](ShmRank& self) { return pong(&self); });
    EXPECT_EQ(allocations, 0U);
  }
}

/// Tells the peer where a buffer lies, reads the peer's, checks it.
Task<void> exchange_by_get(ShmRank* self, std::size_t bytes) {
  const std::int32_t peer = 1 - self->rank();
  std::vector<std::byte> mine(bytes);
  std::vector<std::byte> theirs(bytes);
  fill(mine, static_cast<std::uint64_t>(self->rank()));
  GetRequest request;
  request.peer = peer;
  request.local = theirs;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    request.remote_address = packet.header.tag;
    self->transport.get(request);
  };
  EXPECT_TRUE(self->transport.can_get(peer));
  WireHeader header;
  header.tag = reinterpret_cast<std::uintptr_t>(mine.data());
  co_await send(self, peer, header, {});
  co_await until_done(self, &self->sink.gets, 1);
  EXPECT_TRUE(self->sink.gets[0].ok());
  EXPECT_TRUE(holds(theirs, static_cast<std::uint64_t>(peer)));
  self->sink.on_packet = {};
  co_await part(self, peer);
}

TEST(ShmTransport, SixtyFourMebibytesAreReadBothWaysAtOnce) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{256 * 1024 + 1}, std::size_t{64} << 20}) {
    const Body body = [&](ShmRank& self) { return exchange_by_get(&self, bytes); };
    ThreadPair(IdleMode::block).run(body, body);
  }
}

/// Large messages through the ring, with small packets in between.
Task<void> exchange_by_bulk(ShmRank* self, std::size_t bytes) {
  const std::int32_t peer = 1 - self->rank();
  std::vector<std::byte> mine(bytes);
  std::vector<std::byte> theirs(bytes);
  fill(mine, static_cast<std::uint64_t>(self->rank()));
  std::uint64_t received = 0;
  std::uint64_t small = 0;
  std::uint64_t bytes_at_last_small = 0;
  bool wrong = false;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    if (packet.header.kind == PacketKind::data) {
      wrong |= packet.header.aux != 77 || packet.header.tag != received;
      std::memcpy(theirs.data() + packet.header.tag, packet.payload.data(), packet.payload.size());
      received += packet.payload.size();
    } else {
      wrong |= packet.header.tag != small;
      ++small;
      bytes_at_last_small = received;
    }
  };
  EXPECT_FALSE(self->transport.can_get(peer));
  BulkSend bulk;
  bulk.peer = peer;
  bulk.receiver_slot = 77;
  bulk.payload = mine;
  self->transport.send_bulk(bulk);
  std::uint64_t sent = 0;
  for (; sent < 100; ++sent) {
    WireHeader header;
    header.tag = sent;
    co_await send(self, peer, header, {});
    co_await yield();
  }
  co_await until_done(self, &self->sink.bulks, 1);
  EXPECT_TRUE(self->sink.bulks[0].ok());
  co_await part(self, peer);
  EXPECT_EQ(received, bytes);
  EXPECT_EQ(small, 100U);
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(holds(theirs, static_cast<std::uint64_t>(peer)));
  if (bytes > (1U << 20)) {
    // Expect: small packets overtook the rest of the bulk.
    EXPECT_LT(bytes_at_last_small, bytes);
  }
  self->sink.on_packet = {};
}

TEST(ShmTransport, WithoutReadsLargeMessagesGoThroughTheRingAndSmallOnesOvertakeThem) {
  ShmOptions options;
  options.read_same_process = options.read_other_process = false;
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}, std::size_t{16} << 20}) {
      const Body body = [&](ShmRank& self) { return exchange_by_bulk(&self, bytes); };
      ThreadPair(idle, options).run(body, body);
    }
  }
}

Task<void> send_and_leave(ShmRank* self, std::uint64_t packets) {
  WireHeader header;
  for (std::uint64_t i = 0; i < packets; ++i) {
    header.tag = i;
    co_await send(self, 0, header, {});
  }
}

Task<void> wait_for_loss(ShmRank* self, std::uint64_t packets) {
  // A get that cannot be done any more, and a bulk that nobody takes, are given back before the loss is told.
  co_await self->sink.lost.wait();
  EXPECT_EQ(self->sink.packets, packets);
  EXPECT_EQ(self->sink.losses.size(), 1U);
  EXPECT_EQ(self->sink.losses[0].peer, 1);
  EXPECT_EQ(self->sink.losses[0].outcome.code, Errc::peer_lost);
  EXPECT_FALSE(self->sink.after_loss);
  EXPECT_FALSE(self->transport.can_get(1));
  WireHeader header;
  EXPECT_FALSE(self->transport.try_send(1, header, {}));
  // Expect: what comes too late is given back as well.
  std::array<std::byte, 64> bytes{};
  GetRequest get;
  get.peer = 1;
  get.local = bytes;
  self->transport.get(get);
  BulkSend bulk;
  bulk.peer = 1;
  bulk.payload = bytes;
  self->transport.send_bulk(bulk);
  co_await until_done(self, &self->sink.gets, 1);
  co_await until_done(self, &self->sink.bulks, 1);
  EXPECT_EQ(self->sink.gets[0].code, Errc::peer_lost);
  EXPECT_EQ(self->sink.bulks[0].code, Errc::peer_lost);
}

TEST(ShmTransport, WhatAPeerSentBeforeItLeftArrivesBeforeItsLossIsTold) {
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    for (const std::uint64_t packets : {0U, 1U, 300U, 5000U}) {
      ThreadPair(idle).run([&](ShmRank& self) { return wait_for_loss(&self, packets); },
                           [&](ShmRank& self) { return send_and_leave(&self, packets); });
    }
  }
}

Task<void> lose_with_work_in_hand(ShmRank* self) {
  std::vector<std::byte> bytes(1 << 20);
  BulkSend bulk;
  bulk.peer = 1;
  bulk.payload = bytes;
  self->transport.send_bulk(bulk);
  WireHeader header;
  while (self->transport.try_send(1, header, {})) {
  }
  co_await self->sink.lost.wait();
  EXPECT_EQ(self->sink.bulks.size(), 1U);
  EXPECT_EQ(self->sink.bulks[0].code, Errc::peer_lost);
  EXPECT_EQ(self->sink.losses[0].bulks_given_back, 1U);
}

Task<void> leave_at_once(ShmRank* /*self*/) {
  co_return;
}

TEST(ShmTransport, WorkTowardsALostPeerIsGivenBackBeforeItsLossIsTold) {
  ThreadPair(IdleMode::block)
      .run([](ShmRank& self) { return lose_with_work_in_hand(&self); },
           [](ShmRank& self) { return leave_at_once(&self); });
}

Task<void> disconnect_inside_callback(ShmRank* self) {
  Event done;
  self->sink.on_packet = [&](std::int32_t peer, const IncomingPacket&) {
    self->transport.disconnect(peer);
    done.set();
  };
  co_await done.wait();
  co_await yield();
  EXPECT_TRUE(self->sink.losses.empty());
  self->sink.on_packet = {};
}

TEST(ShmTransport, ACallbackMayDisconnectThePeerItHearsFrom) {
  const auto talk_until_lost = [](ShmRank& self) -> Task<void> {
    return [](ShmRank* rank) -> Task<void> {
      WireHeader header;
      while (rank->sink.losses.empty() && rank->transport.try_send(0, header, {}))
        co_await yield();
      co_await rank->sink.lost.wait();
    }(&self);
  };
  ThreadPair(IdleMode::yield).run([](ShmRank& self) { return disconnect_inside_callback(&self); }, talk_until_lost);
}

/// Takes its memory away as soon as disconnect() has returned, while the other one reads it.
Task<void> disconnect_and_unmap(ShmRank* self, std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  WireHeader header;
  header.tag = reinterpret_cast<std::uintptr_t>(memory);
  co_await send(self, 0, header, {});
  co_await self->sink.arrived.wait();
  self->transport.disconnect(0);
  ::munmap(memory, bytes);
}

Task<void> read_until_lost(ShmRank* self, std::size_t bytes) {
  std::vector<std::byte> to(bytes);
  GetRequest request;
  request.peer = 1;
  request.local = to;
  self->sink.on_packet = [&](std::int32_t peer, const IncomingPacket& packet) {
    request.remote_address = packet.header.tag;
    self->transport.get(request);
    EXPECT_TRUE(self->transport.try_send(peer, WireHeader(), {}));
  };
  co_await self->sink.lost.wait();
  EXPECT_EQ(self->sink.gets.size(), 1U);
  EXPECT_TRUE(self->sink.gets[0].ok() || self->sink.gets[0].code == Errc::peer_lost);
  self->sink.on_packet = {};
}

TEST(ShmTransport, AThreadsMemoryIsNotReadAnyMoreOnceItHasDisconnected) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  for (int round = 0; round < 20; ++round) {
    ThreadPair(IdleMode::yield)
        .run([](ShmRank& self) { return read_until_lost(&self, kBytes); },
             [](ShmRank& self) { return disconnect_and_unmap(&self, kBytes); });
  }
}

// --- Several peers ---

/// All ranks connected to all; every rank sends `count` packets to each other one and checks theirs.
Task<void> all_to_all(ShmRank* self, const std::vector<std::string>* addresses, std::uint64_t count) {
  const auto world = static_cast<std::int32_t>(addresses->size());
  std::vector<std::uint64_t> received(addresses->size());
  std::uint64_t total = 0;
  bool wrong = false;
  self->sink.on_packet = [&](std::int32_t from, const IncomingPacket& packet) {
    std::uint64_t& next = received[static_cast<std::size_t>(from)];
    wrong |= packet.header.tag != next || packet.header.aux != static_cast<std::uint32_t>(from) ||
             !holds(packet.payload, next);
    ++next;
    ++total;
  };
  for (std::int32_t peer = 0; peer < self->rank(); ++peer) {
    co_await connect_to(self, peer, (*addresses)[static_cast<std::size_t>(peer)]);
  }
  while (self->sink.connections.size() + 1 < addresses->size()) {
    self->sink.connected.reset();
    co_await self->sink.connected.wait();
  }
  std::vector<std::byte> payload(kRingMaxPayload);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::span<std::byte> bytes(payload.data(), i % 37 == 0 ? i * 131 % payload.size() : i % 50);
    fill(bytes, i);
    for (std::int32_t peer = 0; peer < world; ++peer) {
      if (peer == self->rank()) continue;
      WireHeader header;
      header.tag = i;
      header.aux = static_cast<std::uint32_t>(self->rank());
      co_await send(self, peer, header, bytes);
    }
  }
  co_await until_received(self, &total, count * (addresses->size() - 1));
  EXPECT_FALSE(wrong);
  // Who is done says so to all; who has heard it from all may leave.
  for (std::int32_t peer = 0; peer < world; ++peer) {
    if (peer == self->rank()) continue;
    co_await say_bye(self, peer);
  }
  while (self->sink.byes + 1 < addresses->size()) {
    self->sink.arrived.reset();
    co_await self->sink.arrived.wait();
  }
  self->sink.on_packet = {};
}

TEST(ShmTransport, FourRanksOnTwoCoresTalkToEachOtherAsleepAndAwake) {
  constexpr std::size_t kWorld = 4;
  const std::uint64_t count = kSlow ? 1'000 : 10'000;
  for (const IdleMode idle : {IdleMode::block, IdleMode::yield}) {
    std::vector<std::string> addresses(kWorld);
    std::barrier listening(static_cast<std::ptrdiff_t>(kWorld));
    std::vector<std::thread> ranks;
    for (std::size_t i = 0; i < kWorld; ++i) {
      ranks.emplace_back([&, i] {
        ShmRank rank(static_cast<std::int32_t>(i), static_cast<std::int32_t>(kWorld), idle);
        addresses[i] = rank.transport.address();
        listening.arrive_and_wait();
        rank.run([&](ShmRank& self) { return all_to_all(&self, &addresses, count); });
      });
    }
    for (std::thread& rank : ranks)
      rank.join();
  }
}

TEST(ShmTransport, NothingIsLeftBehind) {
  // Whatever a first run makes once and for all is not counted.
  const Body body = [](ShmRank& self) { return exchange_streams(&self, 100, 1); };
  ThreadPair(IdleMode::block).run(body, body);
  const std::size_t descriptors = open_descriptors();
  const std::size_t in_dev_shm = count_entries("/dev/shm");
  for (int round = 0; round < 10; ++round)
    ThreadPair(IdleMode::block).run(body, body);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(count_entries("/dev/shm"), in_dev_shm);
  EXPECT_EQ(weft_mappings(), 0U);
}

}  // namespace
}  // namespace weft::net
