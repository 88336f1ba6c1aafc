// Goal: an assertion that holds costs one evaluation; one that does not says what, where and on which thread, and
// aborts.
#include "weft/runtime/assert.hpp"

#include <gtest/gtest.h>

#include "weft/runtime/topology.hpp"

namespace weft {
namespace {

TEST(Assert, EvaluatesItsConditionOnce) {
  int evaluated = 0;
  WEFT_ASSERT(++evaluated == 1, "once");
  EXPECT_EQ(evaluated, 1);
}

TEST(AssertDeathTest, SaysWhatAndWhereOnWhichThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        name_this_thread("weft-7");
        WEFT_ASSERT(1 + 1 == 3, "arithmetic is broken");
      },
      "weft: arithmetic is broken \\(.*assert_test.cpp:[0-9]+, thread weft-7\\)");
}

TEST(AssertDeathTest, DebugAssertionsAreThereInDebugBuildsOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#ifdef NDEBUG
  WEFT_DEBUG_ASSERT(false, "not compiled in");
#else
  EXPECT_DEATH(WEFT_DEBUG_ASSERT(false, "compiled in"), "compiled in");
#endif
}

}  // namespace
}  // namespace weft
