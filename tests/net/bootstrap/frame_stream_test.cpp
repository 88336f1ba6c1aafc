#include "weft/net/bootstrap/frame_stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "weft/runtime/as_result.hpp"
#include "weft/runtime/nursery.hpp"

namespace weft::net::store {
namespace {

struct Pair {
  Socket near;
  Socket far;
};

Pair connected(Reactor& reactor) {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  Pair pair;
  pair.near = Socket(reactor, UniqueFd(fds[0]), "far");
  pair.far = Socket(reactor, UniqueFd(fds[1]), "near");
  return pair;
}

OutFrame value_frame(std::uint32_t id, std::shared_ptr<const std::vector<std::byte>> value) {
  OutFrame frame;
  frame.head = encode_value_head(id, value->size());
  frame.tail = std::move(value);
  return frame;
}

struct Stream {
  Pair pair;
  std::unique_ptr<FrameWriter> writer;
  std::shared_ptr<const std::vector<std::byte>> value;
};

// Goal: many large frames pass a full socket in order and whole.
Task<void> pass_large_frames(Nursery& nursery, Stream* stream) {
  constexpr std::uint32_t kFrames = 20;
  FrameWriter& writer = *stream->writer;
  nursery.start(writer.run());
  for (std::uint32_t id = 0; id < kFrames; ++id) {
    OutFrame frame = value_frame(id, stream->value);
    writer.push(std::move(frame));
  }
  EXPECT_GT(writer.queued_bytes(), 10 * stream->value->size());
  for (std::uint32_t id = 0; id < kFrames; ++id) {
    std::optional<std::vector<std::byte>> bytes = co_await read_frame(stream->pair.far, kMaxFrameBytes);
    if (!bytes.has_value()) {
      ADD_FAILURE() << "the stream ended at frame " << id;
      co_return;
    }
    const std::optional<Frame> frame = decode(*bytes);
    if (!frame.has_value() || !std::holds_alternative<Value>(*frame)) {
      ADD_FAILURE() << "frame " << id << " is broken";
      co_return;
    }
    const Value& value = std::get<Value>(*frame);
    EXPECT_EQ(value.id, id);
    EXPECT_TRUE(std::equal(value.value.begin(), value.value.end(), stream->value->begin(), stream->value->end()));
  }
  co_await writer.below(1);
  EXPECT_EQ(writer.queued_bytes(), 0u);
  writer.finish();
}

TEST(FrameStream, LargeFramesPassAFullSocketInOrder) {
  Reactor reactor;
  Stream stream;
  stream.pair = connected(reactor);
  stream.writer = std::make_unique<FrameWriter>(stream.pair.near);
  auto value = std::make_shared<std::vector<std::byte>>(1'000'003);
  for (std::size_t i = 0; i < value->size(); ++i)
    (*value)[i] = static_cast<std::byte>(i * 7);
  stream.value = std::move(value);
  reactor.run(with_nursery(&pass_large_frames, &stream));
  EXPECT_FALSE(stream.writer->broken());
}

TEST(FrameStream, ASmallFrameIsOutBeforeAnythingElseRuns) {
  Reactor reactor;
  Stream stream;
  stream.pair = connected(reactor);
  FrameWriter writer(stream.pair.near);
  OutFrame frame;
  frame.head = encode(RankLost{3, "cause"});
  const std::size_t size = frame.size();
  writer.push(std::move(frame));
  std::array<std::byte, 100> buffer;
  EXPECT_EQ(::recv(stream.pair.far.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT), static_cast<ssize_t>(size));
  EXPECT_EQ(writer.queued_bytes(), 0u);
}

Task<void> lose_the_reader(Nursery& nursery, Stream* stream) {
  FrameWriter& writer = *stream->writer;
  nursery.start(writer.run());
  for (std::uint32_t id = 0; id < 5; ++id) {
    OutFrame frame = value_frame(id, stream->value);
    writer.push(std::move(frame));
  }
  stream->pair.far.close();
  // Expect: whoever waits for room is let go, and the reader of this end learns.
  co_await writer.below(1);
  EXPECT_TRUE(writer.broken());
  EXPECT_FALSE(stream->pair.near.open());
}

TEST(FrameStream, ABrokenConnectionEndsTheWriterAndClosesTheSocket) {
  Reactor reactor;
  Stream stream;
  stream.pair = connected(reactor);
  stream.writer = std::make_unique<FrameWriter>(stream.pair.near);
  stream.value = std::make_shared<const std::vector<std::byte>>(1'000'000);
  reactor.run(with_nursery(&lose_the_reader, &stream));
}

Errc read_after(std::span<const std::byte> bytes, std::size_t limit, bool* ended) {
  Reactor reactor;
  Pair pair = connected(reactor);
  EXPECT_EQ(::send(pair.far.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(::shutdown(pair.far.fd(), SHUT_WR), 0);
  const auto frame = reactor.run(as_result(read_frame(pair.near, limit)));
  *ended = frame && !frame.value().has_value();
  return frame.code();
}

TEST(FrameStream, TheEndOfTheStreamIsToldFromABrokenFrame) {
  bool ended = false;
  EXPECT_EQ(read_after({}, 100, &ended), Errc::ok);
  EXPECT_TRUE(ended);
  const std::vector<std::byte> frame = encode(Join{1, 2});
  EXPECT_EQ(read_after(frame, 100, &ended), Errc::ok);
  EXPECT_FALSE(ended);
  for (std::size_t length = 1; length < frame.size(); ++length) {
    EXPECT_EQ(read_after(std::span(frame).first(length), 100, &ended), Errc::peer_lost) << length;
  }
  EXPECT_EQ(read_after(frame, frame.size() - kLengthBytes - 1, &ended), Errc::protocol);
}

}  // namespace
}  // namespace weft::net::store
