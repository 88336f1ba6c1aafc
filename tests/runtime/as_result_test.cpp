// Goal: as_result turns a weft::Error into a value and lets everything else pass.
#include "weft/runtime/as_result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

Task<std::unique_ptr<int>> value_or_error(bool failing) {
  co_await yield();
  if (failing) throw Error(Errc::peer_lost, "recv", "rank 3 died", 3, 0);
  co_return std::make_unique<int>(1);
}
Task<void> nothing_or_error(bool failing) {
  if (failing) throw Error(Errc::truncated, "recv", "too long");
  co_return;
}
Task<int> other_failure() {
  throw std::runtime_error("not ours");
  co_return 0;
}

TEST(AsResult, GivesTheValue) {
  Reactor reactor;
  const Result<std::unique_ptr<int>> result = reactor.run(as_result(value_or_error(false)));
  EXPECT_EQ(**result, 1);
  EXPECT_TRUE(reactor.run(as_result(nothing_or_error(false))).has_value());
}

TEST(AsResult, GivesTheError) {
  Reactor reactor;
  const Result<std::unique_ptr<int>> result = reactor.run(as_result(value_or_error(true)));
  EXPECT_EQ(result.code(), Errc::peer_lost);
  EXPECT_EQ(result.error().peer(), 3);
  EXPECT_STREQ(result.error().what(), "recv: rank 3 died");
  EXPECT_EQ(reactor.run(as_result(nothing_or_error(true))).code(), Errc::truncated);
}

TEST(AsResult, LetsOtherExceptionsPass) {
  Reactor reactor;
  EXPECT_THROW((void)reactor.run(as_result(other_failure())), std::runtime_error);
}

}  // namespace
}  // namespace weft
