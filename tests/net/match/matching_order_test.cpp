// Goal: under random use the matcher agrees in every step with a reference that searches plain lists for the oldest
// match, which is the rule of MPI: no message overtakes another of its source and communicator that also fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "weft/net/match/tag_matcher.hpp"

namespace weft::net {
namespace {

struct Receive : PostedReceive {
  using PostedReceive::PostedReceive;
};

struct Message {
  MatchKey key;
  PacketKind kind;
  std::uint32_t id;  // also the slot of an RTS
};

class Reference {
 public:
  std::list<std::unique_ptr<Receive>> posted;
  std::list<Message> unexpected;

  auto oldest_receive(const MatchKey& key) {
    return std::ranges::find_if(posted, [&](const auto& receive) { return matches(receive->pattern(), key); });
  }
  auto oldest_message(const MatchPattern& pattern) {
    return std::ranges::find_if(unexpected, [&](const Message& message) { return matches(pattern, message.key); });
  }
};

// How hard the random operations lean on wildcards, and over how many keys they spread.
struct Mix {
  unsigned wildcard_percent;
  unsigned sources;
  unsigned tags;
  unsigned tag_shift;
};

class Player {
 public:
  Player(unsigned seed, const Mix& mix) : random_(seed), mix_(mix) {}

  void play(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step);
      const unsigned action = pick(1000);
      if (action < 480) {
        receive();
      } else if (action < 960) {
        arrive();
      } else if (action < 975) {
        cancel();
      } else if (action < 990) {
        withdraw();
      } else if (action < 993) {
        fail_source();
      } else if (action < 995) {
        fail_context();
      } else if (action < 997) {
        drop_context();
      }
      ASSERT_EQ(matcher_.posted_count(), reference_.posted.size());
      ASSERT_EQ(matcher_.unexpected_count(), reference_.unexpected.size());
    }
    for (auto& receive : reference_.posted)
      ASSERT_TRUE(matcher_.cancel(*receive));
  }

 private:
  unsigned pick(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  std::uint32_t context() { return pick(2); }
  std::int32_t source() { return static_cast<std::int32_t>(pick(mix_.sources)); }
  std::uint64_t tag() { return std::uint64_t{pick(mix_.tags)} << mix_.tag_shift; }

  MatchPattern pattern() {
    MatchPattern pattern{context(), source(), tag(), kWholeTag};
    if (pick(100) >= mix_.wildcard_percent) return pattern;
    const unsigned kind = 1 + pick(3);
    if ((kind & 1) != 0) pattern.source = kAnySource;
    if ((kind & 2) != 0) pattern.mask = pick(4) == 0 ? 0 : ~(std::uint64_t{1 + pick(3)} << mix_.tag_shift);
    return pattern;
  }

  void receive() {
    const MatchPattern wanted = pattern();
    const auto expected = reference_.oldest_message(wanted);
    UnexpectedMessage* message = matcher_.match_post(wanted);
    if (expected == reference_.unexpected.end()) {
      ASSERT_EQ(message, nullptr);
      auto& receive = reference_.posted.emplace_back(std::make_unique<Receive>(wanted));
      matcher_.post(*receive);
      return;
    }
    ASSERT_NE(message, nullptr);
    check(*message, *expected);
    matcher_.release(*message);
    reference_.unexpected.erase(expected);
  }

  void arrive() {
    const Message message{{context(), source(), tag()}, pick(3) == 0 ? PacketKind::rts : PacketKind::eager, next_id_++};
    const auto expected = reference_.oldest_receive(message.key);
    PostedReceive* receive = matcher_.match_arrival(message.key.context, message.key.source, message.key.tag);
    if (expected != reference_.posted.end()) {
      ASSERT_EQ(receive, expected->get());
      ASSERT_FALSE(receive->posted());
      reference_.posted.erase(expected);
      return;
    }
    ASSERT_EQ(receive, nullptr);
    std::vector<std::byte> payload(message.kind == PacketKind::rts ? sizeof(RtsPayload) : pick(1500),
                                   filler(message.id));
    WireHeader header;
    header.kind = message.kind;
    header.context = message.key.context;
    header.tag = message.key.tag;
    header.aux = message.id;
    header.length = static_cast<std::uint32_t>(payload.size());
    matcher_.add_unexpected(message.key.source, header, payload);
    reference_.unexpected.push_back(message);
  }

  void cancel() {
    if (reference_.posted.empty()) return;
    const auto victim = std::next(reference_.posted.begin(), pick(static_cast<unsigned>(reference_.posted.size())));
    ASSERT_TRUE(matcher_.cancel(**victim));
    ASSERT_FALSE(matcher_.cancel(**victim));
    reference_.posted.erase(victim);
  }

  void withdraw() {
    if (reference_.unexpected.empty()) return;
    const auto victim =
        std::next(reference_.unexpected.begin(), pick(static_cast<unsigned>(reference_.unexpected.size())));
    UnexpectedMessage* message = matcher_.find_unexpected_rts(victim->key.source, victim->id);
    if (victim->kind != PacketKind::rts) {
      ASSERT_EQ(message, nullptr);
      return;
    }
    ASSERT_NE(message, nullptr);
    check(*message, *victim);
    matcher_.release(*message);
    reference_.unexpected.erase(victim);
  }

  template <typename Predicate>
  void expect_failed(std::vector<PostedReceive*> failed, Predicate named) {
    std::vector<PostedReceive*> expected;
    for (auto& receive : reference_.posted) {
      if (named(receive->pattern())) expected.push_back(receive.get());
    }
    std::ranges::sort(failed);
    std::ranges::sort(expected);
    ASSERT_EQ(failed, expected);
    std::erase_if(reference_.posted, [&](const auto& receive) { return named(receive->pattern()); });
  }

  void fail_source() {
    const std::int32_t dead = source();
    std::vector<PostedReceive*> failed;
    matcher_.fail_source(dead, [&](PostedReceive& receive) { failed.push_back(&receive); });
    expect_failed(std::move(failed), [dead](const MatchPattern& pattern) { return pattern.source == dead; });
  }

  void fail_context() {
    const std::uint32_t closed = context();
    std::vector<PostedReceive*> failed;
    matcher_.fail_context(closed, [&](PostedReceive& receive) { failed.push_back(&receive); });
    expect_failed(std::move(failed), [closed](const MatchPattern& pattern) { return pattern.context == closed; });
  }

  void drop_context() {
    const std::uint32_t closed = context();
    std::vector<std::uint32_t> dropped, expected;
    matcher_.drop_context(closed, [&](const UnexpectedMessage& message) { dropped.push_back(message.header().aux); });
    for (const Message& message : reference_.unexpected) {
      if (message.key.context == closed) expected.push_back(message.id);
    }
    ASSERT_EQ(dropped, expected);
    std::erase_if(reference_.unexpected, [closed](const Message& message) { return message.key.context == closed; });
  }

  static std::byte filler(std::uint32_t id) { return static_cast<std::byte>(id * 37); }

  static void check(const UnexpectedMessage& message, const Message& expected) {
    ASSERT_EQ(message.header().aux, expected.id);
    ASSERT_EQ(message.key(), expected.key);
    ASSERT_TRUE(std::ranges::all_of(message.payload(), [&](std::byte byte) { return byte == filler(expected.id); }));
  }

  std::mt19937 random_;
  Mix mix_;
  Reference reference_;
  TagMatcher matcher_;
  std::uint32_t next_id_ = 1;
};

void play(const Mix& mix) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Player player(seed, mix);
  player.play(20'000);
}

TEST(MatchingOrder, ExactReceivesOverFewKeys) {
  play({0, 2, 3, 0});
}
TEST(MatchingOrder, ExactReceivesOverManyKeys) {
  play({0, 20, 50, 20});
}
TEST(MatchingOrder, SomeWildcardsOverFewKeys) {
  play({20, 3, 4, 0});
}
TEST(MatchingOrder, SomeWildcardsOverManyKeys) {
  play({10, 20, 100, 40});
}
TEST(MatchingOrder, HalfOfTheReceivesWithWildcards) {
  play({50, 4, 8, 60});
}
TEST(MatchingOrder, OnlyWildcards) {
  play({100, 3, 6, 3});
}

}  // namespace
}  // namespace weft::net
