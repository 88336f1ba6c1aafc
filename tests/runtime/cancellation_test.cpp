// Goal: a cancel reaches every wait of the scope and of those inside, each once, and counts for what comes later.
#include "weft/runtime/cancellation.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

namespace weft {
namespace {

class Waiter final : public Cancellable {
 public:
  void on_cancel(Errc reason) noexcept override {
    EXPECT_FALSE(linked());
    ++told;
    got = reason;
    if (other != nullptr && other->linked()) other->unlink();
  }
  int told = 0;
  Errc got = Errc::ok;
  Waiter* other = nullptr;
};

TEST(CancelScope, TellsItsWaitsOnce) {
  CancelScope scope;
  Waiter waiter;
  scope.add(waiter);
  EXPECT_EQ(scope.requested(), Errc::ok);
  scope.cancel(Errc::timed_out);
  scope.cancel(Errc::cancelled);
  EXPECT_EQ(waiter.told, 1);
  EXPECT_EQ(waiter.got, Errc::timed_out);
  EXPECT_EQ(scope.requested(), Errc::timed_out);
}

TEST(CancelScope, AWaitThatHasLeftIsNotTold) {
  CancelScope scope;
  Waiter waiter;
  scope.add(waiter);
  waiter.unlink();
  scope.cancel();
  EXPECT_EQ(waiter.told, 0);
}

TEST(CancelScope, AWaitMayEndAnotherOfItsScopeWhileItIsTold) {
  CancelScope scope;
  Waiter first;
  Waiter second;
  first.other = &second;
  scope.add(first);
  scope.add(second);
  scope.cancel();
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(second.told, 0);
}

TEST(CancelScope, GoesDownNotUpOrSideways) {
  CancelScope root;
  CancelScope left(&root);
  CancelScope right(&root);
  CancelScope below(&left);
  CancelScope far_below(&below);
  std::vector<Waiter> waiters(5);
  CancelScope* const scopes[] = {&root, &left, &right, &below, &far_below};
  for (std::size_t i = 0; i < 5; ++i) scopes[i]->add(waiters[i]);
  left.cancel();
  EXPECT_EQ(root.requested(), Errc::ok);
  EXPECT_EQ(right.requested(), Errc::ok);
  EXPECT_EQ(far_below.requested(), Errc::cancelled);
  root.cancel(Errc::timed_out);
  EXPECT_EQ(far_below.requested(), Errc::cancelled);  // the first reason stays
  EXPECT_EQ(right.requested(), Errc::timed_out);
  for (const Waiter& waiter : waiters) EXPECT_EQ(waiter.told, 1);
}

TEST(CancelScope, AScopeInsideACancelledOneIsCancelledFromTheStart) {
  CancelScope outer;
  outer.cancel(Errc::timed_out);
  const CancelScope inner(&outer);
  EXPECT_EQ(inner.requested(), Errc::timed_out);
}

TEST(CancelScope, AnyDepthAndWidth) {
  CancelScope root;
  std::deque<std::unique_ptr<CancelScope>> scopes;
  CancelScope* deepest = &root;
  for (int i = 0; i < 300'000; ++i) {
    scopes.push_front(std::make_unique<CancelScope>(deepest));
    CancelScope* next = scopes.front().get();
    if (i % 3 == 0) scopes.push_front(std::make_unique<CancelScope>(deepest));
    deepest = next;
  }
  Waiter waiter;
  deepest->add(waiter);
  root.cancel();
  EXPECT_EQ(waiter.told, 1);
  for (const auto& scope : scopes) ASSERT_EQ(scope->requested(), Errc::cancelled);
  while (!scopes.empty()) scopes.pop_front();
}

TEST(CancelScopeDeathTest, MustOutliveWhatIsInIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Waiter waiter;
        CancelScope scope;
        scope.add(waiter);
      },
      "destroyed while tasks waited in it");
  EXPECT_DEATH(
      {
        auto outer = std::make_unique<CancelScope>();
        const CancelScope inner(outer.get());
        outer.reset();
      },
      "destroyed before a scope inside it");
}

}  // namespace
}  // namespace weft
