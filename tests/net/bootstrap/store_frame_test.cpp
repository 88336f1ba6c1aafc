#include "weft/net/bootstrap/store_frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace weft::net::store {
namespace {

Bytes body_of(const std::vector<std::byte>& frame) {
  return Bytes(frame).subspan(kLengthBytes);
}

template <typename T>
T round_trip(T frame) {
  const std::vector<std::byte> bytes = encode(frame);
  const auto length = decode_length(std::span<const std::byte>(bytes).template first<kLengthBytes>(), kMaxFrameBytes);
  EXPECT_EQ(length, bytes.size() - kLengthBytes);
  const std::optional<Frame> decoded = decode(body_of(bytes));
  if (!decoded.has_value() || !std::holds_alternative<T>(*decoded)) {
    ADD_FAILURE() << "not decoded as what it was";
    return T();
  }
  T body = std::get<T>(*decoded);
  // Views must not point into the buffer that dies here; compared by value they need not.
  if constexpr (requires { body.text; }) body.text = frame.text;
  if constexpr (requires { body.key; }) body.key = body.key == frame.key ? frame.key : std::string_view("differs");
  if constexpr (requires { body.name; }) body.name = body.name == frame.name ? frame.name : std::string_view("differs");
  return body;
}

TEST(StoreFrame, EveryKindComesBackAsItWasMade) {
  EXPECT_EQ(round_trip(Join{3, 8}).world_size, 8);
  EXPECT_EQ(round_trip(Join{-3, 8}).rank, -3);
  EXPECT_EQ(round_trip(Get{7, "key"}).key, "key");
  EXPECT_EQ(round_trip(Add{7, "key", -9'000'000'000}).delta, -9'000'000'000);
  EXPECT_EQ(round_trip(Barrier{0xffffffff, ""}).id, 0xffffffff);
  EXPECT_EQ(round_trip(Withdraw{1}).id, 1u);
  EXPECT_EQ(round_trip(Goodbye{1, 5}).at_fault, 5);
  EXPECT_EQ(round_trip(ConnectTo{4}).rank, 4);
  round_trip(Welcome());
  EXPECT_EQ(round_trip(Refused{Errc::mismatch, "why"}).code, Errc::mismatch);
  EXPECT_EQ(round_trip(Done{9}).id, 9u);
  EXPECT_EQ(round_trip(Counter{9, -1}).count, -1);
  EXPECT_EQ(round_trip(Failed{9, Errc::peer_lost, 2, "gone"}).rank, 2);
  EXPECT_EQ(round_trip(Withdrawn{9, {1, 2, 3}}).missing, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(round_trip(RankLost{2, "died"}).rank, 2);
  EXPECT_EQ(round_trip(RankLeft{2, 3, 4}).at_fault, 4);
  EXPECT_EQ(round_trip(ConnectRequest{6}).from, 6);
  EXPECT_EQ(round_trip(JobFailed{Errc::mismatch, "why"}).code, Errc::mismatch);
  round_trip(Farewell());
}

TEST(StoreFrame, ValuesAndListsComeBackByteForByte) {
  const std::vector<std::byte> value(1000, std::byte{0x5a});
  std::vector<std::byte> bytes = encode(Set{1, "k", value});
  const std::optional<Frame> set = decode(body_of(bytes));
  ASSERT_TRUE(set.has_value());
  const Bytes seen = std::get<Set>(*set).value;
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), value.begin(), value.end()));

  WaitAll wait;
  wait.keys = {"a", "", "a", "long key"};
  bytes = encode(wait);
  const std::optional<Frame> decoded = decode(body_of(bytes));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<WaitAll>(*decoded).keys, wait.keys);
}

TEST(StoreFrame, AValueHeadAnnouncesTheValueThatFollows) {
  const std::vector<std::byte> value(300, std::byte{7});
  std::vector<std::byte> split = encode_value_head(12, value.size());
  split.insert(split.end(), value.begin(), value.end());
  EXPECT_EQ(split, encode(Value{12, value}));
}

TEST(StoreFrame, LengthsOfZeroAndBeyondTheLimitAreRefused) {
  const std::array<std::byte, 4> zero{};
  EXPECT_FALSE(decode_length(zero, 100).has_value());
  const std::array<std::byte, 4> hundred{std::byte{100}};
  EXPECT_EQ(decode_length(hundred, 100), 100u);
  EXPECT_FALSE(decode_length(hundred, 99).has_value());
  const std::array<std::byte, 4> huge{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  EXPECT_FALSE(decode_length(huge, kMaxFrameBytes).has_value());
}

TEST(StoreFrame, ShortenedAndLengthenedFramesAreRefused) {
  WaitAll wait;
  wait.keys = {"first", "second"};
  const std::vector<std::byte> value(20);
  for (const std::vector<std::byte>& frame :
       {encode(Join{1, 2}), encode(Set{1, "key", value}), encode(wait), encode(Withdrawn{1, {1, 2}}),
        encode(Failed{1, Errc::io, 0, "text"}), encode(Welcome())}) {
    const Bytes body = body_of(frame);
    for (std::size_t length = 0; length < body.size(); ++length) {
      EXPECT_FALSE(decode(body.first(length)).has_value()) << length;
    }
    std::vector<std::byte> longer(body.begin(), body.end());
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer).has_value());
  }
}

TEST(StoreFrame, ACountThatLiesIsRefusedBeforeAnythingIsReserved) {
  std::vector<std::byte> body = {std::byte{static_cast<unsigned char>(FrameKind::wait)}};
  body.resize(5);                               // id
  body.insert(body.end(), 4, std::byte{0xff});  // count
  EXPECT_FALSE(decode(body).has_value());
  body[0] = std::byte{static_cast<unsigned char>(FrameKind::withdrawn)};
  EXPECT_FALSE(decode(body).has_value());
}

TEST(StoreFrame, UnknownKindsAndCodesAreRefused) {
  const std::array<std::byte, 1> unknown{std::byte{200}};
  EXPECT_FALSE(decode(unknown).has_value());
  std::vector<std::byte> frame = encode(Refused{Errc::io, ""});
  frame[kLengthBytes + 1] = std::byte{0x80};
  EXPECT_FALSE(decode(body_of(frame)).has_value());
}

TEST(StoreFrame, RandomBytesNeverBreakTheDecoder) {
  const std::uint64_t seed = 20240607;
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::vector<std::byte> body(random() % 40);
    for (std::byte& byte : body)
      byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 4));
    if (!body.empty()) body[0] = static_cast<std::byte>(random() % 2 == 0 ? random() % 12 : 62 + random() % 16);
    const std::optional<Frame> frame = decode(body);
    if (!frame.has_value()) continue;
    ++accepted;
    // Expect: what is accepted encodes to the same bytes.
    const std::vector<std::byte> again = encode(*frame);
    EXPECT_TRUE(std::equal(body.begin(), body.end(), again.begin() + kLengthBytes, again.end()));
  }
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace weft::net::store
