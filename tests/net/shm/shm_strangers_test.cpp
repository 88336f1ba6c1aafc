// Goal: a stranger who finds the socket, and a peer that does not play by the rules, change nothing for the rank and
// its other peers. They run on the reactor of the rank that they talk to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/shm/shm_rank.hpp"
#include "weft/net/bootstrap/handshake.hpp"
#include "weft/net/shm/shm_transport.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

using namespace test;

/// A rank, and whoever pretends to be its peer 1.
void with_rank(Task<void> (*body)(ShmRank*)) {
  ShmRank rank(0, 3, IdleMode::block);
  rank.run([&](ShmRank& self) { return body(&self); });
}

ShmAddress address_of(const ShmRank& rank) {
  ShmAddress address;
  EXPECT_TRUE(parse_shm_address(rank.transport.address(), address));
  return address;
}

/// What a peer that plays by the rules has; a liar changes parts of it.
struct Impostor {
  explicit Impostor(ShmRank* rank, std::int32_t as = 1)
      : doorbell(SharedMemory::create("weft-doorbell", sizeof(Doorbell), SharedMemory::Access::owner_only)),
        event(make_event_fd()),
        connected(3),
        self{rank->reactor, token, as, doorbell, event.get(), word.probe(), true, true, connected} {}

  JobToken token = job_token();
  SharedMemory doorbell;
  UniqueFd event;
  ProbeWord word;
  std::vector<ShmConnection*> connected;
  ShmSelf self;
};

Task<void> expect_end_of_stream(Socket* socket) {
  std::array<std::byte, 256> bytes{};
  for (;;) {
    Task<std::size_t> reading = socket->read_some(bytes);
    Result<std::size_t> got = co_await as_result(std::move(reading));
    if (!got.has_value() || got.value() == 0) co_return;  // closed, in one way or another
  }
}

/// The rank still accepts a peer that plays by the rules.
Task<void> expect_still_serving(ShmRank* rank, std::size_t connections_before) {
  Impostor honest(rank, 2);
  ShmAddress there = address_of(*rank);
  ShmLink link = co_await shm_connect(&honest.self, 0, std::move(there.socket_name));
  EXPECT_EQ(link.peer, 0);
  while (rank->sink.connections.size() == connections_before)
    co_await yield();
  EXPECT_EQ(rank->sink.connections.back(), 2);
}

Task<void> garbage_instead_of_a_hello(ShmRank* rank) {
  Socket socket = co_await connect_unix(rank->reactor, address_of(*rank).socket_name);
  std::array<std::byte, 4096> garbage{};
  fill(garbage, 1);
  co_await socket.write_all(garbage);
  co_await expect_end_of_stream(&socket);
  EXPECT_TRUE(rank->sink.connections.empty());
  co_await expect_still_serving(rank, 0);
}

TEST(ShmStrangers, GarbageOnTheSocketChangesNothing) {
  with_rank(&garbage_instead_of_a_hello);
}

Task<void> another_jobs_token(ShmRank* rank) {
  Impostor impostor(rank);
  impostor.token = JobToken::derived("another job");
  Task<ShmLink> connecting = shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  Result<ShmLink> result = co_await as_result(std::move(connecting));
  EXPECT_FALSE(result.has_value());
  if (!result.has_value()) {
    EXPECT_EQ(result.error().code(), Errc::unauthorized);
  }
  EXPECT_TRUE(rank->sink.connections.empty());
  co_await expect_still_serving(rank, 0);
}

TEST(ShmStrangers, AnotherJobsTokenIsTurnedAway) {
  with_rank(&another_jobs_token);
}

/// The set-up messages, byte by byte, with descriptors of the test's choice. Returns the code in the answer.
Task<std::uint32_t> offer_by_hand(ShmRank* rank, Impostor* impostor, std::vector<int>* fds, std::int32_t as) {
  Socket socket = co_await connect_unix(rank->reactor, address_of(*rank).socket_name);
  const PeerHello mine{Purpose::shm, as};
  co_await handshake_as_client(socket, impostor->token, mine);
  std::array<std::byte, 40> offer{};
  const std::uint64_t magic = 0x31306d6873666577;
  const std::uint32_t sizes[2] = {sizeof(PairSegment), kRingLines};
  const MemoryProbe probe = impostor->word.probe();
  std::memcpy(offer.data(), &magic, 8);
  std::memcpy(offer.data() + 8, sizes, 8);
  std::memcpy(offer.data() + 16, &probe, sizeof probe);
  co_await socket.write_with_fds(offer, *fds);
  std::array<std::byte, 40> answer{};
  std::vector<UniqueFd> received;
  co_await socket.read_with_fds(answer, received, 2);
  std::uint32_t code = 0;
  std::memcpy(&code, answer.data() + 8, 4);
  co_return code;
}

Task<void> memory_that_could_shrink(ShmRank* rank) {
  Impostor impostor(rank);
  UniqueFd memory(::memfd_create("weft-liar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), sizeof(PairSegment)), 0);
  std::vector<int> fds{memory.get(), impostor.doorbell.fd(), impostor.event.get()};
  std::uint32_t code = co_await offer_by_hand(rank, &impostor, &fds, 1);
  EXPECT_EQ(static_cast<Errc>(code), Errc::protocol);
  // Expect: neither is a segment of another size, a file, or a descriptor too few, taken.
  SharedMemory small = SharedMemory::create("weft-liar", 4096, SharedMemory::Access::mutual);
  fds[0] = small.fd();
  code = co_await offer_by_hand(rank, &impostor, &fds, 1);
  EXPECT_EQ(static_cast<Errc>(code), Errc::protocol);
  UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  fds[0] = file.get();
  code = co_await offer_by_hand(rank, &impostor, &fds, 1);
  EXPECT_EQ(static_cast<Errc>(code), Errc::protocol);
  fds.pop_back();
  code = co_await offer_by_hand(rank, &impostor, &fds, 1);
  EXPECT_EQ(static_cast<Errc>(code), Errc::protocol);
  // Expect: nobody claims a rank outside the world, or the rank's own.
  SharedMemory right = SharedMemory::create("weft-liar", sizeof(PairSegment), SharedMemory::Access::mutual);
  fds.assign({right.fd(), impostor.doorbell.fd(), impostor.event.get()});
  for (const std::int32_t as : {0, 3, -1}) {
    code = co_await offer_by_hand(rank, &impostor, &fds, as);
    EXPECT_EQ(static_cast<Errc>(code), Errc::mismatch) << as;
  }
  EXPECT_TRUE(rank->sink.connections.empty());
  co_await expect_still_serving(rank, 0);
}

TEST(ShmStrangers, MemoryThatIsNotSealedOrNotOfTheRightSizeIsRefused) {
  with_rank(&memory_that_could_shrink);
}

Task<void> twice_the_same_rank(ShmRank* rank) {
  Impostor impostor(rank);
  ShmLink first = co_await shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  while (rank->sink.connections.empty())
    co_await yield();
  Task<ShmLink> again = shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  Result<ShmLink> second = co_await as_result(std::move(again));
  EXPECT_FALSE(second.has_value());
  EXPECT_EQ(rank->sink.connections.size(), 1U);
  EXPECT_TRUE(rank->sink.losses.empty());
}

TEST(ShmStrangers, ARankThatIsConnectedAlreadyIsRefused) {
  with_rank(&twice_the_same_rank);
}

Task<void> corrupt_ring(ShmRank* rank) {
  Impostor impostor(rank);
  ShmLink link = co_await shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  while (rank->sink.connections.empty())
    co_await yield();
  auto* const segment = reinterpret_cast<PairSegment*>(link.segment.data());
  RingProducer out(segment->lines[0], segment->control[0]);
  EXPECT_TRUE(out.try_push(WireHeader(), {}));
  auto& word = *reinterpret_cast<std::uint64_t*>(segment->lines[0] + kLineBytes);
  std::atomic_ref<std::uint64_t>(word).store(detail::ring_first_word(PacketKind::eager, 1, kRingMaxPayload + 1));
  ring_event_fd(link.event.get());
  co_await rank->sink.lost.wait();
  // Expect: the good packet before the bad one was delivered.
  EXPECT_EQ(rank->sink.packets, 1U);
  EXPECT_EQ(rank->sink.losses[0].outcome.code, Errc::protocol);
}

TEST(ShmStrangers, AMalformedPacketEndsTheConnection) {
  with_rank(&corrupt_ring);
}

Task<void> impossible_position(ShmRank* rank) {
  Impostor impostor(rank);
  ShmLink link = co_await shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  while (rank->sink.connections.empty())
    co_await yield();
  auto* const segment = reinterpret_cast<PairSegment*>(link.segment.data());
  segment->control[1].released.store(123456);
  WireHeader header;
  while (rank->transport.try_send(1, header, {})) {
  }
  co_await rank->sink.lost.wait();
  EXPECT_EQ(rank->sink.losses[0].outcome.code, Errc::protocol);
}

TEST(ShmStrangers, AnImpossibleRingPositionEndsTheConnection) {
  with_rank(&impossible_position);
}

Task<void> bytes_after_set_up(ShmRank* rank) {
  Impostor impostor(rank);
  ShmLink link = co_await shm_connect(&impostor.self, 0, address_of(*rank).socket_name);
  while (rank->sink.connections.empty())
    co_await yield();
  EXPECT_EQ(::write(link.socket.get(), "x", 1), 1);
  co_await rank->sink.lost.wait();
  EXPECT_EQ(rank->sink.losses[0].outcome.code, Errc::protocol);
}

TEST(ShmStrangers, BytesOnTheSocketAfterSetUpEndTheConnection) {
  with_rank(&bytes_after_set_up);
}

Task<Errc> connect_error(ShmRank* rank, std::string address) {
  Task<void> connecting = rank->transport.connect(1, std::move(address));
  Result<void> result = co_await as_result(std::move(connecting));
  co_return result.has_value() ? Errc::ok : result.error().code();
}

Task<void> unreachable_addresses(ShmRank* rank) {
  ShmAddress elsewhere = address_of(*rank);
  elsewhere.boot_id = "00000000-0000-0000-0000-000000000000";
  Errc code = co_await connect_error(rank, to_string(elsewhere));
  EXPECT_EQ(code, Errc::unsupported);
  ShmAddress nobody = make_shm_address();
  code = co_await connect_error(rank, to_string(nobody));
  EXPECT_EQ(code, Errc::unreachable);
  code = co_await connect_error(rank, "tcp://127.0.0.1:1");
  EXPECT_EQ(code, Errc::unsupported);
}

TEST(ShmStrangers, AnAddressWhereNobodyCanBeReachedIsAnError) {
  with_rank(&unreachable_addresses);
}

}  // namespace
}  // namespace weft::net
