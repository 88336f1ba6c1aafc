// The store over real sockets: ranks as threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "net/bootstrap/store_world.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/when_all.hpp"

namespace weft::net {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void expect_no_failure(StoreWorld& world, std::int32_t ranks) {
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_FALSE(world[rank].failure.has_value()) << "rank " << rank << ": " << world[rank].failure->what();
  }
}

Task<void> exchange_with_everybody(StoreRank& self) {
  const std::string mine = "I am rank " + std::to_string(self.rank);
  co_await self.client->set("name/" + std::to_string(self.rank), bytes_of(mine));
  for (std::int32_t other = 0; other < self.options.world_size; ++other) {
    const std::vector<std::byte> value = co_await self.client->get("name/" + std::to_string(other));
    EXPECT_EQ(text_of(value), "I am rank " + std::to_string(other));
  }
  for (int round = 0; round < 20; ++round) {
    co_await self.client->add("count", 1);
    co_await self.client->barrier("round");
    const std::int64_t count = co_await self.client->add("count", 0);
    EXPECT_EQ(count, (round + 1) * self.options.world_size);
    co_await self.client->barrier("checked");
  }
}

TEST(Store, FourRanksExchangeValuesCountAndMeet) {
  StoreWorld world(4, exchange_with_everybody);
  world.run();
  expect_no_failure(world, 4);
}

TEST(Store, WorksOnBothIoEngines) {
  for (const IoEngineKind io : {IoEngineKind::io_uring, IoEngineKind::epoll}) {
    try {
      ReactorOptions options;
      options.io = io;
      Reactor probe(options);
    } catch (const Error& error) {
      // Only io_uring may be refused here, by a container or an old kernel.
      EXPECT_EQ(io, IoEngineKind::io_uring);
      continue;
    }
    StoreWorld world(3, exchange_with_everybody);
    world.use(io);
    world.run();
    expect_no_failure(world, 3);
  }
}

TEST(Store, AWorldOfOneNeedsNobodyElse) {
  StoreWorld world(1, exchange_with_everybody);
  world.run();
  expect_no_failure(world, 1);
}

Task<void> exchange_sizes(StoreRank& self) {
  std::vector<std::byte> large(store::kMaxValueBytes);
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<std::byte>(i * 31);
  if (self.rank == 0) {
    co_await self.client->set("empty", {});
    co_await self.client->set("large", large);
  }
  const std::vector<std::byte> empty = co_await self.client->get("empty");
  EXPECT_TRUE(empty.empty());
  const std::vector<std::byte> value = co_await self.client->get("large");
  EXPECT_TRUE(value == large);
  large.resize(large.size() + 1);
  Result<void> set = co_await as_result(self.client->set("too large", large));
  EXPECT_EQ(set.code(), Errc::invalid_argument);
  const std::string long_key(store::kMaxKeyBytes + 1, 'k');
  set = co_await as_result(self.client->set(long_key, {}));
  EXPECT_EQ(set.code(), Errc::invalid_argument);
}

TEST(Store, D15ValuesOfNoBytesAndOf16MiB) {
  StoreWorld world(3, exchange_sizes);
  world.run();
  expect_no_failure(world, 3);
}

Task<void> wait_for_present_keys(StoreRank& self) {
  std::vector<std::string> keys = {"a", "b", "a"};
  if (self.rank == 0) {
    co_await self.client->set("a", {});
    co_await self.client->barrier("a is set");
    co_await self.client->wait_all(keys);
  } else {
    co_await self.client->barrier("a is set");
    co_await self.client->set("b", {});
    co_await self.client->wait_all(keys);
  }
  std::vector<std::string> none;
  co_await self.client->wait_all(none);
}

TEST(Store, D15AWaitReturnsWhenSomeKeysWereThereBefore) {
  StoreWorld world(2, wait_for_present_keys);
  world.run();
  expect_no_failure(world, 2);
}

// Goal: no set() is lost between the server's look at the key and the wait.
Task<void> race_sets_and_waits(StoreRank& self) {
  for (int round = 0; round < 2000; ++round) {
    const std::string ping = "ping" + std::to_string(round);
    const std::string pong = "pong" + std::to_string(round);
    co_await self.client->set(self.rank == 0 ? ping : pong, {});
    std::vector<std::string> keys = {ping, pong};
    co_await self.client->wait_all(std::move(keys));
  }
}

TEST(Store, D15ASetBetweenCheckAndSleepIsNotLost) {
  StoreWorld world(2, race_sets_and_waits);
  world.run();
  expect_no_failure(world, 2);
}

Task<void> time_out(StoreRank& self) {
  co_await self.client->set("there", {});
  for (const Duration timeout : {Duration::zero(), Duration(std::chrono::milliseconds(1))}) {
    std::vector<std::string> keys = {"there", "missing one", "missing two", "missing one"};
    Task<void> waiting = with_deadline(timeout, self.client->wait_all(std::move(keys)));
    Result<void> waited = co_await as_result(std::move(waiting));
    EXPECT_EQ(waited.code(), Errc::timed_out);
    EXPECT_TRUE(contains(waited.error().what(), "'missing one', 'missing two'")) << waited.error().what();
    EXPECT_FALSE(contains(waited.error().what(), "'there'")) << waited.error().what();

    Task<std::vector<std::byte>> getting = with_deadline(timeout, self.client->get("missing"));
    Result<std::vector<std::byte>> got = co_await as_result(std::move(getting));
    EXPECT_EQ(got.code(), Errc::timed_out);
    EXPECT_TRUE(contains(got.error().what(), "'missing'")) << got.error().what();
  }
  // Expect: a deadline in the far future is none.
  const Duration long_time = std::chrono::hours(24 * 49);
  Task<std::vector<std::byte>> patient = with_deadline(long_time, self.client->get("there"));
  co_await std::move(patient);
  // Expect: the barrier names who did not come.
  if (self.rank == 1) {
    Task<void> meeting = with_deadline(Duration(std::chrono::milliseconds(1)), self.client->barrier("lonely"));
    Result<void> met = co_await as_result(std::move(meeting));
    EXPECT_EQ(met.code(), Errc::timed_out);
    EXPECT_TRUE(contains(met.error().what(), "ranks 0, 2")) << met.error().what();
  }
  co_await self.client->barrier("end");
}

TEST(Store, D15ATimeOutNamesWhatIsMissing) {
  StoreWorld world(3, time_out);
  world.run();
  expect_no_failure(world, 3);
}

Task<void> nothing(StoreRank& /*self*/) {
  co_return;
}

TEST(Store, D22ARankThatExistsTwiceFailsEveryRankAtOnce) {
  StoreWorld world(4, nothing);
  world[2].options.rank = 1;
  world[2].rank = 1;
  world.run();
  for (std::int32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(world[i].failure.has_value()) << i;
    EXPECT_EQ(world[i].failure->code(), Errc::mismatch) << world[i].failure->what();
    EXPECT_TRUE(contains(world[i].failure->what(), "rank 1 exists twice")) << world[i].failure->what();
  }
}

TEST(Store, D22ARankOutsideOfTheWorldFailsEveryRankAtOnce) {
  StoreWorld world(3, nothing);
  world[2].options.rank = 3;
  world.run();
  for (std::int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(world[i].failure.has_value()) << i;
    EXPECT_EQ(world[i].failure->code(), Errc::mismatch);
    EXPECT_TRUE(contains(world[i].failure->what(), "rank 3")) << world[i].failure->what();
  }
}

TEST(Store, D22AnotherWorldSizeFailsEveryRankAtOnceAndNamesBoth) {
  StoreWorld world(3, nothing);
  world[1].options.world_size = 5;
  world.run();
  for (std::int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(world[i].failure.has_value()) << i;
    EXPECT_EQ(world[i].failure->code(), Errc::mismatch);
    EXPECT_TRUE(contains(world[i].failure->what(), "WORLD_SIZE=5")) << world[i].failure->what();
    EXPECT_TRUE(contains(world[i].failure->what(), "WORLD_SIZE=3")) << world[i].failure->what();
  }
}

TEST(Store, D22AStartThatTimesOutNamesTheMissingRanks) {
  StoreWorld world(2, nothing);
  for (const std::int32_t rank : {0, 1}) {
    world[rank].options.world_size = 4;
    // Rank 1 waits longer, so that rank 0 reports before it learns of a loss.
    world[rank].options.start_timeout = rank == 0 ? std::chrono::milliseconds(300) : std::chrono::seconds(30);
  }
  world.run();
  ASSERT_TRUE(world[0].failure.has_value());
  EXPECT_EQ(world[0].failure->code(), Errc::timed_out);
  EXPECT_TRUE(contains(world[0].failure->what(), "2, 3")) << world[0].failure->what();
  EXPECT_TRUE(contains(world[0].failure->what(), "0.3 s")) << world[0].failure->what();
  // Rank 0 is gone then, and with it the store.
  ASSERT_TRUE(world[1].failure.has_value());
  EXPECT_EQ(world[1].failure->code(), Errc::peer_lost);
  EXPECT_EQ(world[1].failure->peer(), 0);
}

TEST(Store, AStartWithoutAnyServerTimesOutAndSaysWhere) {
  StoreWorld world(2, nothing);
  world.open_late([] {});
  StoreClientOptions options = world[1].options;
  options.port = 1;  // nobody listens on tcpmux here
  options.start_timeout = std::chrono::milliseconds(100);
  Reactor reactor;
  StoreClient client(reactor, options, world.token(), nullptr);
  const auto start = [](Nursery& nursery, StoreClient* self) -> Task<void> { co_await self->start(nursery); };
  try {
    reactor.run(with_nursery(start, &client));
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timed_out);
    EXPECT_TRUE(contains(error.what(), "127.0.0.1:1")) << error.what();
  }
}

TEST(Store, D20ManyClientsReachAServerThatDoesNotAnswerYet) {
  constexpr std::int32_t kRanks = 24;
  StoreWorld world(kRanks, exchange_with_everybody);
  std::latch clients_run(kRanks - 1);
  world.before_each([&] { clients_run.count_down(); });
  // The listener is open and its queue fills, but nobody accepts until all clients run.
  world.accept_late([&] { clients_run.wait(); });
  world.run();
  expect_no_failure(world, kRanks);
}

TEST(Store, D20ClientsReachAServerThatStartsAfterThem) {
  constexpr std::int32_t kRanks = 8;
  StoreWorld world(kRanks, exchange_with_everybody);
  std::latch clients_run(kRanks - 1);
  world.before_each([&] { clients_run.count_down(); });
  world.open_late([&] { clients_run.wait(); });
  world.run();
  expect_no_failure(world, kRanks);
}

Task<void> die_as_rank_2(StoreRank& self) {
  co_await self.client->barrier("all alive");
  if (self.rank == 2) {
    self.say_goodbye = false;
    co_return;
  }
  co_await self.until("lost 2");
  Result<void> met = co_await as_result(self.client->barrier("without rank 2"));
  EXPECT_EQ(met.code(), Errc::peer_lost);
  EXPECT_EQ(met.error().peer(), 2);
  // Expect: what needs nobody else goes on.
  co_await self.client->set("still/" + std::to_string(self.rank), {});
  std::vector<std::string> keys = {"still/0", "still/1", "still/3"};
  co_await self.client->wait_all(std::move(keys));
}

TEST(Store, ADeadRankIsLostToAllOthersAndTheyGoOn) {
  StoreWorld world(4, die_as_rank_2);
  world.run();
  expect_no_failure(world, 4);
  for (const std::int32_t rank : {0, 1, 3}) {
    EXPECT_EQ(std::count(world[rank].events.begin(), world[rank].events.end(), "lost 2"), 1);
  }
}

Task<void> wait_for_the_dead(StoreRank& self) {
  if (self.rank == 1) {
    co_await self.client->set("rank 1 is in", {});
    self.say_goodbye = false;
    co_return;
  }
  const std::vector<std::byte> value = co_await self.client->get("rank 1 is in");
  Result<void> met = co_await as_result(self.client->barrier("never full"));
  EXPECT_EQ(met.code(), Errc::peer_lost);
  EXPECT_EQ(met.error().peer(), 1);
}

TEST(Store, D16ABarrierThatWaitsForADyingRankEnds) {
  StoreWorld world(3, wait_for_the_dead);
  world.run();
  expect_no_failure(world, 3);
}

Task<void> leave_one_by_one(StoreRank& self) {
  if (self.rank == 1) co_return;
  co_await self.until("left 1 code 0 fault -1");
  Result<void> met = co_await as_result(self.client->barrier("without rank 1"));
  EXPECT_EQ(met.code(), Errc::peer_closed);
  EXPECT_EQ(met.error().peer(), 1);
}

TEST(Store, ARankThatLeavesInOrderIsNotLost) {
  StoreWorld world(3, leave_one_by_one);
  world.run();
  expect_no_failure(world, 3);
  for (const std::int32_t rank : {0, 2}) {
    for (const std::string& event : world[rank].events)
      EXPECT_TRUE(event.starts_with("left")) << event;
  }
}

Task<void> lose_the_store(StoreRank& self) {
  co_await self.client->barrier("all alive");
  if (self.rank == 0) throw Error(Errc::io, "test", "rank 0 crashes");
  co_await self.until("store lost");
  Result<std::vector<std::byte>> got = co_await as_result(self.client->get("anything"));
  EXPECT_EQ(got.code(), Errc::peer_lost);
  EXPECT_EQ(got.error().peer(), 0);
}

TEST(Store, TheEndOfTheStoreIsTheLossOfRankZero) {
  StoreWorld world(3, lose_the_store);
  world.run();
  ASSERT_TRUE(world[0].failure.has_value());
  EXPECT_EQ(world[0].failure->code(), Errc::io);
  for (const std::int32_t rank : {1, 2}) {
    EXPECT_FALSE(world[rank].failure.has_value()) << world[rank].failure->what();
  }
}

Task<void> ask_for_connections(StoreRank& self) {
  for (std::int32_t other = 0; other < self.rank; ++other)
    self.client->request_connection(other);
  for (std::int32_t other = self.rank + 1; other < self.options.world_size; ++other) {
    co_await self.until("connect " + std::to_string(other));
  }
  co_await self.client->barrier("end");
}

TEST(Store, ConnectRequestsReachTheirRank) {
  StoreWorld world(4, ask_for_connections);
  world.run();
  expect_no_failure(world, 4);
  EXPECT_GE(world[0].events.size(), 3u);
}

Task<void> get_in_parallel(StoreRank& self) {
  std::vector<Task<std::vector<std::byte>>> gets;
  for (int i = 0; i < 100; ++i)
    gets.push_back(self.client->get("key" + std::to_string(i)));
  if (self.rank == 0) {
    for (int i = 99; i >= 0; --i)
      co_await self.client->set("key" + std::to_string(i), bytes_of(std::to_string(i)));
  }
  std::vector<std::vector<std::byte>> values = co_await when_all(std::move(gets));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(text_of(values[static_cast<std::size_t>(i)]), std::to_string(i));
}

TEST(Store, ManyRequestsOfOneRankFlyAtOnce) {
  StoreWorld world(2, get_in_parallel);
  world.run();
  expect_no_failure(world, 2);
}

TEST(Store, TwoJobsInOneProcessDoNotMeet) {
  StoreWorld first(2, exchange_with_everybody);
  StoreWorld second(2, exchange_with_everybody);
  // A rank of the second job goes to the first one's port.
  second[1].options.port = first.port();
  second[0].options.start_timeout = std::chrono::milliseconds(500);
  std::thread other([&] { second.run(); });
  first.run();
  other.join();
  expect_no_failure(first, 2);
  ASSERT_TRUE(second[1].failure.has_value());
  EXPECT_NE(second[1].failure->code(), Errc::ok);
  ASSERT_TRUE(second[0].failure.has_value());
  EXPECT_EQ(second[0].failure->code(), Errc::timed_out);
}

}  // namespace
}  // namespace weft::net
