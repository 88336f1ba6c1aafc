// Goal: packets and bulk over TCP arrive whole and in order, over both io engines, spinning and blocking; a full
// receiver stops the sender without loss.
#include "weft/net/tcp/tcp_transport.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "net/tcp/tcp_rig.hpp"
#include "support/allocation_count.hpp"
#include "weft/net/tcp/tcp_address.hpp"
#include "weft/net/tcp/tcp_liveness.hpp"

namespace weft::net {
namespace {

using namespace test;
using namespace std::chrono_literals;

struct Mode {
  IoEngineKind io;
  IdleMode idle;
};

bool io_uring_works() {
  try {
    (void)make_io_engine(IoEngineKind::io_uring);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class TcpTransportTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (GetParam().io == IoEngineKind::io_uring && !io_uring_works()) GTEST_SKIP() << "io_uring is refused here";
    pair_ = std::make_unique<TcpPair>(GetParam().io, GetParam().idle);
  }
  void run(Script script) { pair_->run(script); }
  TcpRank& a() { return *pair_->a; }
  TcpRank& b() { return *pair_->b; }

  std::unique_ptr<TcpPair> pair_;
};

Task<void> every_kind(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  EXPECT_EQ(a->connected, 1U);
  EXPECT_EQ(b->connected, 1U);
  const RtsPayload rts{.length = 1 << 20, .address = 0x1234, .key = 7};
  const CtsPayload cts{.length = 1 << 20, .slot = 3, .reserved = 0};
  struct Item {
    PacketKind kind;
    std::span<const std::byte> payload;
  };
  const std::vector<std::byte> text = pattern(100, 1);
  const std::vector<Item> items{{PacketKind::eager, text},
                                {PacketKind::eager, {}},
                                {PacketKind::rts, std::as_bytes(std::span(&rts, 1))},
                                {PacketKind::cts, std::as_bytes(std::span(&cts, 1))},
                                {PacketKind::fin, {}},
                                {PacketKind::credit, {}},
                                {PacketKind::rts_cancel, {}},
                                {PacketKind::rts_gone, {}},
                                {PacketKind::goodbye, {}}};
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const std::int32_t peer = from == a ? 1 : 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      WireHeader header = eager_header(1000 + i, items[i].payload.size());
      header.kind = items[i].kind;
      header.context = 0xABCD0000 + static_cast<std::uint32_t>(i);
      header.aux = 77;
      EXPECT_TRUE(from->transport.try_send(peer, header, items[i].payload));
    }
    co_await until(to, &TcpRank::received, items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Packet& packet = to->packets[i];
      EXPECT_EQ(packet.header.kind, items[i].kind);
      EXPECT_EQ(packet.header.tag, 1000 + i);
      EXPECT_EQ(packet.header.context, 0xABCD0000 + i);
      EXPECT_EQ(packet.header.aux, 77U);
      EXPECT_TRUE(std::ranges::equal(packet.payload, items[i].payload));
    }
  }
  EXPECT_TRUE(a->transport.drained());
}

TEST_P(TcpTransportTest, EveryKindOfPacketArrivesInBothDirections) {
  run(every_kind);
}

Task<void> every_size(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  const std::size_t max = a->transport.capabilities().max_packet_bytes;
  std::vector<std::size_t> sizes{0, 1, 7, 39, 40, 41, 1000, 4096, 16383, 16384, 16385, max - 1, max};
  std::mt19937 random(4711);  // seed 4711
  while (sizes.size() < 400)
    sizes.push_back(random() % (max + 1));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<std::byte> payload = pattern(sizes[i], i);
    const WireHeader header = eager_header(i, payload.size());
    co_await send(a, 1, header, payload);
  }
  co_await until(b, &TcpRank::received, sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(b->packets[i].header.tag, i);
    const bool equal = b->packets[i].payload == pattern(sizes[i], i);
    EXPECT_TRUE(equal) << "packet " << i << " of " << sizes[i] << " bytes";
  }
}

TEST_P(TcpTransportTest, EverySizeArrivesWhole) {
  run(every_size);
}

Task<void> bulk_with_small_packets(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  constexpr std::size_t kBytes = (64 << 20) + 12345;
  const std::vector<std::byte> payload = pattern(kBytes, 5);
  std::vector<std::byte> received(kBytes + 64, std::byte(0xEE));
  b->destinations[9] = std::span(received).first(kBytes);
  b->bulk_total = kBytes;
  BulkSend bulk;
  bulk.peer = 1;
  bulk.receiver_slot = 9;
  bulk.payload = payload;
  const WireHeader before = eager_header(1, 0);
  co_await send(a, 1, before, {});
  a->transport.send_bulk(bulk);
  const std::vector<std::byte> small = pattern(100, 2);
  constexpr std::size_t kSmall = 50;
  for (std::size_t i = 0; i < kSmall; ++i) {
    const std::size_t bytes_before = b->bulk_bytes;
    const WireHeader header = eager_header(2 + i, small.size());
    co_await send(a, 1, header, small);
    while (b->bulk_bytes == bytes_before && b->bulk_bytes < kBytes) {
      b->changed.reset();
      co_await b->changed.wait();
    }
  }
  co_await until(b, &TcpRank::bulk_bytes, kBytes);
  co_await until(b, &TcpRank::received, kSmall + 1);
  co_await until(a, &TcpRank::bulks_sent, 1);
  EXPECT_TRUE(a->bulk_outcomes.front().ok());
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), received.begin()));
  EXPECT_EQ(received[kBytes], std::byte(0xEE)) << "written past the end";
  // Expect: small packets did not wait for the end of the bulk, and kept their order.
  EXPECT_GE(b->received_at_bulk_end, kSmall / 2);
  for (std::size_t i = 0; i <= kSmall; ++i)
    EXPECT_EQ(b->packets[i].header.tag, i + 1);
}

TEST_P(TcpTransportTest, BulkArrivesWholeAndSmallPacketsGoBetweenItsFrames) {
  run(bulk_with_small_packets);
}

Task<void> many_bulks(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  const std::vector<std::size_t> sizes{1, 23, 4096, 65537, 262144, 262145, 1 << 20, 3, 700000};
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> received;
  std::vector<BulkSend> bulks(2 * sizes.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < bulks.size(); ++i) {
    const std::size_t size = sizes[i % sizes.size()];
    sent.push_back(pattern(size, i));
    received.emplace_back(size);
    total += size;
  }
  for (std::size_t i = 0; i < bulks.size(); ++i) {
    TcpRank* const from = i < sizes.size() ? a : b;  // both directions at once
    TcpRank* const to = i < sizes.size() ? b : a;
    to->destinations[static_cast<std::uint32_t>(i)] = received[i];
    bulks[i].peer = i < sizes.size() ? 1 : 0;
    bulks[i].receiver_slot = static_cast<std::uint32_t>(i);
    bulks[i].payload = sent[i];
    from->transport.send_bulk(bulks[i]);
  }
  co_await until(a, &TcpRank::bulk_bytes, total / 2);
  co_await until(b, &TcpRank::bulk_bytes, total / 2);
  co_await until(a, &TcpRank::bulks_sent, sizes.size());
  co_await until(b, &TcpRank::bulks_sent, sizes.size());
  for (std::size_t i = 0; i < bulks.size(); ++i) {
    const bool equal = sent[i] == received[i];
    EXPECT_TRUE(equal) << "bulk " << i;
  }
}

TEST_P(TcpTransportTest, ManyBulksInBothDirectionsAtOnce) {
  run(many_bulks);
}

Task<void> stopped_reader(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  b->stopped = true;
  b->keep = false;
  const std::vector<std::byte> payload = pattern(1000, 1);
  std::size_t sent = 0;
  // The kernel takes some megabytes on both sides, then the transport says no and does not grow.
  while (a->transport.try_send(1, eager_header(sent, payload.size()), payload)) {
    ++sent;
    if (sent % 64 == 0) a->transport.flush();
    if (sent > 1000000) break;
  }
  EXPECT_LT(sent, 1000000U);
  EXPECT_FALSE(a->transport.drained());
  for (int i = 0; i < 10; ++i)
    co_await sleep_for(Duration::zero());
  EXPECT_EQ(a->writable, 0U);
  // Expect: once the reader goes on, the sender is told, and all arrives.
  b->stopped = false;
  co_await until(a, &TcpRank::writable, 1);
  const WireHeader last = eager_header(sent, payload.size());
  co_await send(a, 1, last, payload);
  co_await until(b, &TcpRank::received, sent + 1);
  EXPECT_EQ(b->received_bytes, (sent + 1) * payload.size());
  EXPECT_TRUE(a->transport.drained());
}

TEST_P(TcpTransportTest, AReaderThatStopsStopsTheSenderWithoutLoss) {
  run(stopped_reader);
}

Task<void> steady_state(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  a->keep = b->keep = false;
  const std::vector<std::byte> payload = pattern(64, 1);
  const std::vector<std::byte> large = pattern(1 << 20, 2);
  std::vector<std::byte> place(large.size());
  b->destinations[1] = place;
  a->bulk_outcomes.reserve(200);
  std::uint64_t allocations = 0;
  for (std::size_t round = 1; round <= 120; ++round) {
    if (round == 20) allocations = weft::test::allocations_of_this_thread();
    EXPECT_TRUE(a->transport.try_send(1, eager_header(round, payload.size()), payload));
    while (b->received < round) {
      b->changed.reset();
      co_await b->changed.wait();
    }
    EXPECT_TRUE(b->transport.try_send(0, eager_header(round, payload.size()), payload));
    BulkSend bulk;
    bulk.peer = 1;
    bulk.receiver_slot = 1;
    bulk.payload = large;
    a->transport.send_bulk(bulk);
    while (a->received < round || b->bulk_bytes < round * large.size() || a->bulks_sent < round) {
      Event& changed = a->received < round || a->bulks_sent < round ? a->changed : b->changed;
      changed.reset();
      co_await changed.wait();
    }
  }
  EXPECT_EQ(weft::test::allocations_of_this_thread() - allocations, 0U);
}

TEST_P(TcpTransportTest, NothingIsAllocatedInTheSteadyState) {
  run(steady_state);
}

// Two ranks on threads of their own.
Task<void> flood_body(Nursery& nursery, TcpRank* mine, TcpRank* server, std::int32_t rank, std::size_t count) {
  nursery.start(mine->transport.serve());
  const std::int32_t peer = 1 - rank;
  if (rank == 1) {
    co_await mine->transport.connect(0, server->transport.address());
  } else {
    co_await until(mine, &TcpRank::connected, 1);
  }
  std::mt19937 random(static_cast<unsigned>(17 + rank));  // seeds 17 and 18
  std::vector<std::byte> payload = pattern(2000, std::size_t(rank));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = random() % 8 == 0 ? random() % payload.size() : random() % 64;
    const WireHeader header = eager_header(i, size);
    co_await send(mine, peer, header, std::span(payload).first(size));
    if (random() % 100 == 0) co_await sleep_for(Duration::zero());
  }
  co_await until(mine, &TcpRank::received, count);
  while (!mine->transport.drained())
    co_await sleep_for(Duration::zero());
  nursery.cancel();
}

TEST_P(TcpTransportTest, TwoThreadsFloodEachOther) {
  constexpr std::size_t kCount = 30000;
  Reactor reactors[2] = {Reactor(options_for(GetParam().io, GetParam().idle)),
                         Reactor(options_for(GetParam().io, GetParam().idle))};
  const JobToken token = JobToken::random();
  TcpRank ranks[2] = {{reactors[0], token, 0}, {reactors[1], token, 1}};
  std::thread threads[2];
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    threads[rank] = std::thread([&, rank] {
      Task<void> all = with_nursery(&flood_body, &ranks[rank], &ranks[0], rank, kCount);
      reactors[rank].run(with_deadline(kTooLong, std::move(all)));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ranks[rank].packets.size(), kCount);
    std::vector<std::byte> payload = pattern(2000, std::size_t(1 - rank));
    for (std::size_t i = 0; i < kCount; ++i) {
      const Packet& packet = ranks[rank].packets[i];
      ASSERT_EQ(packet.header.tag, i);
      ASSERT_TRUE(std::equal(packet.payload.begin(), packet.payload.end(), payload.begin()));
    }
    EXPECT_EQ(ranks[rank].lost, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, TcpTransportTest,
                         testing::Values(Mode{IoEngineKind::io_uring, IdleMode::block},
                                         Mode{IoEngineKind::io_uring, IdleMode::spin},
                                         Mode{IoEngineKind::epoll, IdleMode::block},
                                         Mode{IoEngineKind::epoll, IdleMode::spin}),
                         [](const auto& test) {
                           return std::string(test.param.io == IoEngineKind::epoll ? "Epoll" : "IoUring") +
                                  (test.param.idle == IdleMode::block ? "Block" : "Spin");
                         });

TEST(TcpAddress, ReadsWhatATransportPublishes) {
  const std::vector<TcpEndpoint> endpoints = parse_tcp_address("10.0.0.1:80,[::1]:65535,host:1");
  ASSERT_EQ(endpoints.size(), 3U);
  EXPECT_EQ(endpoints[0].host, "10.0.0.1");
  EXPECT_EQ(endpoints[0].port, 80);
  EXPECT_EQ(endpoints[1].host, "::1");
  EXPECT_EQ(endpoints[1].port, 65535);
  EXPECT_EQ(endpoints[2].host, "host");
}

TEST(TcpAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "host", "host:", ":80", "host:0", "host:65536", "host:80x", "a:1,,b:2", "a:1,"}) {
    EXPECT_THROW((void)parse_tcp_address(text), Error) << text;
  }
}

TEST(TcpAddress, ALoopbackMasterKeepsTheJobOnThisMachine) {
  EXPECT_EQ(tcp_local_host("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(tcp_local_host("localhost"), "127.0.0.1");
  EXPECT_THROW((void)tcp_local_host("no-such-host.invalid"), Error);
}

TEST(TcpLiveness, AnAnswerIsOverdueOnlyWhereOneIsDue) {
  EXPECT_FALSE(TcpLiveness::overdue({.silent_ms = 1000, .unacknowledged = 3, .probes = 0})) << "not long enough";
  EXPECT_TRUE(TcpLiveness::overdue({.silent_ms = 1100, .unacknowledged = 3, .probes = 0})) << "data without an answer";
  EXPECT_TRUE(TcpLiveness::overdue({.silent_ms = 1100, .unacknowledged = 0, .probes = 1}))
      << "a probe without an answer";
  // A rank that has not read for a minute: its kernel has answered every window probe, at growing distances.
  EXPECT_FALSE(TcpLiveness::overdue({.silent_ms = 60000, .unacknowledged = 0, .probes = 0}));
}

}  // namespace
}  // namespace weft::net
