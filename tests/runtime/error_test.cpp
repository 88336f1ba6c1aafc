// Goal: every code has its own name, errno values map to the right ones, and messages read well.
#include "weft/runtime/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>

namespace weft {
namespace {

TEST(Errc, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Errc::io); ++code) {
    const std::string_view name = to_string(static_cast<Errc>(code));
    EXPECT_NE(name, "unknown error");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(to_string(static_cast<Errc>(250)), "unknown error");
}

TEST(Errc, FitsAnErrno) {
  EXPECT_EQ(errc_from_errno(0), Errc::ok);
  EXPECT_EQ(errc_from_errno(ECONNRESET), Errc::peer_lost);
  EXPECT_EQ(errc_from_errno(EPIPE), Errc::peer_lost);
  EXPECT_EQ(errc_from_errno(EADDRINUSE), Errc::address_in_use);
  EXPECT_EQ(errc_from_errno(ECONNREFUSED), Errc::unreachable);
  EXPECT_EQ(errc_from_errno(EMFILE), Errc::exhausted);
  EXPECT_EQ(errc_from_errno(ENOSYS), Errc::unsupported);
  EXPECT_EQ(errc_from_errno(EINVAL), Errc::invalid_argument);
  EXPECT_EQ(errc_from_errno(EXDEV), Errc::io);
}

TEST(Error, ReadsOperationThenReasonThenErrno) {
  const Error plain(Errc::truncated, "recv", "the message is longer than the buffer", 3);
  EXPECT_STREQ(plain.what(), "recv: the message is longer than the buffer");
  EXPECT_EQ(plain.code(), Errc::truncated);
  EXPECT_EQ(plain.peer(), 3);
  EXPECT_EQ(plain.operation(), "recv");
  const Error native(Errc::io, "open", "cannot open it", kNoRank, EACCES);
  EXPECT_EQ(native.what(), std::string("open: cannot open it (") + std::strerror(EACCES) + ")");
  EXPECT_EQ(native.native(), EACCES);
  EXPECT_STREQ(Error(Errc::closed, "", "closed here").what(), "closed here");
}

TEST(Error, WordsAnOutcome) {
  EXPECT_STREQ(Error(Outcome{Errc::peer_lost, 5, 0}, "all_reduce#41").what(), "all_reduce#41: peer lost, rank 5");
  EXPECT_STREQ(Error(Outcome{Errc::cancelled, kNoRank, 0}, "sleep").what(), "sleep: cancelled");
  EXPECT_TRUE(Outcome().ok());
  EXPECT_FALSE((Outcome{Errc::io, kNoRank, 0}).ok());
}

}  // namespace
}  // namespace weft
