// Goal: whatever a stranger or a dying peer does to a TCP transport, the rank learns of it once, in order, and only the
// connection concerned suffers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "net/tcp/tcp_rig.hpp"
#include "weft/net/bootstrap/handshake.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/net/tcp/tcp_address.hpp"

namespace weft::net {
namespace {

using namespace test;
using namespace std::chrono_literals;

class TcpFailureTest : public testing::TestWithParam<IoEngineKind> {
 protected:
  void SetUp() override {
    try {
      (void)make_io_engine(GetParam());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void run(Script script) {
    TcpPair pair(GetParam(), IdleMode::block);
    pair.run(script);
  }
};

Task<Socket> connect_raw(Reactor* reactor, std::string address) {
  const std::vector<TcpEndpoint> endpoints = parse_tcp_address(address);
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  Socket socket = co_await connect_tcp(*reactor, endpoints[0].host, endpoints[0].port, deadline);
  co_return std::move(socket);
}

/// A socket to `server` that has proven to be rank 1 of the job and is in the test's hands.
Task<Socket> connect_as_rank_1(TcpRank* server, JobToken token) {
  Reactor* const reactor = Reactor::current();
  Socket socket = co_await connect_raw(reactor, server->transport.address());
  const PeerHello mine{Purpose::tcp, 1};
  co_await handshake_as_client(socket, token, mine);
  co_await until(server, &TcpRank::connected, 1);
  co_return std::move(socket);
}

std::vector<std::byte> wire_form(const WireHeader& header, std::span<const std::byte> payload) {
  std::vector<std::byte> bytes(kWireHeaderBytes + payload.size());
  encode(header, bytes.data());
  std::copy(payload.begin(), payload.end(), bytes.begin() + kWireHeaderBytes);
  return bytes;
}

Task<void> strangers(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  Reactor* const reactor = Reactor::current();
  Socket silent = co_await connect_raw(reactor, a->transport.address());
  Socket gone = co_await connect_raw(reactor, a->transport.address());
  gone.close();
  Socket noisy = co_await connect_raw(reactor, a->transport.address());
  const std::vector<std::byte> garbage = pattern(10000, 3);
  const Result<void> written = co_await as_result(noisy.write_all(garbage));
  (void)written;
  // Expect: the one with the garbage is thrown out ...
  std::array<std::byte, 256> buffer{};
  Errc code = Errc::ok;
  for (std::size_t got = 1; code == Errc::ok && got != 0;) {
    const Result<std::size_t> result = co_await as_result(noisy.read_some(buffer));
    code = result.code();
    got = result ? *result : 0;
  }
  // ... so is who knows another job's token ...
  Socket other = co_await connect_raw(reactor, a->transport.address());
  const JobToken wrong = JobToken::random();
  const PeerHello rank_1{Purpose::tcp, 1};
  const Result<PeerHello> refused = co_await as_result(handshake_as_client(other, wrong, rank_1));
  EXPECT_EQ(refused.code(), Errc::unauthorized);
  EXPECT_EQ(a->connected, 0U);
  // ... and the job goes on as if nobody had been there.
  co_await connect_pair(a, b);
  const WireHeader header = eager_header(1, 0);
  co_await send(b, 0, header, {});
  co_await until(a, &TcpRank::received, 1);
  EXPECT_EQ(a->lost, 0U);
}

TEST_P(TcpFailureTest, StrangersAreTurnedAwayWithoutEffect) {
  run(strangers);
}

Task<void> wrong_peer(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  // Nobody listens there any more.
  std::string address;
  {
    const UniqueFd listener = listen_tcp("127.0.0.1", 0);
    address = "127.0.0.1:" + std::to_string(local_port(listener.get()));
  }
  Result<void> result = co_await as_result(with_deadline(Duration(50ms), b->transport.connect(0, address)));
  EXPECT_TRUE(result.code() == Errc::timed_out || result.code() == Errc::unreachable) << int(result.code());
  EXPECT_EQ(result.error().peer(), 0);
  EXPECT_NE(std::string(result.error().what()).find("from rank 1 to rank 0"), std::string::npos)
      << result.error().what();
  result = co_await as_result(b->transport.connect(0, "nonsense"));
  EXPECT_EQ(result.code(), Errc::protocol);
  EXPECT_EQ(a->connected + b->connected, 0U);
}

TEST_P(TcpFailureTest, AFailedConnectNamesBothEnds) {
  run(wrong_peer);
}

// Goal: what stands before the fault is delivered, then the loss is reported, once, and then nothing.
struct BadEnding {
  std::vector<std::byte> bytes;  ///< behind one good packet
  bool then_close;
  Errc code;
  const char* cause;
};

Task<void> bad_ending(Nursery& /*nursery*/, TcpRank* server, JobToken token, BadEnding* ending) {
  Socket socket = co_await connect_as_rank_1(server, token);
  const std::vector<std::byte> payload = pattern(100, 1);
  const std::vector<std::byte> good = wire_form(eager_header(1, payload.size()), payload);
  co_await socket.write_all(good);
  co_await socket.write_all(ending->bytes);
  if (ending->then_close) socket.close();
  co_await until(server, &TcpRank::lost, 1);
  EXPECT_EQ(server->received, 1U);
  EXPECT_EQ(server->lost_peer, 1);
  EXPECT_EQ(server->lost_outcome.code, ending->code);
  EXPECT_NE(server->cause.find(ending->cause), std::string::npos) << server->cause;
  EXPECT_FALSE(server->transport.try_send(1, eager_header(1, 0), {}));
  // A bulk for a peer that is gone comes back.
  BulkSend bulk;
  bulk.peer = 1;
  bulk.payload = payload;
  server->lost = 0;
  server->transport.send_bulk(bulk);
  co_await until(server, &TcpRank::bulks_sent, 1);
  EXPECT_EQ(server->bulk_outcomes.front().code, Errc::peer_lost);
  EXPECT_EQ(server->lost, 0U);
}

Task<void> serve_bad_ending(Nursery& nursery, TcpRank* server, JobToken token, BadEnding* ending) {
  nursery.start(server->transport.serve());
  co_await bad_ending(nursery, server, token, ending);
  nursery.cancel();
}

TEST_P(TcpFailureTest, WhatIsNoPacketEndsTheConnectionAfterThePacketsBeforeIt) {
  const std::vector<std::byte> header = wire_form(eager_header(2, 0), {});
  WireHeader bad_version = eager_header(2, 0);
  bad_version.version = 99;
  WireHeader bad_kind = eager_header(2, 0);
  bad_kind.kind = static_cast<PacketKind>(200);
  WireHeader data = eager_header(0, 4);
  data.kind = PacketKind::data;
  data.aux = 1234;
  const std::vector<std::byte> four(4);
  std::vector<BadEnding> endings;
  endings.push_back({{header.begin(), header.begin() + 11}, true, Errc::peer_lost, "middle of a packet"});
  const std::vector<std::byte> half = wire_form(eager_header(2, 1000), {});
  endings.push_back({half, true, Errc::peer_lost, "middle of a packet"});
  endings.push_back({{}, true, Errc::peer_lost, "ended"});
  endings.push_back({wire_form(bad_version, {}), false, Errc::protocol, "no Weft packet"});
  endings.push_back({wire_form(bad_kind, {}), false, Errc::protocol, "no Weft packet"});
  endings.push_back({wire_form(eager_header(2, kTcpMaxPacketBytes + 1), {}), false, Errc::protocol, "no Weft packet"});
  endings.push_back({wire_form(eager_header(2, 0xFFFFFFFF), {}), false, Errc::protocol, "no Weft packet"});
  endings.push_back({wire_form(data, four), false, Errc::protocol, "no transfer expects"});
  for (BadEnding& ending : endings) {
    Reactor reactor(options_for(GetParam(), IdleMode::block));
    const JobToken token = JobToken::random();
    TcpRank server(reactor, token, 0);
    Task<void> all = with_nursery(&serve_bad_ending, &server, token, &ending);
    reactor.run(with_deadline(kTooLong, std::move(all)));
  }
}

Task<void> lost_with_bulk(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  b->stopped = true;
  const std::vector<std::byte> payload(32 << 20);
  std::array<BulkSend, 3> bulks;
  for (BulkSend& bulk : bulks) {
    bulk.peer = 1;
    bulk.payload = payload;
    a->transport.send_bulk(bulk);
  }
  for (int i = 0; i < 100; ++i)
    co_await sleep_for(Duration::zero());
  b->transport.disconnect(0);
  co_await until(a, &TcpRank::lost, 1);
  // Expect: all requests were back before (TcpRank checks the order), none with success.
  EXPECT_EQ(a->bulks_sent, 3U);
  for (const Outcome& outcome : a->bulk_outcomes) {
    EXPECT_EQ(outcome.code, Errc::peer_lost);
    EXPECT_EQ(outcome.peer, 1);
  }
  EXPECT_EQ(b->lost, 0U) << "who disconnects hears nothing more";
}

TEST_P(TcpFailureTest, BulkOfALostPeerComesBackBeforeTheLoss) {
  run(lost_with_bulk);
}

Task<void> disconnect_inside(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  b->disconnect_on_packet = true;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const WireHeader header = eager_header(i, 0);
    co_await send(a, 1, header, {});
  }
  co_await until(a, &TcpRank::lost, 1);
  EXPECT_GE(b->received, 1U);
  EXPECT_LE(b->received, 16U) << "no burst after the one that disconnected";
  EXPECT_EQ(b->lost, 0U);
  EXPECT_FALSE(b->transport.try_send(0, eager_header(0, 0), {}));
}

TEST_P(TcpFailureTest, DisconnectFromInsideADelivery) {
  run(disconnect_inside);
}

Task<void> last_words(Nursery& /*nursery*/, TcpRank* a, TcpRank* b) {
  co_await connect_pair(a, b);
  // b has unread bytes when it says goodbye and closes: the goodbye must arrive all the same.
  b->stopped = true;
  const std::vector<std::byte> payload = pattern(1000, 1);
  const WireHeader header = eager_header(1, payload.size());
  for (int i = 0; i < 10; ++i)
    co_await send(a, 1, header, payload);
  a->transport.flush();
  WireHeader goodbye = eager_header(0, 0);
  goodbye.kind = PacketKind::goodbye;
  EXPECT_TRUE(b->transport.try_send(0, goodbye, {}));
  b->transport.disconnect(0);
  co_await until(a, &TcpRank::lost, 1);
  EXPECT_EQ(a->received, 1U);
}

TEST_P(TcpFailureTest, TheLastPacketBeforeADisconnectArrives) {
  run(last_words);
}

// The life of the rank that will be killed, in a process of its own.
Task<void> doomed(Nursery& nursery, TcpRank* rank, std::string address) {
  nursery.start(rank->transport.serve());
  co_await rank->transport.connect(0, address);
  const std::vector<std::byte> payload = pattern(100, 1);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const WireHeader header = eager_header(i, payload.size());
    co_await send(rank, 0, header, payload);
  }
  rank->transport.flush();
  while (!rank->transport.drained())
    co_await sleep_for(Duration::zero());
  const std::vector<std::byte> large(64 << 20);
  BulkSend bulk;
  bulk.peer = 0;
  bulk.receiver_slot = 1;
  bulk.payload = large;
  rank->transport.send_bulk(bulk);
  co_await sleep_for(Duration::zero());
  co_await sleep_for(Duration::zero());
  ::kill(::getpid(), SIGKILL);
}

Task<void> survivor(Nursery& nursery, TcpRank* rank, int address_fd) {
  nursery.start(rank->transport.serve());
  const std::string address = rank->transport.address();
  EXPECT_EQ(::write(address_fd, address.data(), address.size()), ssize_t(address.size()));
  ::close(address_fd);
  co_await until(rank, &TcpRank::lost, 1);
  EXPECT_EQ(rank->received, 1000U) << "everything that had arrived comes before the loss";
  EXPECT_EQ(rank->lost_peer, 1);
  EXPECT_EQ(rank->lost_outcome.code, Errc::peer_lost);
  EXPECT_FALSE(rank->cause.empty());
  nursery.cancel();
}

TEST_P(TcpFailureTest, AKilledPeerIsReportedAfterItsLastPacket) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const JobToken token = JobToken::random();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(pipe_fds[1]);
    std::array<char, 256> text{};
    const ssize_t got = ::read(pipe_fds[0], text.data(), text.size());
    if (got <= 0) ::_exit(3);
    Reactor reactor(options_for(GetParam(), IdleMode::block));
    TcpRank rank(reactor, token, 1);
    Task<void> all = with_nursery(&doomed, &rank, std::string(text.data(), std::size_t(got)));
    reactor.run(std::move(all));
    ::_exit(4);
  }
  ::close(pipe_fds[0]);
  Reactor reactor(options_for(GetParam(), IdleMode::block));
  TcpRank rank(reactor, token, 0);
  std::vector<std::byte> place(64 << 20);
  rank.destinations[1] = place;
  Task<void> all = with_nursery(&survivor, &rank, pipe_fds[1]);
  reactor.run(with_deadline(kTooLong, std::move(all)));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

INSTANTIATE_TEST_SUITE_P(Engines, TcpFailureTest, testing::Values(IoEngineKind::io_uring, IoEngineKind::epoll),
                         [](const auto& test) { return test.param == IoEngineKind::epoll ? "Epoll" : "IoUring"; });

}  // namespace
}  // namespace weft::net
