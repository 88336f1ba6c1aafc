// Goal: the protocol keeps its promises whatever the other side sends, on a transport that does only what it is told.
#include "weft/net/protocol/messenger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace weft::net {
namespace {

constexpr std::int32_t kSelf = 0;
constexpr std::int32_t kPeer = 1;
constexpr std::int32_t kOther = 2;
constexpr std::size_t kEagerLimit = 1024;
constexpr std::size_t kWindow = 4096;

struct Sent {
  std::int32_t peer;
  WireHeader header;
  std::vector<std::byte> payload;
};

class ScriptedTransport final : public Transport {
 public:
  [[nodiscard]] const TransportCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::string address() const override { return {}; }
  Task<void> serve() override { co_return; }
  Task<void> connect(std::int32_t, std::string) override { co_return; }
  [[nodiscard]] bool try_send(std::int32_t peer, const WireHeader& header,
                              std::span<const std::byte> payload) noexcept override {
    if (room == 0) return false;
    --room;
    sent.push_back(Sent{peer, header, {payload.begin(), payload.end()}});
    return true;
  }
  [[nodiscard]] bool can_get(std::int32_t) const noexcept override { return gets_allowed; }
  void get(GetRequest& request) noexcept override { gets.push_back(&request); }
  void send_bulk(BulkSend& bulk) noexcept override { bulks.push_back(&bulk); }
  void flush() noexcept override {}
  bool poll() noexcept override { return false; }
  bool prepare_to_block() noexcept override { return true; }
  void after_block() noexcept override {}
  [[nodiscard]] bool drained() const noexcept override { return true; }
  void disconnect(std::int32_t peer) noexcept override { disconnected.push_back(peer); }

  std::size_t room = 1000000;
  bool gets_allowed = false;
  std::vector<Sent> sent;
  std::vector<GetRequest*> gets;
  std::vector<BulkSend*> bulks;
  std::vector<std::int32_t> disconnected;

 private:
  TransportCapabilities capabilities_{"scripted", 8192, kEagerLimit, kWindow, true};
};

class Bystander final : public Connector {
 public:
  void request_connection(std::int32_t peer) noexcept override { wanted.push_back(peer); }
  void on_peer_ended(std::int32_t peer) noexcept override { ended.push_back(peer); }
  void on_early_collective(std::int32_t, const WireHeader&, std::uint32_t) noexcept override { ++early; }
  void on_withdrawing(std::int32_t, std::uint32_t slot) noexcept override { withdrawing.push_back(slot); }
  std::vector<std::int32_t> wanted;
  std::vector<std::int32_t> ended;
  std::vector<std::uint32_t> withdrawing;
  int early = 0;
};

struct Done final : RequestOwner {
  void on_request_done() noexcept override { ++times; }
  int times = 0;
};

class MessengerTest : public testing::Test {
 protected:
  void SetUp() override {
    messenger.on_connected(kPeer, transport);
    messenger.on_connected(kOther, transport);
  }

  void deliver(std::int32_t from, const WireHeader& header, std::span<const std::byte> payload = {}) {
    IncomingPacket packet{header, payload};
    packet.header.length = static_cast<std::uint32_t>(payload.size());
    messenger.on_packets(from, std::span(&packet, 1));
  }
  template <typename T>
  void deliver_with(std::int32_t from, const WireHeader& header, const T& payload) {
    deliver(from, header, std::as_bytes(std::span(&payload, 1)));
  }
  static WireHeader header(PacketKind kind, std::uint64_t tag, std::uint32_t aux = 0) {
    WireHeader result;
    result.kind = kind;
    result.tag = tag;
    result.aux = aux;
    return result;
  }
  [[nodiscard]] SendRequest send(std::size_t bytes, std::uint64_t tag = 1, std::int32_t to = kPeer) {
    return SendRequest(done, to, 0, tag, std::span(memory).first(bytes));
  }

  Bystander bystander;
  ScriptedTransport transport;
  Messenger messenger{kSelf, 3, bystander};
  Done done;
  std::vector<std::byte> memory = std::vector<std::byte>(100000, std::byte{5});
};

TEST_F(MessengerTest, SmallMessagesGoEagerUntilTheWindowIsUsedUpThenByRendezvous) {
  std::deque<SendRequest> sends;
  for (int i = 0; i < 70; ++i) {
    sends.emplace_back(done, kPeer, 0u, 1u, std::span(memory).first(8));
    messenger.start_send(sends.back());
  }
  // Expect: 4096 bytes of window are 64 messages of one line.
  EXPECT_EQ(std::count_if(transport.sent.begin(), transport.sent.end(),
                          [](const Sent& s) { return s.header.kind == PacketKind::eager; }),
            64);
  EXPECT_EQ(transport.sent.back().header.kind, PacketKind::rts);
  EXPECT_EQ(done.times, 64);
  // Expect: credit opens the window again, and not further than it was.
  deliver(kPeer, header(PacketKind::credit, 1u << 30));
  SendRequest next = send(8);
  messenger.start_send(next);
  EXPECT_EQ(transport.sent.back().header.kind, PacketKind::eager);
  EXPECT_EQ(messenger.peer(kPeer).window_bytes, kWindow - 64);
  for (SendRequest& request : sends) {
    if (request.state == SendRequest::State::offered) deliver(kPeer, header(PacketKind::fin, 0, request.slot));
  }
  EXPECT_EQ(done.times, 71);
}

TEST_F(MessengerTest, WhatFindsNoRoomLeavesLaterInOrder) {
  transport.room = 1;
  std::deque<SendRequest> sends;
  for (std::uint64_t tag = 0; tag < 5; ++tag) {
    sends.emplace_back(done, kPeer, 0u, tag, std::span(memory).first(tag == 2 ? 5000 : 8));
    messenger.start_send(sends.back());
  }
  EXPECT_EQ(transport.sent.size(), 1u);
  EXPECT_FALSE(messenger.idle());
  transport.room = 2;
  messenger.on_writable(kPeer);
  transport.room = 10;
  messenger.on_writable(kPeer);
  ASSERT_EQ(transport.sent.size(), 5u);
  for (std::uint64_t tag = 0; tag < 5; ++tag) EXPECT_EQ(transport.sent[tag].header.tag, tag);
  EXPECT_EQ(transport.sent[2].header.kind, PacketKind::rts);
  EXPECT_TRUE(messenger.idle());
  deliver(kPeer, header(PacketKind::fin, 0, sends[2].slot));
  EXPECT_EQ(done.times, 5);
}

TEST_F(MessengerTest, ARendezvousWithoutGetIsStreamedAfterCts) {
  SendRequest large = send(50000);
  messenger.start_send(large);
  ASSERT_EQ(large.state, SendRequest::State::offered);
  // Expect: a CTS from somebody else changes nothing.
  deliver_with(kOther, header(PacketKind::cts, 0, large.slot), CtsPayload{50000, 7, 0});
  EXPECT_TRUE(transport.bulks.empty());
  deliver_with(kPeer, header(PacketKind::cts, 0, large.slot), CtsPayload{50000, 7, 0});
  ASSERT_EQ(transport.bulks.size(), 1u);
  EXPECT_EQ(transport.bulks[0]->receiver_slot, 7u);
  EXPECT_EQ(transport.bulks[0]->payload.size(), 50000u);
  // Expect: a second CTS does not start a second transfer.
  deliver_with(kPeer, header(PacketKind::cts, 0, large.slot), CtsPayload{50000, 8, 0});
  EXPECT_EQ(transport.bulks.size(), 1u);
  EXPECT_EQ(done.times, 0);
  messenger.on_bulk_sent(*transport.bulks[0], Outcome());
  EXPECT_EQ(done.times, 1);
}

TEST_F(MessengerTest, DataIsTakenInOrderAndWithinItsBoundsOnly) {
  std::vector<std::byte> buffer(3000);
  RecvRequest receive(done, MatchPattern{0, kPeer, 1, kWholeTag}, buffer);
  messenger.start_recv(receive);
  deliver_with(kPeer, header(PacketKind::rts, 1, 99), RtsPayload{3000, 0, 0, 0, 0});
  ASSERT_EQ(receive.state, RecvRequest::State::receiving);
  ASSERT_EQ(transport.sent.back().header.kind, PacketKind::cts);
  CtsPayload cts;
  std::memcpy(&cts, transport.sent.back().payload.data(), sizeof cts);
  WireHeader piece = header(PacketKind::data, 0, cts.slot);
  piece.length = 2000;
  EXPECT_EQ(messenger.bulk_destination(kOther, piece), nullptr) << "another peer";
  piece.tag = 8;
  EXPECT_EQ(messenger.bulk_destination(kPeer, piece), nullptr) << "a gap";
  piece.tag = 0;
  piece.length = 3001;
  EXPECT_EQ(messenger.bulk_destination(kPeer, piece), nullptr) << "past the end";
  piece.length = 2000;
  EXPECT_EQ(messenger.bulk_destination(kPeer, piece), buffer.data());
  messenger.on_bulk_received(kPeer, piece);
  EXPECT_EQ(messenger.bulk_destination(kPeer, piece), nullptr) << "twice";
  deliver(kPeer, header(PacketKind::data, 2000, cts.slot), std::span(memory).first(1000));
  EXPECT_EQ(done.times, 1);
  EXPECT_EQ(receive.length, 3000u);
  EXPECT_EQ(buffer.back(), std::byte{5});
  EXPECT_EQ(messenger.bulk_destination(kPeer, piece), nullptr) << "a name that has ended";
}

TEST_F(MessengerTest, AWithdrawnSendEndsOnlyWhenTheReceiverHasLetGo) {
  SendRequest large = send(50000);
  messenger.start_send(large);
  messenger.cancel_send(large, Outcome{Errc::timed_out, kNoRank, 0});
  EXPECT_EQ(transport.sent.back().header.kind, PacketKind::rts_cancel);
  EXPECT_EQ(done.times, 0);
  deliver(kPeer, header(PacketKind::rts_gone, 0, large.slot));
  EXPECT_EQ(done.times, 1);
  EXPECT_EQ(large.outcome.code, Errc::timed_out);

  SendRequest matched = send(50000);
  messenger.start_send(matched);
  messenger.cancel_send(matched, Outcome{Errc::timed_out, kNoRank, 0});
  deliver(kPeer, header(PacketKind::fin, 0, matched.slot));  // it had matched: it ends with its value
  EXPECT_EQ(matched.outcome.code, Errc::ok);
  EXPECT_EQ(done.times, 2);
}

TEST_F(MessengerTest, AWithdrawnSendWhoseReceiverNeverAnswersEndsWithItsPeer) {
  SendRequest large = send(50000);
  messenger.start_send(large);
  messenger.cancel_send(large, Outcome{Errc::timed_out, kNoRank, 0});
  ASSERT_EQ(bystander.withdrawing, std::vector<std::uint32_t>{large.slot});
  EXPECT_TRUE(messenger.still_withdrawing(large.slot));
  messenger.peer_ended(kPeer, PeerState::lost, Outcome{Errc::peer_lost, kPeer, 0}, "it does not answer");
  EXPECT_EQ(large.outcome.code, Errc::timed_out);
  EXPECT_FALSE(messenger.still_withdrawing(large.slot));
  EXPECT_EQ(transport.disconnected, std::vector<std::int32_t>{kPeer});
}

TEST_F(MessengerTest, AnRtsThatIsCancelledBeforeItMatchedIsForgotten) {
  deliver_with(kPeer, header(PacketKind::rts, 1, 99), RtsPayload{3000, 0, 0, 0, 0});
  deliver(kOther, header(PacketKind::rts_cancel, 0, 99));
  EXPECT_EQ(messenger.matcher().unexpected_count(), 1u) << "not the other's to cancel";
  deliver(kPeer, header(PacketKind::rts_cancel, 0, 99));
  EXPECT_EQ(messenger.matcher().unexpected_count(), 0u);
  EXPECT_EQ(transport.sent.back().header.kind, PacketKind::rts_gone);
  EXPECT_EQ(transport.sent.back().header.aux, 99u);
}

TEST_F(MessengerTest, ALostPeerFailsEverythingThatNeedsItAndNothingElse) {
  std::vector<std::byte> buffer(3000);
  std::vector<std::byte> buffer2(3000);
  RecvRequest exact(done, MatchPattern{0, kPeer, 1, kWholeTag}, buffer);
  RecvRequest receiving(done, MatchPattern{0, kPeer, 2, kWholeTag}, buffer2);
  RecvRequest other(done, MatchPattern{0, kOther, 1, kWholeTag}, buffer);
  RecvRequest any(done, MatchPattern{0, kAnySource, 3, kWholeTag}, buffer);
  for (RecvRequest* request : {&exact, &receiving, &other, &any}) messenger.start_recv(*request);
  deliver_with(kPeer, header(PacketKind::rts, 2, 99), RtsPayload{3000, 0, 0, 0, 0});
  SendRequest offered = send(50000);
  messenger.start_send(offered);
  transport.room = 0;
  SendRequest queued = send(8);
  messenger.start_send(queued);

  messenger.on_peer_lost(kPeer, Outcome{Errc::io, kPeer, 0}, "its connection was reset");
  for (const Outcome& outcome : {exact.outcome, receiving.outcome, offered.outcome, queued.outcome}) {
    EXPECT_EQ(outcome.code, Errc::peer_lost);
    EXPECT_EQ(outcome.peer, kPeer);
  }
  EXPECT_EQ(done.times, 4);
  EXPECT_EQ(bystander.ended, std::vector<std::int32_t>{kPeer});
  EXPECT_EQ(messenger.describe_end(kPeer), "is lost: its connection was reset");
  // Expect: what starts now fails at once, and the second report changes nothing.
  SendRequest late = send(8);
  messenger.start_send(late);
  EXPECT_EQ(late.outcome.code, Errc::peer_lost);
  messenger.on_peer_lost(kPeer, Outcome(), "again");
  EXPECT_EQ(bystander.ended.size(), 1u);
  // Expect: the last one gone, a receive from any rank has nobody to wait for.
  EXPECT_EQ(any.state, RecvRequest::State::posted);
  messenger.peer_ended(kOther, PeerState::lost, Outcome{Errc::peer_lost, kOther, 0}, "gone");
  EXPECT_EQ(other.outcome.code, Errc::peer_lost);
  EXPECT_EQ(any.outcome.code, Errc::peer_lost);
  EXPECT_EQ(transport.disconnected, std::vector<std::int32_t>{kOther});
}

TEST_F(MessengerTest, AGoodbyeThatBlamesAnotherRankIsPassedOn) {
  std::vector<std::byte> buffer(8);
  RecvRequest receive(done, MatchPattern{0, kPeer, 1, kWholeTag}, buffer);
  messenger.start_recv(receive);
  deliver(kPeer, header(PacketKind::goodbye, static_cast<std::uint64_t>(Errc::peer_lost), kOther + 1));
  EXPECT_EQ(receive.outcome.code, Errc::peer_lost);
  EXPECT_EQ(receive.outcome.peer, kOther);
  EXPECT_NE(messenger.describe_end(kOther).find("says rank 1"), std::string::npos) << messenger.describe_end(kOther);
  // Expect: the end of the connection that follows is no news.
  messenger.on_peer_lost(kPeer, Outcome(), "its connection ended");
  EXPECT_EQ(bystander.ended.size(), 1u);
}

TEST_F(MessengerTest, GarbageInEveryFieldTouchesNothing) {
  const std::uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::vector<std::byte> buffer(64, std::byte{0});
  RecvRequest receive(done, MatchPattern{4, kPeer, 1, kWholeTag}, buffer);
  messenger.start_recv(receive);
  SendRequest offered = send(50000);
  messenger.start_send(offered);
  std::vector<std::byte> noise(8192);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  constexpr std::array kKinds = {PacketKind::cts, PacketKind::data,       PacketKind::fin,     PacketKind::credit,
                                 PacketKind::rts, PacketKind::rts_cancel, PacketKind::rts_gone};
  for (int i = 0; i < 200000; ++i) {
    const PacketKind kind = kKinds[random() % kKinds.size()];
    WireHeader packet = header(kind, random(), static_cast<std::uint32_t>(random()));
    packet.context = 2;  // of no receive here
    std::size_t length = 0;
    if (kind == PacketKind::cts) length = sizeof(CtsPayload);
    if (kind == PacketKind::rts) length = sizeof(RtsPayload);
    if (kind == PacketKind::data) length = 1 + random() % 4096;
    if (packet.aux == offered.slot) continue;  // its real name: anything may follow
    deliver(random() % 2 == 0 ? kPeer : kOther, packet, std::span(noise).subspan(random() % 1024, length));
    if (i % 1000 == 0) messenger.matcher().drop_context(2);
  }
  messenger.matcher().drop_context(2);
  EXPECT_EQ(done.times, 0);
  EXPECT_EQ(receive.state, RecvRequest::State::posted);
  EXPECT_EQ(offered.state, SendRequest::State::offered);
  EXPECT_LE(messenger.peer(kPeer).window_bytes, kWindow);
  messenger.on_peer_lost(kPeer, Outcome(), "over");
  EXPECT_EQ(done.times, 2);
}

}  // namespace
}  // namespace weft::net
