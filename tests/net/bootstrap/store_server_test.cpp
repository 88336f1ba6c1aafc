// Connections to the store's port that do not belong to the job: whatever they do, the job must not notice.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "net/bootstrap/store_world.hpp"
#include "weft/net/bootstrap/handshake.hpp"

namespace weft::net {
namespace {

UniqueFd knock(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void say(const UniqueFd& fd, std::span<const std::byte> bytes) {
  // The server may hang up at any time.
  static_cast<void>(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// Reads until the other end closes; true if it did so within 20 s.
bool hangs_up(const UniqueFd& fd) {
  const timeval limit{20, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::array<char, 256> buffer;
  while (true) {
    const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) return true;
    if (got < 0) return errno == ECONNRESET;
  }
}

struct Strangers {
  std::uint16_t port = 0;
  std::vector<UniqueFd> open;
};

PeerHello store_hello() {
  PeerHello hello{Purpose::store, 1};
  return hello;
}

/// One of each kind; those that the server turns away at once are waited for.
void visit(Strangers& strangers) {
  strangers.open.push_back(knock(strangers.port));  // says nothing and stays

  strangers.open.push_back(knock(strangers.port));  // half a hello, and stays
  const HelloBytes hello = make_hello(Role::client, store_hello(), fresh_nonce());
  say(strangers.open.back(), std::span(hello).first(30));

  const UniqueFd scanner = knock(strangers.port);
  say(scanner, std::as_bytes(std::span(std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))));
  EXPECT_TRUE(hangs_up(scanner));

  const UniqueFd zeros = knock(strangers.port);
  const std::vector<std::byte> megabyte(1 << 20);
  say(zeros, megabyte);
  EXPECT_TRUE(hangs_up(zeros));

  // A faultless handshake with another job's token.
  const UniqueFd other_job = knock(strangers.port);
  say(other_job, hello);
  HelloBytes answer;
  ASSERT_EQ(::recv(other_job.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
  say(other_job, make_proof(JobToken::random(), Role::client, hello, answer));
  EXPECT_TRUE(hangs_up(other_job));

  // The server's own words sent back to it.
  const UniqueFd mirror = knock(strangers.port);
  say(mirror, hello);
  ASSERT_EQ(::recv(mirror.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
  say(mirror, answer);
  EXPECT_TRUE(hangs_up(mirror));

  knock(strangers.port);  // comes and goes
}

Task<void> work_among_strangers(StoreRank& self) {
  co_await self.client->set("key/" + std::to_string(self.rank), {});
  // Rank 1's thread is free to block: the server runs in rank 0's.
  if (self.rank == 1) visit(*static_cast<Strangers*>(self.shared));
  co_await self.client->barrier("visited");
  std::vector<std::string> keys = {"key/0", "key/1", "key/2"};
  co_await self.client->wait_all(std::move(keys));
}

TEST(StoreStrangers, ChangeNothingForARunningJob) {
  Strangers strangers;
  StoreWorld world(3, work_among_strangers, &strangers);
  strangers.port = world.port();
  world.run();
  for (const std::int32_t rank : {0, 1, 2}) {
    EXPECT_FALSE(world[rank].failure.has_value()) << world[rank].failure->what();
    for (const std::string& event : world[rank].events)
      EXPECT_TRUE(event.starts_with("left")) << event;
  }
  EXPECT_GE(world[0].strangers, 4u);
}

Task<void> meet(StoreRank& self) {
  co_await self.client->barrier("met");
}

TEST(StoreStrangers, ThatCameFirstDoNotKeepTheRanksOut) {
  Strangers strangers;
  StoreWorld world(3, meet, &strangers);
  // More than there are places; they sit in the queue before any rank does, and say nothing.
  for (std::size_t i = 0; i < StoreServer::kMaxUnproven + 20; ++i)
    strangers.open.push_back(knock(world.port()));
  world.run();
  for (const std::int32_t rank : {0, 1, 2}) {
    EXPECT_FALSE(world[rank].failure.has_value()) << world[rank].failure->what();
  }
  EXPECT_GE(world[0].strangers, 1u);
}

/// Proves the token as rank 1 does, by hand.
void prove(const UniqueFd& fd, const JobToken& token) {
  const HelloBytes hello = make_hello(Role::client, store_hello(), fresh_nonce());
  say(fd, hello);
  HelloBytes answer;
  EXPECT_EQ(::recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
  say(fd, make_proof(token, Role::client, hello, answer));
  ProofBytes proof;
  EXPECT_EQ(::recv(fd.get(), proof.data(), proof.size(), MSG_WAITALL), static_cast<ssize_t>(proof.size()));
  EXPECT_EQ(check_proof(proof, token, Role::server, hello, answer), Errc::ok);
}

TEST(StoreStrangers, WithTheTokenButNoJoinAreSentAway) {
  StoreWorld world(2, nullptr);
  struct Shared {
    std::uint16_t port;
    const JobToken* token;
  } shared{world.port(), &world.token()};
  world[0].shared = &shared;
  world[1].shared = &shared;
  const StoreRank::Body body = [](StoreRank& self) -> Task<void> {
    if (self.rank == 1) {
      const auto& known = *static_cast<Shared*>(self.shared);
      const UniqueFd fd = knock(known.port);
      prove(fd, *known.token);
      // A frame of 4 GiB, it says.
      const std::array<std::byte, 8> huge{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
      say(fd, huge);
      EXPECT_TRUE(hangs_up(fd));
    }
    co_await self.client->barrier("end");
  };
  world[0].body = body;
  world[1].body = body;
  world.run();
  for (const std::int32_t rank : {0, 1}) {
    EXPECT_FALSE(world[rank].failure.has_value()) << world[rank].failure->what();
  }
}

TEST(StoreServer, D16ARankThatDiesDuringTheStartIsNamedByAllOthers) {
  StoreWorld world(2, meet);
  for (const std::int32_t rank : {0, 1})
    world[rank].options.world_size = 3;
  std::thread rank_2([&world] {
    const UniqueFd fd = knock(world.port());
    prove(fd, world.token());
    say(fd, store::encode(store::Join{2, 3}));
    // Its Welcome: it is in.
    std::array<std::byte, 5> welcome;
    EXPECT_EQ(::recv(fd.get(), welcome.data(), welcome.size(), MSG_WAITALL), static_cast<ssize_t>(welcome.size()));
  });
  world.run();
  rank_2.join();
  ASSERT_TRUE(world[0].failure.has_value());
  EXPECT_EQ(world[0].failure->code(), Errc::peer_lost);
  EXPECT_EQ(world[0].failure->peer(), 2) << world[0].failure->what();
}

}  // namespace
}  // namespace weft::net
