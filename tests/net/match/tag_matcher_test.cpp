// Goal: every call of the matcher does what its contract says, at constant work for exact receives.
#include "weft/net/match/tag_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace weft::net {
namespace {

struct Receive : PostedReceive {
  using PostedReceive::PostedReceive;
};

WireHeader eager(std::uint32_t context, std::uint64_t tag, std::size_t length = 0) {
  WireHeader header;
  header.context = context;
  header.tag = tag;
  header.length = static_cast<std::uint32_t>(length);
  return header;
}

WireHeader rts(std::uint32_t context, std::uint64_t tag, std::uint32_t slot) {
  WireHeader header = eager(context, tag, sizeof(RtsPayload));
  header.kind = PacketKind::rts;
  header.aux = slot;
  return header;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

UnexpectedMessage& add_rts(TagMatcher& matcher, std::int32_t source, std::uint32_t slot, std::uint64_t tag = 5) {
  const RtsPayload offer{1 << 20, 0x1000, 0};
  return matcher.add_unexpected(source, rts(1, tag, slot), std::as_bytes(std::span(&offer, 1)));
}

TEST(MatchPattern, AgreesOnContextSourceAndMaskedTag) {
  EXPECT_TRUE(matches({1, 2, 3, kWholeTag}, 1, 2, 3));
  EXPECT_FALSE(matches({1, 2, 3, kWholeTag}, 0, 2, 3));
  EXPECT_FALSE(matches({1, 2, 3, kWholeTag}, 1, 3, 3));
  EXPECT_FALSE(matches({1, 2, 3, kWholeTag}, 1, 2, 4));
  EXPECT_TRUE(matches({1, kAnySource, 3, kWholeTag}, 1, 77, 3));
  EXPECT_FALSE(matches({1, kAnySource, 3, kWholeTag}, 2, 77, 3));
  EXPECT_TRUE(matches({1, 2, 0xab00, 0xff00}, 1, 2, 0xabcd));
  EXPECT_FALSE(matches({1, 2, 0xab00, 0xff00}, 1, 2, 0xaccd));
  EXPECT_TRUE(matches({1, 2, 0xdead, 0}, 1, 2, 0xbeef));
  EXPECT_TRUE((MatchPattern{1, 0, 3, kWholeTag}.exact()));
  EXPECT_FALSE((MatchPattern{1, kAnySource, 3, kWholeTag}.exact()));
  EXPECT_FALSE((MatchPattern{1, 0, 3, kWholeTag >> 1}.exact()));
}

TEST(TagMatcher, AnArrivalTakesThePostedReceiveOfItsKeyOnce) {
  TagMatcher matcher;
  Receive receive({1, 2, 3, kWholeTag});
  matcher.post(receive);
  EXPECT_TRUE(receive.posted());
  EXPECT_EQ(matcher.posted_count(), 1u);
  EXPECT_EQ(matcher.match_arrival(1, 2, 4), nullptr);
  EXPECT_EQ(matcher.match_arrival(1, 3, 3), nullptr);
  EXPECT_EQ(matcher.match_arrival(2, 2, 3), nullptr);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &receive);
  EXPECT_FALSE(receive.posted());
  EXPECT_EQ(matcher.posted_count(), 0u);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), nullptr);
}

TEST(TagMatcher, ReceivesOfOneKeyMatchInTheOrderOfPosting) {
  TagMatcher matcher;
  Receive first({1, 2, 3, kWholeTag}), second({1, 2, 3, kWholeTag});
  matcher.post(first);
  matcher.post(second);
  EXPECT_LT(first.sequence(), second.sequence());
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &first);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &second);
}

TEST(TagMatcher, AMatchedReceiveMayBePostedAgain) {
  TagMatcher matcher;
  Receive receive({1, 2, 3, kWholeTag});
  for (int round = 0; round < 3; ++round) {
    matcher.post(receive);
    EXPECT_EQ(matcher.match_arrival(1, 2, 3), &receive);
  }
}

TEST(TagMatcher, AmongExactAndWildcardTheOlderWins) {
  TagMatcher matcher;
  Receive any({1, kAnySource, 3, kWholeTag}), exact({1, 2, 3, kWholeTag}), masked({1, 2, 0, 0});
  matcher.post(any);
  matcher.post(exact);
  matcher.post(masked);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &any);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &exact);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &masked);
  matcher.post(exact);
  matcher.post(masked);
  matcher.post(any);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &exact);
  EXPECT_EQ(matcher.match_arrival(1, 7, 3), &any);
  EXPECT_EQ(matcher.match_arrival(1, 2, 99), &masked);
}

TEST(TagMatcher, AnUnexpectedMessageKeepsSourceHeaderAndPayload) {
  TagMatcher matcher;
  for (std::size_t length : {0u, 1u, 40u, 700u, 900u, 5000u, 65'536u, 200'000u}) {
    const std::string text(length, 'x');
    matcher.add_unexpected(2, eager(1, 3, length), bytes_of(text));
    EXPECT_EQ(matcher.unexpected_count(), 1u);
    EXPECT_EQ(matcher.unexpected_bytes(), length);
    UnexpectedMessage* message = matcher.match_post({1, 2, 3, kWholeTag});
    ASSERT_NE(message, nullptr);
    EXPECT_FALSE(message->queued());
    EXPECT_EQ(message->source(), 2);
    EXPECT_EQ(message->header().tag, 3u);
    EXPECT_EQ(message->header().context, 1u);
    ASSERT_EQ(message->payload().size(), length);
    EXPECT_TRUE(std::ranges::equal(message->payload(), bytes_of(text)));
    matcher.release(*message);
    EXPECT_EQ(matcher.unexpected_count(), 0u);
    EXPECT_EQ(matcher.unexpected_bytes(), 0u);
    EXPECT_EQ(matcher.match_post({1, 2, 3, kWholeTag}), nullptr);
  }
}

TEST(TagMatcher, WildcardReceivesTakeTheOldestUnexpectedMessage) {
  TagMatcher matcher;
  UnexpectedMessage& other = matcher.add_unexpected(4, eager(9, 3), {});
  UnexpectedMessage& from_5 = matcher.add_unexpected(5, eager(1, 3), {});
  UnexpectedMessage& from_2 = matcher.add_unexpected(2, eager(1, 3), {});
  UnexpectedMessage& tag_8 = matcher.add_unexpected(2, eager(1, 8), {});
  EXPECT_LT(from_5.sequence(), from_2.sequence());
  EXPECT_EQ(matcher.match_post({1, kAnySource, 3, kWholeTag}), &from_5);
  EXPECT_EQ(matcher.match_post({1, 2, 0, 0}), &from_2);
  EXPECT_EQ(matcher.match_post({1, kAnySource, 0, 0}), &tag_8);
  EXPECT_EQ(matcher.match_post({1, kAnySource, 0, 0}), nullptr);
  for (UnexpectedMessage* message : {&from_5, &from_2, &tag_8})
    matcher.release(*message);
  EXPECT_EQ(matcher.unexpected_count(), 1u);
  EXPECT_TRUE(other.queued());
}

TEST(TagMatcher, CancelTakesOffWhatIsPostedAndNothingElse) {
  TagMatcher matcher;
  Receive exact({1, 2, 3, kWholeTag}), twin({1, 2, 3, kWholeTag}), any({1, kAnySource, 3, kWholeTag});
  EXPECT_FALSE(matcher.cancel(exact));
  matcher.post(exact);
  matcher.post(twin);
  matcher.post(any);
  EXPECT_TRUE(matcher.cancel(exact));
  EXPECT_FALSE(matcher.cancel(exact));
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &twin);
  EXPECT_FALSE(matcher.cancel(twin));
  EXPECT_TRUE(matcher.cancel(any));
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), nullptr);
  EXPECT_EQ(matcher.posted_count(), 0u);
}

TEST(TagMatcher, FailSourceTakesTheReceivesThatNameItWhateverTheirMask) {
  TagMatcher matcher;
  Receive exact({1, 2, 3, kWholeTag}), twin({1, 2, 3, kWholeTag}), masked({7, 2, 0, 0}), other({1, 4, 3, kWholeTag}),
      any({1, kAnySource, 3, kWholeTag});
  for (Receive* receive : {&exact, &twin, &masked, &other, &any})
    matcher.post(*receive);
  matcher.add_unexpected(2, eager(1, 50), {});
  std::vector<PostedReceive*> failed;
  matcher.fail_source(2, [&](PostedReceive& receive) {
    EXPECT_FALSE(receive.posted());
    failed.push_back(&receive);
  });
  EXPECT_EQ(failed.size(), 3u);
  for (PostedReceive* receive : {static_cast<PostedReceive*>(&exact), static_cast<PostedReceive*>(&twin),
                                 static_cast<PostedReceive*>(&masked)}) {
    EXPECT_EQ(std::ranges::count(failed, receive), 1);
  }
  EXPECT_EQ(matcher.posted_count(), 2u);
  EXPECT_EQ(matcher.match_arrival(1, 4, 3), &other);
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &any);
  // Expect: what the dead source had delivered can still be received.
  UnexpectedMessage* delivered = matcher.match_post({1, 2, 50, kWholeTag});
  ASSERT_NE(delivered, nullptr);
  matcher.release(*delivered);
}

TEST(TagMatcher, TheVisitorOfFailSourceMayCancelAndPost) {
  TagMatcher matcher;
  Receive first({1, 2, 3, kWholeTag}), second({1, 2, 3, kWholeTag}), late({1, 2, 3, kWholeTag});
  matcher.post(first);
  matcher.post(second);
  int visits = 0;
  matcher.fail_source(2, [&](PostedReceive& receive) {
    ++visits;
    EXPECT_TRUE(matcher.cancel(&receive == &first ? second : first));
    matcher.post(late);
  });
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(matcher.posted_count(), 1u);
  EXPECT_TRUE(matcher.cancel(late));
}

TEST(TagMatcher, FailContextTakesEveryReceiveOfIt) {
  TagMatcher matcher;
  Receive exact({1, 2, 3, kWholeTag}), any({1, kAnySource, 3, kWholeTag}), other({2, 2, 3, kWholeTag});
  for (Receive* receive : {&exact, &any, &other})
    matcher.post(*receive);
  int visits = 0;
  matcher.fail_context(1, [&](PostedReceive&) { ++visits; });
  EXPECT_EQ(visits, 2);
  EXPECT_FALSE(exact.posted());
  EXPECT_FALSE(any.posted());
  EXPECT_TRUE(matcher.cancel(other));
}

TEST(TagMatcher, DropContextEndsItsMessagesOldestFirstAndLeavesTheOthers) {
  TagMatcher matcher;
  matcher.add_unexpected(1, eager(1, 10, 4), bytes_of("abcd"));
  matcher.add_unexpected(1, eager(2, 11, 3), bytes_of("efg"));
  add_rts(matcher, 3, 77, 12);
  std::vector<std::uint64_t> tags;
  matcher.drop_context(1, [&](const UnexpectedMessage& message) { tags.push_back(message.header().tag); });
  EXPECT_EQ(tags, (std::vector<std::uint64_t>{10, 12}));
  EXPECT_EQ(matcher.find_unexpected_rts(3, 77), nullptr);
  EXPECT_EQ(matcher.unexpected_count(), 1u);
  EXPECT_EQ(matcher.unexpected_bytes(), 3u);
  matcher.drop_context(2);
  EXPECT_EQ(matcher.unexpected_count(), 0u);
}

TEST(TagMatcher, AnRtsIsFoundBySourceAndSlotUntilItIsMatched) {
  TagMatcher matcher;
  matcher.add_unexpected(3, eager(1, 5), {});
  UnexpectedMessage& wanted = add_rts(matcher, 3, 8);
  add_rts(matcher, 4, 8);
  add_rts(matcher, 3, 9);
  EXPECT_EQ(matcher.find_unexpected_rts(3, 8), &wanted);
  EXPECT_TRUE(wanted.queued());
  EXPECT_EQ(matcher.find_unexpected_rts(3, 10), nullptr);
  EXPECT_EQ(matcher.find_unexpected_rts(5, 8), nullptr);
  matcher.release(wanted);
  EXPECT_EQ(matcher.find_unexpected_rts(3, 8), nullptr);
  EXPECT_EQ(matcher.unexpected_count(), 3u);

  UnexpectedMessage* from_4 = matcher.match_post({1, 4, 5, kWholeTag});
  ASSERT_NE(from_4, nullptr);
  EXPECT_EQ(matcher.find_unexpected_rts(4, 8), nullptr);
  RtsPayload offer;
  std::memcpy(&offer, from_4->payload().data(), sizeof offer);
  EXPECT_EQ(offer.length, std::uint64_t{1} << 20);
  matcher.release(*from_4);
}

TEST(TagMatcher, QueuedMessagesEndWithTheMatcher) {
  TagMatcher matcher;
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    matcher.add_unexpected(1, eager(1, tag % 7, 2000), bytes_of(std::string(2000, 'y')));
  }
}

// ---- work and memory, counted

// How the 64-bit tags of programs look.
using TagOf = std::uint64_t (*)(std::uint64_t);
constexpr TagOf kTagShapes[] = {
    [](std::uint64_t i) { return i; },       [](std::uint64_t i) { return i << 16; },
    [](std::uint64_t i) { return i << 48; }, [](std::uint64_t i) { return i * 4096 + 7; },
    [](std::uint64_t i) { return ~i; },
};

// Objects visited per match with `depth` receives posted, then with `depth` messages unexpected.
double visited_per_match(std::uint64_t depth, TagOf tag_of) {
  TagMatcher matcher;
  std::vector<std::unique_ptr<Receive>> receives;
  for (std::uint64_t i = 0; i < depth; ++i) {
    const MatchPattern pattern{1, static_cast<std::int32_t>(i % 3), tag_of(i), kWholeTag};
    EXPECT_EQ(matcher.match_post(pattern), nullptr);
    matcher.post(*receives.emplace_back(std::make_unique<Receive>(pattern)));
  }
  for (std::uint64_t i = depth; i-- > 0;) {
    EXPECT_EQ(matcher.match_arrival(1, static_cast<std::int32_t>(i % 3), tag_of(i)), receives[i].get());
  }
  for (std::uint64_t i = 0; i < depth; ++i) {
    const auto source = static_cast<std::int32_t>(i % 3);
    EXPECT_EQ(matcher.match_arrival(1, source, tag_of(i)), nullptr);
    matcher.add_unexpected(source, eager(1, tag_of(i)), {});
  }
  for (std::uint64_t i = depth; i-- > 0;) {
    UnexpectedMessage* message = matcher.match_post({1, static_cast<std::int32_t>(i % 3), tag_of(i), kWholeTag});
    EXPECT_NE(message, nullptr);
    if (message != nullptr) matcher.release(*message);
  }
  return static_cast<double>(matcher.counters().visited) / static_cast<double>(2 * depth);
}

TEST(TagMatcher, AMatchVisitsAsFewObjectsAmongTenThousandAsAmongTen) {
  for (TagOf tag_of : kTagShapes) {
    // Expect: one visit, plus what chance puts into the same chain: below one more for a table that is half to all full
    // (half a chain passed by the match and one whole chain by the search before queueing, both at most 1 on average).
    for (std::uint64_t depth : {10u, 100u, 1000u, 10'000u})
      EXPECT_LE(visited_per_match(depth, tag_of), 2.5) << depth;
  }
}

TEST(TagMatcher, TenThousandReceivesOfOneKeyCostOtherKeysNothing) {
  TagMatcher matcher;
  std::vector<std::unique_ptr<Receive>> same;
  for (int i = 0; i < 10'000; ++i)
    matcher.post(*same.emplace_back(std::make_unique<Receive>(MatchPattern{1, 2, 3, kWholeTag})));
  for (std::uint64_t tag = 100; tag < 200; ++tag) {
    Receive receive({1, 2, tag, kWholeTag});
    const std::uint64_t before = matcher.counters().visited;
    matcher.post(receive);
    EXPECT_EQ(matcher.match_arrival(1, 2, tag), &receive);
    EXPECT_LE(matcher.counters().visited - before, 3u);
  }
  const std::uint64_t before = matcher.counters().visited;
  for (auto& receive : same)
    ASSERT_EQ(matcher.match_arrival(1, 2, 3), receive.get());
  EXPECT_EQ(matcher.counters().visited - before, same.size());
}

TEST(TagMatcher, AWaitingWildcardIsLookedAtOncePerArrivalAndNotPastAnOlderMatch) {
  TagMatcher matcher;
  Receive exact({1, 2, 3, kWholeTag}), young({1, kAnySource, 99, kWholeTag});
  matcher.post(exact);
  matcher.post(young);
  std::uint64_t before = matcher.counters().visited;
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), &exact);
  EXPECT_EQ(matcher.counters().visited - before, 1u);
  before = matcher.counters().visited;
  EXPECT_EQ(matcher.match_arrival(1, 2, 3), nullptr);
  EXPECT_EQ(matcher.counters().visited - before, 1u);
  EXPECT_TRUE(matcher.cancel(young));
}

TEST(TagMatcher, SteadyStateTakesNoMemoryAndGrowsNoTable) {
  TagMatcher matcher;
  const std::string text(3000, 'z');
  const auto round = [&] {
    std::vector<std::unique_ptr<Receive>> receives;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::size_t length = i % 5 == 0 ? 3000 : i % 100;
      matcher.add_unexpected(1, eager(1, i, length), bytes_of(text).first(length));
      matcher.post(*receives.emplace_back(std::make_unique<Receive>(MatchPattern{2, 1, i, kWholeTag})));
    }
    for (std::uint64_t i = 0; i < 2000; ++i) {
      matcher.release(*matcher.match_post({1, 1, i, kWholeTag}));
      EXPECT_EQ(matcher.match_arrival(2, 1, i), receives[i].get());
    }
  };
  round();
  const SizeClassPool::Counters warm = matcher.pool().counters();
  const std::size_t buckets = matcher.buckets();
  round();
  EXPECT_EQ(matcher.buckets(), buckets);
  if (!SizeClassPool::kPooling) GTEST_SKIP() << "AddressSanitizer: every message comes from operator new";
  EXPECT_EQ(matcher.pool().counters().misses, warm.misses);
  EXPECT_EQ(matcher.pool().counters().oversize, 0u);
}

TEST(TagMatcherDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto post_twice = [] {
    TagMatcher matcher;
    Receive receive({1, 2, 3, kWholeTag});
    matcher.post(receive);
    matcher.post(receive);
  };
  EXPECT_DEATH(post_twice(), "posted already");
  const auto die_posted = [] {
    auto matcher = std::make_unique<TagMatcher>();
    Receive receive({1, 2, 3, kWholeTag});
    matcher->post(receive);
    matcher.reset();
  };
  EXPECT_DEATH(die_posted(), "still posted");
  const auto keep_message = [] {
    TagMatcher matcher;
    matcher.add_unexpected(1, eager(1, 1), {});
    static_cast<void>(matcher.match_post({1, 1, 1, kWholeTag}));
  };
  EXPECT_DEATH(keep_message(), "released");
  const auto lie_about_length = [] {
    TagMatcher matcher;
    matcher.add_unexpected(1, eager(1, 1, 5), bytes_of("abc"));
  };
  EXPECT_DEATH(lie_about_length(), "length");
}

}  // namespace
}  // namespace weft::net
