// Goal: a result is a value or an error, and reading the side that is not there is named.
#include "weft/runtime/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weft {
namespace {

TEST(Result, HoldsAValue) {
  Result<std::string> result(std::string("text"));
  EXPECT_TRUE(result.has_value());
  EXPECT_TRUE(bool(result));
  EXPECT_EQ(result.code(), Errc::ok);
  EXPECT_EQ(*result, "text");
  EXPECT_EQ(result->size(), 4U);
  result.value() += "!";
  EXPECT_EQ(std::as_const(result).value(), "text!");
}

TEST(Result, MovesAValueOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 3);
}

TEST(Result, HoldsAnError) {
  const Result<int> result(Error(Errc::closed, "send", "closed"));
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.code(), Errc::closed);
  EXPECT_STREQ(result.error().what(), "send: closed");
}

TEST(Result, OfVoid) {
  const Result<void> good;
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(good.code(), Errc::ok);
  good.value();
  const Result<void> bad(Error(Errc::io, "write", "disk"));
  EXPECT_FALSE(bool(bad));
  EXPECT_EQ(bad.error().code(), Errc::io);
}

TEST(ResultDeathTest, TheSideThatIsNotThereIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)Result<int>(Error(Errc::io, "", "x")).value(), "this result holds an error");
  EXPECT_DEATH((void)Result<int>(1).error(), "this result holds a value");
  EXPECT_DEATH(Result<void>(Error(Errc::io, "", "x")).value(), "this result holds an error");
  EXPECT_DEATH((void)Result<void>().error(), "this result holds a value");
}

}  // namespace
}  // namespace weft
