// Goal: a channel keeps the order of values and of those who wait, loses and doubles nothing whatever is cancelled or
// closed, and allocates only when it is made.
#include "weft/runtime/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/allocation_count.hpp"
#include "support/lifetime_tracked.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

using Numbers = std::vector<int>;

Task<void> produce(Channel<int>* channel, int first, int count, int* active) {
  for (int i = 0; i < count; ++i) co_await channel->send(first + i);
  if (--*active == 0) channel->close();
}

Task<void> consume(Channel<int>* channel, Numbers* got) {
  while (true) {
    std::optional<int> value = co_await channel->receive();
    if (!value.has_value()) co_return;
    got->push_back(*value);
  }
}

Task<void> one_to_one(Nursery& nursery, Channel<int>* channel, Numbers* got, int* active) {
  nursery.start(produce(channel, 0, 100, active));
  nursery.start(consume(channel, got));
  co_return;
}

TEST(Channel, KeepsOrderAtAnyCapacity) {
  Reactor reactor;
  for (const std::size_t capacity : {0U, 1U, 2U, 7U, 1000U}) {
    Channel<int> channel(capacity);
    Numbers got;
    int active = 1;
    reactor.run(with_nursery(&one_to_one, &channel, &got, &active));
    ASSERT_EQ(got.size(), 100U) << "capacity " << capacity;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
  }
}

Task<void> many_to_many(Nursery& nursery, Channel<int>* channel, std::vector<Numbers>* got, int* active) {
  for (int i = 0; i < 5; ++i) nursery.start(produce(channel, i * 1000, 200, active));
  for (Numbers& numbers : *got) nursery.start(consume(channel, &numbers));
  co_return;
}

TEST(Channel, SeveralProducersAndConsumersShareWithoutLossAndInTheirOwnOrder) {
  Reactor reactor;
  for (const std::size_t capacity : {0U, 1U, 3U, 64U}) {
    Channel<int> channel(capacity);
    std::vector<Numbers> got(3);
    int active = 5;
    reactor.run(with_nursery(&many_to_many, &channel, &got, &active));
    std::vector<bool> seen(5000);
    std::size_t total = 0;
    for (const Numbers& numbers : got) {
      std::vector<int> last(5, -1);
      for (const int number : numbers) {
        EXPECT_FALSE(seen[static_cast<std::size_t>(number)]);
        seen[static_cast<std::size_t>(number)] = true;
        int& before = last[static_cast<std::size_t>(number / 1000)];
        EXPECT_LT(before, number);
        before = number;
        ++total;
      }
    }
    EXPECT_EQ(total, 1000U) << "capacity " << capacity;
  }
}

Task<void> send_and_note(Channel<int>* channel, int value, std::vector<std::string>* log) {
  try {
    co_await channel->send(value);
    log->push_back("sent " + std::to_string(value));
  } catch (const Error& error) {
    log->push_back(std::string(to_string(error.code())) + " " + std::to_string(value));
  }
}
Task<void> receive_and_note(Channel<int>* channel, std::vector<std::string>* log) {
  try {
    std::optional<int> value = co_await channel->receive();
    log->push_back(value.has_value() ? "got " + std::to_string(*value) : "nothing");
  } catch (const Error& error) {
    log->push_back(std::string(to_string(error.code())) + " receive");
  }
}
using Log = std::vector<std::string>;

Task<void> rendezvous(Nursery& nursery, Channel<int>* channel, Log* log) {
  nursery.start(send_and_note(channel, 1, log));
  co_await yield();
  co_await yield();
  EXPECT_TRUE(log->empty());  // nobody has taken it
  nursery.start(receive_and_note(channel, log));
}

TEST(Channel, CapacityZeroIsARendezvous) {
  Reactor reactor;
  Channel<int> channel(0);
  Log log;
  reactor.run(with_nursery(&rendezvous, &channel, &log));
  EXPECT_EQ(log, (Log{"got 1", "sent 1"}));
}

Task<void> close_on_waiters(Nursery& nursery, Channel<int>* channel, Log* log) {
  for (int i = 0; i < 3; ++i) nursery.start(send_and_note(channel, i, log));
  co_await yield();
  channel->close();
  channel->close();
  co_await yield();
  nursery.start(send_and_note(channel, 9, log));
  for (int i = 0; i < 2; ++i) nursery.start(receive_and_note(channel, log));
}

TEST(Channel, CloseRefusesSendersAndLetsReceiversTakeWhatIsQueued) {
  Reactor reactor;
  Channel<int> channel(1);
  Log log;
  reactor.run(with_nursery(&close_on_waiters, &channel, &log));
  EXPECT_EQ(log, (Log{"sent 0", "closed 1", "closed 2", "closed 9", "got 0", "nothing"}));
}

Task<void> close_on_receivers(Nursery& nursery, Channel<int>* channel, Log* log) {
  for (int i = 0; i < 2; ++i) nursery.start(receive_and_note(channel, log));
  co_await yield();
  channel->close();
}

TEST(Channel, CloseGivesWaitingReceiversNothing) {
  Reactor reactor;
  Channel<int> channel(1);
  Log log;
  reactor.run(with_nursery(&close_on_receivers, &channel, &log));
  EXPECT_EQ(log, (Log{"nothing", "nothing"}));
}

Task<void> cancelled_group(Nursery& nursery, Channel<int>* channel, Log* log) {
  nursery.start(send_and_note(channel, 2, log));
  co_await yield();
  nursery.cancel();
}
Task<void> cancel_middle_sender(Nursery& nursery, Channel<int>* channel, Log* log) {
  nursery.start(send_and_note(channel, 1, log));
  co_await yield();
  co_await with_nursery(&cancelled_group, channel, log);
  nursery.start(send_and_note(channel, 3, log));
  co_await yield();
  nursery.start(receive_and_note(channel, log));
  nursery.start(receive_and_note(channel, log));
  co_await yield();
  co_await yield();
  nursery.start(receive_and_note(channel, log));
  co_await yield();
  channel->close();
}

TEST(Channel, ACancelledSenderHasNotSentAndOthersKeepTheirPlaces) {
  Reactor reactor;
  Channel<int> channel(0);
  Log log;
  reactor.run(with_nursery(&cancel_middle_sender, &channel, &log));
  EXPECT_EQ(log, (Log{"cancelled 2", "got 1", "got 3", "sent 1", "sent 3", "nothing"}));
}

Task<void> cancelled_receiver(Nursery& nursery, Channel<int>* channel, Log* log, bool send_before_cancel) {
  nursery.start(receive_and_note(channel, log));
  co_await yield();
  if (send_before_cancel) co_await channel->send(5);
  nursery.cancel();
}

TEST(Channel, ACancelledReceiverHasTakenNothingOrEverything) {
  Reactor reactor;
  {
    Channel<int> channel(1);
    Log log;
    reactor.run(with_nursery(&cancelled_receiver, &channel, &log, false));
    EXPECT_EQ(log, (Log{"cancelled receive"}));
    reactor.run(send_and_note(&channel, 6, &log));
    EXPECT_EQ(channel.size(), 1U);
  }
  {
    Channel<int> channel(1);
    Log log;
    reactor.run(with_nursery(&cancelled_receiver, &channel, &log, true));
    EXPECT_EQ(log, (Log{"got 5"}));
  }
}

// Random sends and receives, some of which are cancelled: what was sent is what is got or left.
Task<void> send_some(Channel<int>* channel, int first, int count, Numbers* sent, std::minstd_rand* random) {
  for (int i = 0; i < count; ++i) {
    co_await channel->send(first + i);
    sent->push_back(first + i);
    if ((*random)() % 3 == 0) co_await yield();
  }
}
Task<void> receive_some(Channel<int>* channel, Numbers* got, std::minstd_rand* random) {
  while (true) {
    std::optional<int> value = co_await channel->receive();
    got->push_back(*value);
    if ((*random)() % 3 == 0) co_await yield();
  }
}
Task<void> random_round(Nursery& nursery, Channel<int>* channel, int first, Numbers* sent, Numbers* got,
                        std::minstd_rand* random) {
  for (int i = 0; i < 3; ++i) nursery.start(send_some(channel, first + i * 100, 50, sent, random));
  for (int i = 0; i < 2; ++i) nursery.start(receive_some(channel, got, random));
  const auto turns = (*random)() % 60;
  for (unsigned i = 0; i < turns; ++i) co_await yield();
  nursery.cancel();
}

TEST(Channel, LosesAndDoublesNothingUnderRandomCancels) {
  Reactor reactor;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::minstd_rand random(seed);
    Channel<int> channel(seed % 5);
    Numbers sent;
    Numbers got;
    for (int round = 0; round < 5; ++round) {
      reactor.run(with_nursery(&random_round, &channel, round * 1000, &sent, &got, &random));
    }
    EXPECT_EQ(sent.size(), got.size() + channel.size());
    std::sort(sent.begin(), sent.end());
    std::sort(got.begin(), got.end());
    EXPECT_TRUE(std::includes(sent.begin(), sent.end(), got.begin(), got.end()));
    EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end());
  }
}

using test::LifetimeTracked;
Task<void> send_tracked(Channel<LifetimeTracked>* channel) {
  for (int i = 0; i < 10; ++i) {
    LifetimeTracked value(i);
    co_await channel->send(std::move(value));
  }
}
Task<void> receive_tracked(Channel<LifetimeTracked>* channel) {
  for (int i = 0; i < 7; ++i) {
    std::optional<LifetimeTracked> value = co_await channel->receive();
    EXPECT_EQ(value->value(), i);
  }
  channel->close();
}
Task<void> tracked(Nursery& nursery, Channel<LifetimeTracked>* channel) {
  nursery.start(send_tracked(channel));
  nursery.start(receive_tracked(channel));
  co_return;
}

TEST(Channel, DestroysEveryValueOnce) {
  const auto alive = LifetimeTracked::alive();
  Reactor reactor;
  for (const std::size_t capacity : {0U, 1U, 2U}) {
    Channel<LifetimeTracked> channel(capacity);
    EXPECT_THROW(reactor.run(with_nursery(&tracked, &channel)), Error);
  }
  EXPECT_EQ(LifetimeTracked::alive(), alive);
  EXPECT_EQ(LifetimeTracked::double_deaths(), 0);
}

Task<void> echo(Channel<int>* in, int count) {
  for (int i = 0; i < count; ++i) (void)co_await in->receive();
}
Task<void> count_hand_offs(Nursery& nursery, Channel<int>* channel, std::uint64_t* allocations) {
  nursery.start(echo(channel, 1100));
  for (int i = 0; i < 1100; ++i) {
    if (i == 100) *allocations = test::allocations_of_this_thread();
    co_await channel->send(i);
  }
  *allocations = test::allocations_of_this_thread() - *allocations;
}

TEST(Channel, HandOffAllocatesNothing) {
  Reactor reactor;
  for (const std::size_t capacity : {0U, 1U, 16U}) {
    Channel<int> channel(capacity);
    std::uint64_t allocations = 1;
    reactor.run(with_nursery(&count_hand_offs, &channel, &allocations));
    EXPECT_EQ(allocations, 0U) << "capacity " << capacity;
  }
}

}  // namespace
}  // namespace weft
