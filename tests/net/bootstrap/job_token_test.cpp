#include "weft/net/bootstrap/job_token.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weft::net {
namespace {

const std::string kDigits = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";

TEST(JobToken, ReadsSixtyFourHexDigitsOfEitherCase) {
  const Result<JobToken> token = JobToken::from_hex(kDigits);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->key()[0], 0x00);
  EXPECT_EQ(token->key()[1], 0x11);
  EXPECT_EQ(token->key()[15], 0xff);
  EXPECT_EQ(token->key()[16], 0xff);
  EXPECT_EQ(token->key()[31], 0x00);
}

TEST(JobToken, RefusesOtherTextWithoutShowingIt) {
  std::string wrong = kDigits;
  wrong[40] = 'x';
  for (const std::string& text : {std::string(), kDigits.substr(1), kDigits + "0", wrong, std::string(64, ' ')}) {
    const Result<JobToken> token = JobToken::from_hex(text);
    ASSERT_FALSE(token) << text;
    EXPECT_EQ(token.code(), Errc::invalid_argument);
    const std::string what = token.error().what();
    // Expect: no four characters of the secret in a row.
    for (std::size_t i = 0; i + 4 <= text.size(); ++i) {
      if (text[i] == ' ') continue;
      EXPECT_EQ(what.find(text.substr(i, 4)), std::string::npos) << what;
    }
  }
  EXPECT_NE(std::string(JobToken::from_hex(wrong).error().what()).find("character 41"), std::string::npos);
}

TEST(JobToken, RandomTokensDiffer) {
  const JobToken a = JobToken::random();
  const JobToken b = JobToken::random();
  EXPECT_FALSE(a == b);
  const JobToken copy = a;
  EXPECT_TRUE(copy == a);
}

TEST(JobToken, DerivedTokensDependOnTheTextAlone) {
  EXPECT_TRUE(JobToken::derived("run 1 restart 0") == JobToken::derived("run 1 restart 0"));
  EXPECT_FALSE(JobToken::derived("run 1 restart 0") == JobToken::derived("run 1 restart 1"));
  EXPECT_FALSE(JobToken::derived("") == JobToken::derived(std::string(1, '\0')));
}

}  // namespace
}  // namespace weft::net
