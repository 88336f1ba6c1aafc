// Goal: a coroutine sees itself, its reactor and its scope, without being suspended.
#include "weft/runtime/current.hpp"

#include <gtest/gtest.h>

#include "weft/runtime/reactor.hpp"
#include "weft/runtime/task.hpp"

namespace weft {
namespace {

Task<PromiseBase*> look(Reactor* reactor, PromiseBase* parent) {
  const std::uint64_t before = reactor->counters().resumed;
  PromiseBase& self = co_await detail::this_coroutine();
  EXPECT_EQ(reactor->counters().resumed, before);
  EXPECT_EQ(self.reactor, reactor);
  EXPECT_EQ(self.parent, parent);
  EXPECT_NE(self.scope, nullptr);
  co_return &self;
}
Task<void> look_at_both(Reactor* reactor) {
  PromiseBase& self = co_await detail::this_coroutine();
  EXPECT_EQ(self.parent, nullptr);
  Task<PromiseBase*> child = look(reactor, &self);
  PromiseBase* const expected = &child.handle().promise();
  PromiseBase* const seen = co_await std::move(child);
  EXPECT_EQ(seen, expected);
}

TEST(ThisCoroutine, SeesItself) {
  Reactor reactor;
  reactor.run(look_at_both(&reactor));
}

}  // namespace
}  // namespace weft
