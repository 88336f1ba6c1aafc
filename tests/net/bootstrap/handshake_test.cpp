// The handshake over sockets: both ends in one reactor, or one end played by hand.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "weft/net/bootstrap/handshake.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/when_all.hpp"

namespace weft::net {
namespace {

struct Pair {
  Socket client;
  Socket server;
};

Pair connected(Reactor& reactor) {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  Pair pair;
  pair.client = Socket(reactor, UniqueFd(fds[0]), "the-server");
  pair.server = Socket(reactor, UniqueFd(fds[1]), "the-client");
  return pair;
}

PeerHello hello(Purpose purpose, std::int32_t rank) {
  PeerHello made{purpose, rank};
  return made;
}

bool contains(const Error& error, std::string_view part) {
  return std::string_view(error.what()).find(part) != std::string_view::npos;
}

// Ends the connection with the task, as a caller does.
Task<PeerHello> client_end(Socket* socket, const JobToken* token, PeerHello mine) {
  Result<PeerHello> peer = co_await as_result(handshake_as_client(*socket, *token, mine));
  if (!peer) {
    socket->close();
    throw Error(peer.error());
  }
  co_return *peer;
}

Task<PeerHello> server_end(Socket* socket, const JobToken* token, PeerHello mine) {
  Result<PeerHello> peer = co_await as_result(handshake_as_server(*socket, *token, mine));
  if (!peer) {
    socket->close();
    throw Error(peer.error());
  }
  co_return *peer;
}

struct Outcomes {
  std::optional<Result<PeerHello>> client;
  std::optional<Result<PeerHello>> server;
};

Task<void> run_client(Pair* pair, const JobToken* token, PeerHello mine, Outcomes* outcomes) {
  Result<PeerHello> result = co_await as_result(client_end(&pair->client, token, mine));
  outcomes->client.emplace(std::move(result));
}

Task<void> run_server(Pair* pair, const JobToken* token, PeerHello mine, Outcomes* outcomes) {
  Result<PeerHello> result = co_await as_result(server_end(&pair->server, token, mine));
  outcomes->server.emplace(std::move(result));
}

Task<void> run_both(Pair* pair, const JobToken* client_token, const JobToken* server_token, PeerHello client,
                    PeerHello server, Outcomes* outcomes) {
  Task<void> one = run_client(pair, client_token, client, outcomes);
  Task<void> other = run_server(pair, server_token, server, outcomes);
  co_await when_all(std::move(one), std::move(other));
}

Outcomes meet(const JobToken& client_token, const JobToken& server_token, PeerHello client, PeerHello server) {
  Reactor reactor;
  Pair pair = connected(reactor);
  Outcomes outcomes;
  reactor.run(run_both(&pair, &client_token, &server_token, client, server, &outcomes));
  return outcomes;
}

TEST(Handshake, BothEndsLearnWhoTheOtherIs) {
  const JobToken token = JobToken::random();
  const Outcomes outcomes = meet(token, token, hello(Purpose::tcp, 3), hello(Purpose::tcp, 7));
  ASSERT_TRUE(*outcomes.client) << outcomes.client->error().what();
  ASSERT_TRUE(*outcomes.server) << outcomes.server->error().what();
  EXPECT_EQ(outcomes.client->value().rank, 7);
  EXPECT_EQ(outcomes.server->value().rank, 3);
}

TEST(Handshake, AnotherTokenIsUnauthorizedAtBothEnds) {
  const Outcomes outcomes =
      meet(JobToken::random(), JobToken::random(), hello(Purpose::shm, 3), hello(Purpose::shm, 7));
  ASSERT_FALSE(*outcomes.client);
  ASSERT_FALSE(*outcomes.server);
  EXPECT_EQ(outcomes.client->code(), Errc::unauthorized);
  EXPECT_EQ(outcomes.server->code(), Errc::unauthorized);
  EXPECT_TRUE(contains(outcomes.client->error(), "the-server")) << outcomes.client->error().what();
  EXPECT_TRUE(contains(outcomes.server->error(), "the-client")) << outcomes.server->error().what();
}

TEST(Handshake, AnotherPurposeIsNamedAtBothEnds) {
  const JobToken token = JobToken::random();
  const Outcomes outcomes = meet(token, token, hello(Purpose::shm, 3), hello(Purpose::store, 7));
  ASSERT_FALSE(*outcomes.client);
  ASSERT_FALSE(*outcomes.server);
  EXPECT_EQ(outcomes.client->code(), Errc::protocol);
  EXPECT_EQ(outcomes.server->code(), Errc::protocol);
  EXPECT_TRUE(contains(outcomes.client->error(), "store")) << outcomes.client->error().what();
  EXPECT_TRUE(contains(outcomes.server->error(), "shm")) << outcomes.server->error().what();
}

/// A peer played by hand: what `say` gives is sent, then its side is shut down where `hang_up`.
Result<PeerHello> serve_stranger(std::span<const std::byte> say, bool hang_up, Clock* clock = nullptr) {
  ReactorOptions options;
  options.clock = clock;
  Reactor reactor(options);
  Pair pair = connected(reactor);
  const JobToken token = JobToken::random();
  EXPECT_EQ(::send(pair.client.fd(), say.data(), say.size(), 0), static_cast<ssize_t>(say.size()));
  if (hang_up) {
    EXPECT_EQ(::shutdown(pair.client.fd(), SHUT_WR), 0);
  }
  return reactor.run(as_result(server_end(&pair.server, &token, hello(Purpose::store, 0))));
}

TEST(Handshake, GarbageIsNoWeft) {
  const std::string_view request = "GET / HTTP/1.1\r\n";
  const Result<PeerHello> peer = serve_stranger(std::as_bytes(std::span(request)), false);
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.code(), Errc::protocol);
}

TEST(Handshake, AHangUpBeforeDuringAndAfterTheHello) {
  HelloBytes bytes = make_hello(Role::client, hello(Purpose::store, 1), fresh_nonce());
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{8}, std::size_t{20}, kHelloBytes}) {
    const Result<PeerHello> peer = serve_stranger(std::span(bytes).first(length), true);
    ASSERT_FALSE(peer);
    EXPECT_TRUE(peer.code() == Errc::peer_closed || peer.code() == Errc::peer_lost) << peer.error().what();
    EXPECT_TRUE(contains(peer.error(), "the-client"));
  }
}

TEST(Handshake, AnotherVersionIsToldSo) {
  HelloBytes bytes = make_hello(Role::client, hello(Purpose::store, 1), fresh_nonce());
  bytes[8] = std::byte{99};
  const Result<PeerHello> peer = serve_stranger(bytes, false);
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.code(), Errc::protocol);
  EXPECT_TRUE(contains(peer.error(), "version 99")) << peer.error().what();
  EXPECT_TRUE(contains(peer.error(), "version " + std::to_string(kHandshakeVersion))) << peer.error().what();
}

TEST(Handshake, ARecordedProofFitsNoOtherConnection) {
  const JobToken token = JobToken::random();
  // What a listener on the wire has seen of an earlier connection.
  const HelloBytes client = make_hello(Role::client, hello(Purpose::store, 1), fresh_nonce());
  const HelloBytes server = make_hello(Role::server, hello(Purpose::store, 0), fresh_nonce());
  const ProofBytes proof = make_proof(token, Role::client, client, server);

  Reactor reactor;
  Pair pair = connected(reactor);
  ASSERT_EQ(::send(pair.client.fd(), client.data(), client.size(), 0), static_cast<ssize_t>(client.size()));
  ASSERT_EQ(::send(pair.client.fd(), proof.data(), proof.size(), 0), static_cast<ssize_t>(proof.size()));
  const Result<PeerHello> peer = reactor.run(as_result(server_end(&pair.server, &token, hello(Purpose::store, 0))));
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.code(), Errc::unauthorized);
}

/// Every look at it is a second later.
class HastyClock final : public Clock {
 public:
  Instant now() noexcept override { return now_ += std::chrono::seconds(1); }

 private:
  Instant now_{std::chrono::hours(1)};
};

TEST(Handshake, AServerDoesNotWaitForASilentStranger) {
  HelloBytes bytes = make_hello(Role::client, hello(Purpose::store, 1), fresh_nonce());
  for (const std::size_t length : {std::size_t{0}, std::size_t{20}, kHelloBytes}) {
    HastyClock clock;
    const Result<PeerHello> peer = serve_stranger(std::span(bytes).first(length), false, &clock);
    ASSERT_FALSE(peer);
    EXPECT_EQ(peer.code(), Errc::timed_out) << peer.error().what();
    EXPECT_TRUE(contains(peer.error(), length == kHelloBytes ? "proof" : "hello")) << peer.error().what();
  }
}

}  // namespace
}  // namespace weft::net
