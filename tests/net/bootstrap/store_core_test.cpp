// The store's answers without sockets: frames in, frames out.
#include "weft/net/bootstrap/store_core.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace weft::net::store {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class StoreCoreTest : public ::testing::Test, public StoreOutput {
 protected:
  void send(std::int32_t rank, OutFrame frame) override {
    std::vector<std::byte> bytes = std::move(frame.head);
    if (frame.tail) bytes.insert(bytes.end(), frame.tail->begin(), frame.tail->end());
    const auto length = decode_length(std::span<const std::byte>(bytes).first<kLengthBytes>(), kMaxFrameBytes);
    ASSERT_EQ(length, bytes.size() - kLengthBytes);
    sent_[rank].push_back(std::move(bytes));
  }

  /// The oldest frame to `rank` that nobody has looked at, which must be a T. Its views live as long as the fixture.
  template <typename T>
  T next(std::int32_t rank) {
    auto& queue = sent_[rank];
    if (queue.empty()) {
      ADD_FAILURE() << "nothing was sent to rank " << rank;
      return T();
    }
    seen_.push_back(std::move(queue.front()));
    queue.pop_front();
    const std::optional<Frame> frame = decode(Bytes(seen_.back()).subspan(kLengthBytes));
    if (!frame.has_value() || !std::holds_alternative<T>(*frame)) {
      ADD_FAILURE() << "rank " << rank << " got another frame, kind " << int(seen_.back()[kLengthBytes]);
      return T();
    }
    return std::get<T>(*frame);
  }
  bool quiet(std::int32_t rank) { return sent_[rank].empty(); }

  void join(StoreCore& core, std::int32_t rank) {
    core.join(rank, "host-" + std::to_string(rank));
    next<Welcome>(rank);
  }
  void join_all(StoreCore& core, std::int32_t ranks) {
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      join(core, rank);
  }

  std::map<std::int32_t, std::deque<std::vector<std::byte>>> sent_;
  std::deque<std::vector<std::byte>> seen_;
};

TEST_F(StoreCoreTest, AValueThatIsThereIsAnsweredAtOnce) {
  StoreCore core(2, *this);
  join_all(core, 2);
  const auto value = bytes_of("hello");
  EXPECT_TRUE(core.handle(0, Set{1, "k", value}));
  EXPECT_EQ(next<Done>(0).id, 1u);
  EXPECT_TRUE(core.handle(1, Get{9, "k"}));
  const Value answer = next<Value>(1);
  EXPECT_EQ(answer.id, 9u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(answer.value.data()), answer.value.size()), "hello");
}

TEST_F(StoreCoreTest, AGetWaitsForItsKey) {
  StoreCore core(2, *this);
  join_all(core, 2);
  EXPECT_TRUE(core.handle(1, Get{9, "k"}));
  EXPECT_TRUE(quiet(1));
  EXPECT_TRUE(core.handle(0, Set{1, "other", {}}));
  EXPECT_TRUE(quiet(1));
  EXPECT_TRUE(core.handle(0, Set{2, "k", {}}));
  EXPECT_EQ(next<Value>(1).value.size(), 0u);
}

TEST_F(StoreCoreTest, D15AWaitForKeysOfWhichOneIsThereEndsWithTheOther) {
  StoreCore core(1, *this);
  join_all(core, 1);
  EXPECT_TRUE(core.handle(0, Set{1, "a", {}}));
  next<Done>(0);
  WaitAll wait;
  wait.id = 2;
  wait.keys = {"a", "b", "a", "b"};
  EXPECT_TRUE(core.handle(0, wait));
  EXPECT_TRUE(quiet(0));
  EXPECT_TRUE(core.handle(0, Set{3, "b", {}}));
  EXPECT_EQ(next<Done>(0).id, 2u);
  EXPECT_EQ(next<Done>(0).id, 3u);
  // Expect: both keys there, and no keys at all, end at once.
  wait.id = 4;
  EXPECT_TRUE(core.handle(0, wait));
  EXPECT_EQ(next<Done>(0).id, 4u);
  wait.keys.clear();
  wait.id = 5;
  EXPECT_TRUE(core.handle(0, wait));
  EXPECT_EQ(next<Done>(0).id, 5u);
}

TEST_F(StoreCoreTest, AWithdrawnWaitTellsWhatIsMissingAndIsForgotten) {
  StoreCore core(1, *this);
  join_all(core, 1);
  EXPECT_TRUE(core.handle(0, Set{1, "b", {}}));
  next<Done>(0);
  WaitAll wait;
  wait.id = 2;
  wait.keys = {"a", "b", "c", "a"};
  EXPECT_TRUE(core.handle(0, wait));
  EXPECT_TRUE(core.handle(0, Withdraw{2}));
  const Withdrawn answer = next<Withdrawn>(0);
  EXPECT_EQ(answer.id, 2u);
  EXPECT_EQ(answer.missing, (std::vector<std::uint32_t>{0, 2, 3}));
  // Expect: the keys come, and nobody is told.
  EXPECT_TRUE(core.handle(0, Set{3, "a", {}}));
  EXPECT_TRUE(core.handle(0, Set{4, "c", {}}));
  EXPECT_EQ(next<Done>(0).id, 3u);
  EXPECT_EQ(next<Done>(0).id, 4u);
  EXPECT_TRUE(quiet(0));
  // Expect: what has been answered cannot be withdrawn.
  EXPECT_TRUE(core.handle(0, Withdraw{2}));
  EXPECT_TRUE(quiet(0));
}

TEST_F(StoreCoreTest, CountersAddUpAndWrap) {
  StoreCore core(1, *this);
  join_all(core, 1);
  EXPECT_TRUE(core.handle(0, Add{1, "n", 5}));
  EXPECT_EQ(next<Counter>(0).count, 5);
  EXPECT_TRUE(core.handle(0, Add{2, "n", -7}));
  EXPECT_EQ(next<Counter>(0).count, -2);
  EXPECT_TRUE(core.handle(0, Add{3, "m", INT64_MAX}));
  EXPECT_EQ(next<Counter>(0).count, INT64_MAX);
  EXPECT_TRUE(core.handle(0, Add{4, "m", 1}));
  EXPECT_EQ(next<Counter>(0).count, INT64_MIN);
  EXPECT_TRUE(core.handle(0, Set{5, "text", bytes_of("no counter")}));
  next<Done>(0);
  EXPECT_TRUE(core.handle(0, Add{6, "text", 1}));
  EXPECT_EQ(next<Failed>(0).code, Errc::mismatch);
}

TEST_F(StoreCoreTest, ABarrierOpensWhenAllAreThereAndCanBeUsedAgain) {
  StoreCore core(3, *this);
  join_all(core, 3);
  for (std::uint32_t round = 0; round < 3; ++round) {
    EXPECT_TRUE(core.handle(2, Barrier{round, "b"}));
    EXPECT_TRUE(core.handle(0, Barrier{round, "b"}));
    EXPECT_TRUE(quiet(0));
    EXPECT_TRUE(quiet(2));
    EXPECT_TRUE(core.handle(1, Barrier{round, "b"}));
    for (const std::int32_t rank : {0, 1, 2})
      EXPECT_EQ(next<Done>(rank).id, round);
  }
}

TEST_F(StoreCoreTest, AWithdrawnBarrierNamesTheRanksThatAreMissing) {
  StoreCore core(4, *this);
  join_all(core, 4);
  EXPECT_TRUE(core.handle(1, Barrier{7, "b"}));
  EXPECT_TRUE(core.handle(3, Barrier{8, "b"}));
  EXPECT_TRUE(core.handle(1, Withdraw{7}));
  EXPECT_EQ(next<Withdrawn>(1).missing, (std::vector<std::uint32_t>{0, 2}));
  // Expect: its arrival no longer counts.
  EXPECT_TRUE(core.handle(0, Barrier{1, "b"}));
  EXPECT_TRUE(core.handle(2, Barrier{1, "b"}));
  EXPECT_TRUE(quiet(3));
  EXPECT_TRUE(core.handle(1, Barrier{9, "b"}));
  EXPECT_EQ(next<Done>(3).id, 8u);
}

TEST_F(StoreCoreTest, ALostRankFailsTheBarriersItHasNotReachedAndIsAnnounced) {
  StoreCore core(3, *this);
  join_all(core, 3);
  EXPECT_TRUE(core.handle(0, Barrier{1, "with"}));
  EXPECT_TRUE(core.handle(2, Barrier{1, "with"}));
  EXPECT_TRUE(core.handle(0, Barrier{2, "without"}));
  core.gone(2, "it crashed");
  const RankLost lost = next<RankLost>(0);
  EXPECT_EQ(lost.rank, 2);
  EXPECT_EQ(lost.cause, "it crashed");
  const Failed failed = next<Failed>(0);
  EXPECT_EQ(failed.id, 2u);
  EXPECT_EQ(failed.code, Errc::peer_lost);
  EXPECT_EQ(failed.rank, 2);
  EXPECT_NE(failed.text.find("it crashed"), std::string_view::npos);
  // Expect: the barrier that it did reach still opens, a new one fails at once.
  EXPECT_EQ(next<RankLost>(1).rank, 2);
  EXPECT_TRUE(core.handle(1, Barrier{1, "with"}));
  EXPECT_EQ(next<Done>(0).id, 1u);
  EXPECT_EQ(next<Done>(1).id, 1u);
  EXPECT_TRUE(core.handle(1, Barrier{3, "new"}));
  EXPECT_EQ(next<Failed>(1).rank, 2);
}

TEST_F(StoreCoreTest, ARankThatSaysGoodbyeHasLeftAndIsNotLost) {
  StoreCore core(2, *this);
  join_all(core, 2);
  EXPECT_TRUE(core.handle(1, Goodbye{3, 0}));
  next<Farewell>(1);
  const RankLeft left = next<RankLeft>(0);
  EXPECT_EQ(left.rank, 1);
  EXPECT_EQ(left.code, 3);
  EXPECT_EQ(left.at_fault, 0);
  core.gone(1, "its connection ended");
  EXPECT_TRUE(quiet(0));
  EXPECT_FALSE(core.handle(1, Set{1, "k", {}}));
  EXPECT_FALSE(core.finished());
  core.gone(0, "");
  EXPECT_TRUE(core.finished());
}

TEST_F(StoreCoreTest, ALateJoinerLearnsOfTheLossesSoFar) {
  StoreCore core(3, *this);
  join_all(core, 2);
  core.gone(0, "it crashed");
  EXPECT_TRUE(core.handle(1, Goodbye{1, 0}));
  core.join(2, "late");
  next<Welcome>(2);
  EXPECT_EQ(next<RankLost>(2).rank, 0);
  EXPECT_EQ(next<RankLeft>(2).rank, 1);
}

TEST_F(StoreCoreTest, D22RanksThatDoNotAddUpAreRefusedWithBothSidesNamed) {
  StoreCore core(3, *this);
  join_all(core, 2);
  const auto twice = core.check_join(Join{1, 3}, "host-9");
  ASSERT_TRUE(twice.has_value());
  EXPECT_EQ(twice->code, Errc::mismatch);
  EXPECT_TRUE(twice->fails_job);
  EXPECT_NE(twice->text.find("rank 1 exists twice"), std::string::npos);
  EXPECT_NE(twice->text.find("host-1"), std::string::npos);
  EXPECT_NE(twice->text.find("host-9"), std::string::npos);
  for (const std::int32_t rank : {3, -1, 1000}) {
    const auto outside = core.check_join(Join{rank, 3}, "host-9");
    ASSERT_TRUE(outside.has_value());
    EXPECT_NE(outside->text.find("0 to 2"), std::string::npos) << outside->text;
  }
  const auto size = core.check_join(Join{2, 4}, "host-9");
  ASSERT_TRUE(size.has_value());
  EXPECT_NE(size->text.find("WORLD_SIZE=4"), std::string::npos);
  EXPECT_NE(size->text.find("WORLD_SIZE=3"), std::string::npos);
  EXPECT_FALSE(core.check_join(Join{2, 3}, "host-2").has_value());
}

TEST_F(StoreCoreTest, D22AFailedJobTellsEverybody) {
  StoreCore core(3, *this);
  join_all(core, 2);
  EXPECT_TRUE(core.handle(0, Barrier{1, "start"}));
  core.fail_job(Errc::mismatch, "rank 1 exists twice");
  core.fail_job(Errc::io, "a second reason");
  for (const std::int32_t rank : {0, 1}) {
    const JobFailed failed = next<JobFailed>(rank);
    EXPECT_EQ(failed.code, Errc::mismatch);
    EXPECT_EQ(failed.text, "rank 1 exists twice");
    EXPECT_TRUE(quiet(rank));
  }
  // Expect: later ones hear the same.
  const auto refusal = core.check_join(Join{2, 3}, "host-2");
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->text, "rank 1 exists twice");
  EXPECT_TRUE(core.handle(1, Barrier{4, "start"}));
  EXPECT_EQ(next<Failed>(1).code, Errc::mismatch);
}

TEST_F(StoreCoreTest, ADuplicateOfACompleteJobDoesNotFailIt) {
  StoreCore core(2, *this);
  join_all(core, 2);
  ASSERT_TRUE(core.complete());
  const auto twice = core.check_join(Join{1, 2}, "host-9");
  ASSERT_TRUE(twice.has_value());
  EXPECT_FALSE(twice->fails_job);
}

TEST_F(StoreCoreTest, ConnectRequestsAreRoutedAndWaitForALateRank) {
  StoreCore core(3, *this);
  join_all(core, 2);
  EXPECT_TRUE(core.handle(0, ConnectTo{1}));
  EXPECT_EQ(next<ConnectRequest>(1).from, 0);
  EXPECT_TRUE(core.handle(0, ConnectTo{2}));
  EXPECT_TRUE(core.handle(0, ConnectTo{2}));
  core.join(2, "late");
  next<Welcome>(2);
  EXPECT_EQ(next<ConnectRequest>(2).from, 0);
  EXPECT_TRUE(quiet(2));
  EXPECT_FALSE(core.handle(0, ConnectTo{0}));
  EXPECT_FALSE(core.handle(0, ConnectTo{3}));
  EXPECT_FALSE(core.handle(0, ConnectTo{-1}));
}

TEST_F(StoreCoreTest, FramesThatOnlyAServerSendsAreRefused) {
  StoreCore core(1, *this);
  join_all(core, 1);
  EXPECT_FALSE(core.handle(0, Welcome()));
  EXPECT_FALSE(core.handle(0, Done{1}));
  EXPECT_FALSE(core.handle(0, Join{0, 1}));
  EXPECT_TRUE(core.handle(0, Get{1, "k"}));
  EXPECT_FALSE(core.handle(0, Get{1, "k"})) << "the id is in use";
}

}  // namespace
}  // namespace weft::net::store
