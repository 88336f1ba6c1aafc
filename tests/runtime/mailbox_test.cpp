// Goal: mail is delivered once, and each sender's in its order.
#include "weft/runtime/mailbox.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace weft {
namespace {

class Letter final : public MailboxItem {
 public:
  Letter(int from, int sequence, std::vector<std::vector<int>>& got) : from_(from), sequence_(sequence), got_(got) {}
  void deliver() noexcept override { got_[static_cast<std::size_t>(from_)].push_back(sequence_); }

 private:
  int from_;
  int sequence_;
  std::vector<std::vector<int>>& got_;
};

TEST(Mailbox, DeliversOldestFirst) {
  std::vector<std::vector<int>> got(1);
  Letter first(0, 1, got);
  Letter second(0, 2, got);
  Letter third(0, 3, got);
  Mailbox mailbox;
  EXPECT_TRUE(mailbox.empty());
  EXPECT_FALSE(mailbox.deliver_all());
  mailbox.push(first);
  mailbox.push(second);
  mailbox.push(third);
  EXPECT_FALSE(mailbox.empty());
  EXPECT_TRUE(mailbox.deliver_all());
  EXPECT_EQ(got[0], (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(mailbox.empty());
}

TEST(Mailbox, AnItemMayFreeItselfOrBePostedAgainWhenItIsDelivered) {
  class FreesItself final : public MailboxItem {
   public:
    void deliver() noexcept override { delete this; }
  };
  class Again final : public MailboxItem {
   public:
    explicit Again(Mailbox& mailbox) : mailbox_(mailbox) {}
    void deliver() noexcept override {
      if (++delivered < 3) mailbox_.push(*this);
    }
    int delivered = 0;

   private:
    Mailbox& mailbox_;
  };
  Mailbox mailbox;
  Again again(mailbox);
  mailbox.push(again);
  mailbox.push(*new FreesItself);
  EXPECT_TRUE(mailbox.deliver_all());
  EXPECT_EQ(again.delivered, 1);  // what comes meanwhile waits for the next time
  EXPECT_TRUE(mailbox.deliver_all());
  EXPECT_TRUE(mailbox.deliver_all());
  EXPECT_FALSE(mailbox.deliver_all());
  EXPECT_EQ(again.delivered, 3);
}

TEST(Mailbox, KeepsTheOrderOfEachOfManySenders) {
  constexpr int kSenders = 4;
  constexpr int kLetters = 5000;
  std::vector<std::vector<int>> got(kSenders);
  std::vector<std::vector<std::unique_ptr<Letter>>> letters(kSenders);
  for (int from = 0; from < kSenders; ++from) {
    for (int i = 0; i < kLetters; ++i) {
      letters[static_cast<std::size_t>(from)].push_back(std::make_unique<Letter>(from, i, got));
    }
  }
  Mailbox mailbox;
  std::vector<std::thread> senders;
  for (auto& mine : letters) {
    senders.emplace_back([&mailbox, &mine] {
      for (const auto& letter : mine) mailbox.push(*letter);
    });
  }
  std::size_t total = 0;
  while (total < std::size_t{kSenders} * kLetters) {
    if (!mailbox.deliver_all()) std::this_thread::yield();
    total = 0;
    for (const auto& sequence : got) total += sequence.size();
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(mailbox.empty());
  for (const auto& sequence : got) {
    ASSERT_EQ(sequence.size(), std::size_t{kLetters});
    for (int i = 0; i < kLetters; ++i) EXPECT_EQ(sequence[static_cast<std::size_t>(i)], i);
  }
}

}  // namespace
}  // namespace weft
