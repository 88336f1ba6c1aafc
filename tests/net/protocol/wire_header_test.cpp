// Goal: decode() accepts exactly what a sender of this version may send, and nothing else whatever the bytes.
#include "weft/net/protocol/wire_header.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace weft::net {
namespace {

constexpr std::size_t kMaxPayload = 8192;
constexpr auto kLastKind = static_cast<int>(PacketKind::goodbye);

using Bytes = std::array<std::byte, kWireHeaderBytes>;

// One lawful length of every kind.
std::uint32_t lawful_length(PacketKind kind) {
  switch (kind) {
    case PacketKind::eager: return 100;
    case PacketKind::data: return kMaxPayload;
    case PacketKind::rts: return sizeof(RtsPayload);
    case PacketKind::cts: return sizeof(CtsPayload);
    default: return 0;
  }
}

WireHeader lawful(int kind) {
  WireHeader header;
  header.kind = static_cast<PacketKind>(kind);
  header.channel = 0x1234;
  header.length = lawful_length(header.kind);
  header.tag = 0x1122334455667788;
  header.context = 0xaabbccdd;
  header.aux = 0x99887766;
  return header;
}

Bytes encoded(const WireHeader& header) {
  Bytes bytes;
  encode(header, bytes.data());
  return bytes;
}

Errc decode_length(int kind, std::uint32_t length, std::size_t max_payload_bytes = kMaxPayload) {
  WireHeader header = lawful(kind);
  header.length = length;
  WireHeader decoded;
  return decode(encoded(header), max_payload_bytes, decoded);
}

int kind_number(PacketKind kind) {
  return static_cast<int>(kind);
}

class EveryKind : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(WireHeader, EveryKind, ::testing::Range(1, kLastKind + 1));

TEST_P(EveryKind, ComesBackWithEveryField) {
  const WireHeader sent = lawful(GetParam());
  WireHeader received;
  ASSERT_EQ(decode(encoded(sent), kMaxPayload, received), Errc::ok);
  EXPECT_EQ(received.version, kWireVersion);
  EXPECT_EQ(received.kind, sent.kind);
  EXPECT_EQ(received.channel, sent.channel);
  EXPECT_EQ(received.length, sent.length);
  EXPECT_EQ(received.tag, sent.tag);
  EXPECT_EQ(received.context, sent.context);
  EXPECT_EQ(received.aux, sent.aux);
}

TEST_P(EveryKind, TruncatedAnywhereIsRefused) {
  const Bytes bytes = encoded(lawful(GetParam()));
  for (std::size_t length = 0; length < kWireHeaderBytes; ++length) {
    // A block of exactly this size, so that a sanitizer sees a read past it.
    const auto cut = std::make_unique<std::byte[]>(length);
    std::memcpy(cut.get(), bytes.data(), length);
    WireHeader header;
    EXPECT_EQ(decode({cut.get(), length}, kMaxPayload, header), Errc::protocol) << length;
  }
}

TEST_P(EveryKind, IsReadFromAnyAlignmentAndWithBytesBehind) {
  const Bytes bytes = encoded(lawful(GetParam()));
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<std::byte> stream(offset + kWireHeaderBytes + 5);
    std::memcpy(stream.data() + offset, bytes.data(), bytes.size());
    WireHeader header;
    ASSERT_EQ(decode(std::span(stream).subspan(offset), kMaxPayload, header), Errc::ok);
    EXPECT_EQ(header.tag, 0x1122334455667788u);
  }
}

TEST_P(EveryKind, OfAnotherVersionIsRefused) {
  for (int version = 0; version < 256; ++version) {
    WireHeader header = lawful(GetParam());
    header.version = static_cast<std::uint8_t>(version);
    WireHeader decoded;
    EXPECT_EQ(decode(encoded(header), kMaxPayload, decoded), version == kWireVersion ? Errc::ok : Errc::protocol);
  }
}

TEST_P(EveryKind, LongerThanThePacketLimitIsRefused) {
  for (std::uint32_t length : {std::uint32_t{kMaxPayload} + 1, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(decode_length(GetParam(), length), Errc::protocol) << length;
  }
}

TEST(WireHeader, AnUnknownKindIsRefused) {
  for (int kind = 0; kind < 256; ++kind) {
    if (kind >= 1 && kind <= kLastKind) continue;
    for (std::uint32_t length : {0u, 16u, 24u, 100u})
      EXPECT_EQ(decode_length(kind, length), Errc::protocol) << kind;
  }
}

TEST(WireHeader, AnEagerMessageMayHaveAnyLengthUpToTheLimit) {
  for (std::uint32_t length : {0u, 1u, 40u, 41u, std::uint32_t{kMaxPayload}}) {
    EXPECT_EQ(decode_length(kind_number(PacketKind::eager), length), Errc::ok) << length;
  }
  EXPECT_EQ(decode_length(kind_number(PacketKind::eager), 1, 0), Errc::protocol);
  EXPECT_EQ(decode_length(kind_number(PacketKind::eager), 0, 0), Errc::ok);
  EXPECT_EQ(decode_length(kind_number(PacketKind::eager), 0xffffffffu, std::numeric_limits<std::size_t>::max()),
            Errc::ok);
}

TEST(WireHeader, DataWithoutPayloadIsRefused) {
  EXPECT_EQ(decode_length(kind_number(PacketKind::data), 0), Errc::protocol);
  EXPECT_EQ(decode_length(kind_number(PacketKind::data), 1), Errc::ok);
  EXPECT_EQ(decode_length(kind_number(PacketKind::data), kMaxPayload), Errc::ok);
}

TEST(WireHeader, KindsOfFixedLengthTakeNoOther) {
  for (int kind = 1; kind <= kLastKind; ++kind) {
    const auto packet = static_cast<PacketKind>(kind);
    if (packet == PacketKind::eager || packet == PacketKind::data) continue;
    for (std::uint32_t length = 0; length <= 64; ++length) {
      EXPECT_EQ(decode_length(kind, length), length == lawful_length(packet) ? Errc::ok : Errc::protocol)
          << "kind " << kind << " length " << length;
    }
    if (lawful_length(packet) != 0) {
      EXPECT_EQ(decode_length(kind, lawful_length(packet), 8), Errc::protocol);
    }
  }
}

TEST(WireHeader, FieldsLieWhereOtherVersionsWillLookForThem) {
  WireHeader header = lawful(kind_number(PacketKind::eager));
  header.length = 0x04030201;
  const Bytes bytes = encoded(header);
  const std::array<unsigned, kWireHeaderBytes> expected = {1,    1,    0x34, 0x12, 0x01, 0x02, 0x03, 0x04,
                                                           0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                                                           0xdd, 0xcc, 0xbb, 0xaa, 0x66, 0x77, 0x88, 0x99};
  for (std::size_t i = 0; i < kWireHeaderBytes; ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << "byte " << i;
  }
}

TEST(WireHeader, GarbageIsRefusedUnlessItKeepsEveryRule) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes bytes;
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(bytes.data() + i, &word, 8);
    }
    // Half of the rounds get past the version, and past most lengths, so that the later checks are met as well.
    if (round % 2 == 0) {
      bytes[0] = std::byte{kWireVersion};
      bytes[1] &= std::byte{0x0f};
      bytes[5] = bytes[6] = bytes[7] = std::byte{0};
      bytes[4] &= std::byte{0x1f};
    }
    WireHeader header;
    if (decode(bytes, kMaxPayload, header) != Errc::ok) continue;
    ++accepted;
    ASSERT_EQ(header.version, kWireVersion);
    ASSERT_GE(static_cast<int>(header.kind), 1);
    ASSERT_LE(static_cast<int>(header.kind), kLastKind);
    ASSERT_LE(header.length, kMaxPayload);
    if (header.kind == PacketKind::data) {
      ASSERT_GT(header.length, 0u);
    }
    if (header.kind > PacketKind::rts && header.kind != PacketKind::data) {
      ASSERT_EQ(header.length, lawful_length(header.kind));
    }
    ASSERT_EQ(std::memcmp(encoded(header).data(), bytes.data(), kWireHeaderBytes), 0);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weft::net
