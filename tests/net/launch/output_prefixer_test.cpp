#include "weft/net/launch/output_prefixer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace weft::net::launch {
namespace {

std::string run(const std::string& prefix, const std::vector<std::string>& pieces) {
  OutputPrefixer prefixer(prefix);
  std::string out;
  for (const std::string& piece : pieces)
    prefixer.feed(piece, out);
  prefixer.finish(out);
  return out;
}

TEST(OutputPrefixer, LabelsEveryLine) {
  EXPECT_EQ(run("[3] ", {"one\ntwo\n"}), "[3] one\n[3] two\n");
  EXPECT_EQ(run("[3] ", {"\n\n"}), "[3] \n[3] \n");
  EXPECT_EQ(run("[3] ", {}), "");
}

TEST(OutputPrefixer, ShowsALineOnlyWhenItIsComplete) {
  OutputPrefixer prefixer("[0] ");
  std::string out;
  prefixer.feed("par", out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(prefixer.held_bytes(), 3U);
  prefixer.feed("tial\nnext", out);
  EXPECT_EQ(out, "[0] partial\n");
  prefixer.finish(out);
  EXPECT_EQ(out, "[0] partial\n[0] next\n");
  prefixer.finish(out);
  EXPECT_EQ(out, "[0] partial\n[0] next\n") << "an end is shown once";
}

TEST(OutputPrefixer, KeepsZeroBytesAndInvalidUtf8) {
  const std::string bytes("\0\xff\xfe\n\r\0", 6);
  EXPECT_EQ(run("p", {bytes}), std::string("p\0\xff\xfe\np\r\0\n", 9));
}

TEST(OutputPrefixer, WithoutAPrefixBytesComeOutAsTheyWentIn) {
  const std::string long_line(3 * OutputPrefixer::kMaxLineBytes + 17, 'x');
  EXPECT_EQ(run("", {long_line, "tail"}), long_line + "tail");
}

TEST(OutputPrefixer, CutsALineThatNeverEnds) {
  constexpr std::size_t kMax = OutputPrefixer::kMaxLineBytes;
  OutputPrefixer prefixer("[1] ");
  std::string out;
  for (std::size_t i = 0; i < 2 * kMax + 1; ++i) {
    prefixer.feed("x", out);
    ASSERT_LT(prefixer.held_bytes(), kMax);
  }
  prefixer.finish(out);
  const std::string piece = "[1] " + std::string(kMax, 'x') + "\n";
  EXPECT_EQ(out, piece + piece + "[1] x\n");
}

TEST(OutputPrefixer, ALineThatIsJustLongEnoughIsNotCutTwice) {
  constexpr std::size_t kMax = OutputPrefixer::kMaxLineBytes;
  const std::string line(kMax - 1, 'x');
  EXPECT_EQ(run("p", {line + "\nrest\n"}), "p" + line + "\nprest\n");
}

TEST(OutputPrefixer, TheCutOfTheStreamDoesNotShow) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string stream;
    for (auto i = random() % 400; i > 0; --i)
      stream += random() % 5 == 0 ? '\n' : static_cast<char>(random());
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t length = 1 + random() % 7;
      pieces.push_back(stream.substr(at, length));
      at += length;
    }
    EXPECT_EQ(run("[12] ", pieces), run("[12] ", {stream}));
    EXPECT_EQ(run("", pieces), stream);
  }
}

}  // namespace
}  // namespace weft::net::launch
