// Goal: the ring delivers every packet whole, in order and unchanged, at every place of the ring and in every lap; no
// old byte is ever taken for a new packet; nothing a hostile producer or consumer writes leads out of bounds.
#include "weft/net/shm/shm_ring.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace weft::net {
namespace {

/// A ring in ordinary memory. Heap checkers see what lies beyond its end.
struct Ring {
  Ring() : lines(static_cast<std::byte*>(std::aligned_alloc(kLineBytes, kRingBytes))) {
    std::memset(lines, 0, kRingBytes);
    producer = RingProducer(lines, control);
    consumer = RingConsumer(lines, control);
  }
  ~Ring() { std::free(lines); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void write_word(std::size_t line, std::uint64_t word) { std::memcpy(lines + line * kLineBytes, &word, 8); }

  std::byte* lines;
  RingControl control;
  RingProducer producer;
  RingConsumer consumer;
};

WireHeader header_of(std::uint64_t tag, std::size_t length) {
  WireHeader header;
  header.tag = tag;
  header.length = static_cast<std::uint32_t>(length);
  header.context = static_cast<std::uint32_t>(tag * 7 + 1);
  header.aux = static_cast<std::uint32_t>(tag ^ 0x55555555);
  return header;
}

void fill(std::span<std::byte> bytes, std::uint64_t tag) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(tag * 31 + i * 7 + (i >> 8));
}

bool holds(std::span<const std::byte> bytes, std::uint64_t tag) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(tag * 31 + i * 7 + (i >> 8))) return false;
  }
  return true;
}

bool push(Ring& ring, std::uint64_t tag, std::size_t length) {
  std::vector<std::byte> payload(length);
  fill(payload, tag);
  return ring.producer.try_push(header_of(tag, length), payload);
}

::testing::AssertionResult take(Ring& ring, std::uint64_t tag, std::size_t length) {
  WireHeader header;
  std::span<const std::byte> payload;
  const RingTake taken = ring.consumer.take(header, payload);
  if (taken != RingTake::record) return ::testing::AssertionFailure() << "take gave " << int(taken);
  const WireHeader wanted = header_of(tag, length);
  if (header.tag != wanted.tag || header.length != length || header.context != wanted.context ||
      header.aux != wanted.aux || header.kind != wanted.kind) {
    return ::testing::AssertionFailure() << "header of tag " << header.tag << ", wanted " << tag;
  }
  if (payload.size() != length || !holds(payload, tag)) return ::testing::AssertionFailure() << "payload of " << tag;
  return ::testing::AssertionSuccess();
}

RingTake take_any(Ring& ring) {
  WireHeader header;
  std::span<const std::byte> payload;
  return ring.consumer.take(header, payload);
}

TEST(ShmRing, FortyBytesOfPayloadAreOneLineAndFortyOneAreTwo) {
  EXPECT_EQ(ring_lines_of(0), 1U);
  EXPECT_EQ(ring_lines_of(40), 1U);
  EXPECT_EQ(ring_lines_of(41), 2U);
  EXPECT_EQ(ring_lines_of(kRingMaxPayload), 129U);
}

TEST(ShmRing, EverySizeArrivesUnchangedOneAtATime) {
  Ring ring;
  EXPECT_FALSE(ring.consumer.ready());
  EXPECT_EQ(take_any(ring), RingTake::empty);
  for (std::size_t length = 0; length <= kRingMaxPayload; ++length) {
    ASSERT_TRUE(push(ring, length, length)) << length;
    ASSERT_TRUE(ring.consumer.ready());
    ASSERT_TRUE(take(ring, length, length)) << length;
    // Expect: the line behind the record is never taken for one.
    ASSERT_EQ(take_any(ring), RingTake::empty) << length;
    ring.consumer.release();
  }
}

TEST(ShmRing, AFullRingRefusesUntilTheConsumerReleases) {
  Ring ring;
  std::uint64_t pushed = 0;
  while (push(ring, pushed, 8))
    ++pushed;
  EXPECT_EQ(pushed, kRingLines - 1);
  for (std::uint64_t tag = 0; tag < pushed; ++tag)
    ASSERT_TRUE(take(ring, tag, 8));
  EXPECT_EQ(take_any(ring), RingTake::empty);
  // Expect: taken is not released.
  EXPECT_FALSE(push(ring, pushed, 8));
  EXPECT_EQ(ring.consumer.release(), pushed);
  EXPECT_TRUE(push(ring, pushed, 8));
  EXPECT_TRUE(take(ring, pushed, 8));
}

TEST(ShmRing, ARecordThatDoesNotFitBeforeTheEndSkipsToTheStart) {
  for (std::size_t before = kRingLines - 130; before < kRingLines; ++before) {
    Ring ring;
    for (std::size_t i = 0; i < before; ++i) {
      ASSERT_TRUE(push(ring, i, 0));
      ASSERT_TRUE(take(ring, i, 0));
      ring.consumer.release();
    }
    ASSERT_TRUE(push(ring, 7, kRingMaxPayload)) << before;
    ASSERT_TRUE(push(ring, 8, 1)) << before;
    ASSERT_TRUE(take(ring, 7, kRingMaxPayload)) << before;
    ASSERT_TRUE(take(ring, 8, 1)) << before;
    ASSERT_EQ(take_any(ring), RingTake::empty);
  }
}

TEST(ShmRing, AnEmptyRingTakesAnyPacketAtAnyPlace) {
  for (std::size_t before = 0; before < kRingLines; ++before) {
    Ring ring;
    for (std::size_t i = 0; i < before; ++i) {
      ASSERT_TRUE(push(ring, i, 0));
      ASSERT_TRUE(take(ring, i, 0));
      ring.consumer.release();
    }
    ASSERT_TRUE(ring.producer.has_room(kRingLinesForAny));
    ASSERT_TRUE(push(ring, 1, kRingMaxPayload)) << before;
    ASSERT_TRUE(take(ring, 1, kRingMaxPayload)) << before;
  }
}

// The payload is written so that each of its lines begins with the word that would announce a record at that place in
// the lap after, in all 65536 possible laps if need be.
TEST(ShmRing, AnOldPayloadThatLooksLikeTheNextLapsHeaderIsNotTaken) {
  Ring ring;
  std::vector<std::byte> payload(kRingMaxPayload);
  std::uint64_t position = 0;  // of the ring, kept by the test
  for (int round = 0; round < 2000; ++round) {
    const std::size_t lines = ring_lines_of(payload.size());
    const std::size_t to_end = kRingLines - position % kRingLines;
    const std::uint64_t start = lines > to_end ? position + to_end : position;
    for (std::size_t i = 1; i < lines; ++i) {
      const std::uint64_t forged = detail::ring_first_word(PacketKind::eager, start + i + kRingLines, 8);
      std::memcpy(payload.data() + i * kLineBytes - kWireHeaderBytes, &forged, 8);
    }
    ASSERT_TRUE(ring.producer.try_push(header_of(1, payload.size()), payload));
    ASSERT_EQ(take_any(ring), RingTake::record);
    // Expect: nothing behind it, although the bytes there may be a forged header for this very place.
    ASSERT_FALSE(ring.consumer.ready()) << round;
    ring.consumer.release();
    position = start + lines;
    for (int small = 0; small < 3 + round % 5; ++small) {
      ASSERT_TRUE(ring.producer.try_push(header_of(2, 0), {}));
      ASSERT_EQ(take_any(ring), RingTake::record);
      ASSERT_FALSE(ring.consumer.ready()) << round;
      ring.consumer.release();
      ++position;
    }
  }
}

TEST(ShmRing, LapNumbersMayWrapAround) {
  Ring ring;
  // 3 packets of 129 lines and a skip are a lap; 2^16 laps and some more.
  const std::vector<std::byte> payload(kRingMaxPayload);
  for (std::uint64_t i = 0; i < 3 * (65536 + 100); ++i) {
    ASSERT_TRUE(ring.producer.try_push(header_of(i, payload.size()), payload));
    WireHeader header;
    std::span<const std::byte> taken;
    ASSERT_EQ(ring.consumer.take(header, taken), RingTake::record);
    ASSERT_EQ(header.tag, i);
    ASSERT_FALSE(ring.consumer.ready()) << i;
    ring.consumer.release();
  }
}

TEST(ShmRing, CorruptHeadersAreRefused) {
  const auto word = [](std::uint8_t kind, std::uint32_t length) {
    return detail::ring_first_word(PacketKind{kind}, 0, length);
  };
  struct Case {
    const char* what;
    std::uint64_t word;
  };
  const Case cases[] = {
      {"a kind that does not exist", word(0, 0)},
      {"another kind that does not exist", word(10, 0)},
      {"more than the largest payload", word(1, kRingMaxPayload + 1)},
      {"the longest length there is", word(1, 0xffffffff)},
      {"a length that the kind does not have", word(2, 25)},
      {"a skip at the start of the ring", word(0xff, 0)},
  };
  for (const Case& c : cases) {
    Ring ring;
    ring.write_word(0, c.word);
    EXPECT_EQ(take_any(ring), RingTake::corrupt) << c.what;
  }
}

TEST(ShmRing, ARecordBeyondTheEndOfTheRingIsRefused) {
  Ring ring;
  for (std::size_t i = 0; i < kRingLines - 1; ++i) {
    ASSERT_TRUE(push(ring, i, 0));
    ASSERT_TRUE(take(ring, i, 0));
    ring.consumer.release();
  }
  ring.write_word(kRingLines - 1, detail::ring_first_word(PacketKind::eager, kRingLines - 1, 41));
  EXPECT_EQ(take_any(ring), RingTake::corrupt);
}

TEST(ShmRing, ASkipWithNothingBehindItIsRefused) {
  Ring ring;
  ASSERT_TRUE(push(ring, 0, 0));
  ASSERT_TRUE(take(ring, 0, 0));
  ring.write_word(1, detail::ring_first_word(detail::kRingSkip, 1, 0));
  EXPECT_EQ(take_any(ring), RingTake::corrupt);
}

TEST(ShmRing, AProducerThatOverrunsTheConsumerIsFoundOut) {
  Ring ring;
  for (std::size_t i = 0; i < kRingLines; ++i) {
    ring.write_word(i, detail::ring_first_word(PacketKind::eager, i, 0));
  }
  std::size_t taken = 0;
  while (take_any(ring) == RingTake::record)
    ++taken;
  EXPECT_EQ(taken, kRingLines - 1);
  EXPECT_EQ(take_any(ring), RingTake::corrupt);
}

TEST(ShmRing, RandomGarbageNeverLeadsOutOfTheRing) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    Ring ring;
    // Each line is fresh in lap 0 or not, with a kind and a length that are plausible half of the time.
    for (std::size_t i = 0; i < 40; ++i) {
      const std::uint64_t bits = random();
      std::uint64_t kind = 1 + (bits >> 8) % 9;
      if (bits % 4 == 0) kind = bits % 8 == 0 ? 0xff : bits >> 8 & 0xff;
      const std::uint32_t length = static_cast<std::uint32_t>(bits % 2 == 0 ? (bits >> 16) % 200 : bits >> 32);
      ring.write_word(i, detail::ring_first_word(PacketKind{static_cast<std::uint8_t>(kind)}, i, length));
    }
    WireHeader header;
    std::span<const std::byte> payload;
    while (ring.consumer.take(header, payload) == RingTake::record) {
      ASSERT_GE(payload.data(), ring.lines);
      ASSERT_LE(payload.data() + payload.size(), ring.lines + kRingBytes);
    }
  }
}

TEST(ShmRing, AConsumerThatWritesNonsenseBreaksTheRingAndNothingElse) {
  for (const std::uint64_t nonsense : {std::uint64_t{kRingLines}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    Ring ring;
    std::uint64_t pushed = 0;
    while (push(ring, pushed, 8))
      ++pushed;
    EXPECT_FALSE(ring.producer.broken());
    ring.control.released.store(nonsense);
    EXPECT_FALSE(push(ring, 0, 8));
    EXPECT_TRUE(ring.producer.broken());
  }
}

// Two threads, random sizes with many small ones, the consumer releasing in bursts of random length.
void stream_between_threads(std::uint64_t packets, std::uint64_t seed) {
  Ring ring;
  std::atomic<bool> failed{false};
  std::thread sender([&] {
    std::mt19937_64 random(seed);
    std::vector<std::byte> payload(kRingMaxPayload);
    for (std::uint64_t i = 0; i < packets && !failed; ++i) {
      const std::uint64_t bits = random();
      const std::size_t length = bits % 64 == 0 ? (bits >> 8) % (kRingMaxPayload + 1) : (bits >> 8) % 128;
      const std::span<std::byte> bytes(payload.data(), length);
      fill(bytes, i);
      while (!ring.producer.try_push(header_of(i, length), bytes)) {
        if (failed) return;
        std::this_thread::yield();
      }
    }
  });
  std::mt19937_64 random(seed + 1);
  std::uint64_t received = 0;
  while (received < packets) {
    std::uint64_t burst = 1 + random() % 16;
    WireHeader header;
    std::span<const std::byte> payload;
    RingTake taken = RingTake::empty;
    while (burst-- > 0 && (taken = ring.consumer.take(header, payload)) == RingTake::record) {
      if (header.tag != received || !holds(payload, received)) {
        failed = true;
        sender.join();
        FAIL() << "packet " << received << " arrived as " << header.tag << ", seed " << seed;
      }
      ++received;
    }
    if (taken == RingTake::corrupt) {
      failed = true;
      sender.join();
      FAIL() << "corrupt at packet " << received << ", seed " << seed;
    }
    if (ring.consumer.release() == 0) std::this_thread::yield();
  }
  sender.join();
  EXPECT_FALSE(ring.consumer.ready());
}

TEST(ShmRing, TwoMillionPacketsOfRandomSizesCrossBetweenTwoThreads) {
  const std::uint64_t seed = std::random_device{}();
  stream_between_threads(2'000'000, seed);
}

}  // namespace
}  // namespace weft::net
