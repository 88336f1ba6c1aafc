#include "weft/net/launch/output_sink.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "weft/net/launch/rank_process.hpp"

namespace weft::net::launch {
namespace {

constexpr std::size_t kMoreThanAPipeHolds = std::size_t{4} << 20;

std::string read_available(int fd) {
  std::string text;
  char block[65536];
  while (true) {
    const ssize_t count = ::recv(fd, block, sizeof block, MSG_DONTWAIT);
    const ssize_t got = count < 0 && errno == ENOTSOCK ? ::read(fd, block, sizeof block) : count;
    if (got <= 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

void make_nonblocking(int fd) {
  ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

// Fills what `write_fd` leads to, then empties it again through `read_fd`: everything must arrive, once, in order.
void expect_blocks_and_resumes(int write_fd, int read_fd) {
  OutputSink sink(write_fd);
  std::string sent;
  for (std::size_t i = 0; sent.size() < kMoreThanAPipeHolds; ++i)
    sent += std::to_string(i) + "\n";
  sink.buffer() += sent;
  EXPECT_EQ(sink.flush(), OutputSink::State::blocked);
  EXPECT_GT(sink.pending_bytes(), 0U);

  std::string received;
  for (int turn = 0; sink.pending_bytes() != 0 && turn < 100'000; ++turn) {
    received += read_available(read_fd);
    sink.flush();
  }
  received += read_available(read_fd);
  EXPECT_TRUE(received == sent);
  EXPECT_EQ(sink.flush(), OutputSink::State::empty);
}

TEST(OutputSink, AFullPipeDoesNotBlockTheLauncher) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  make_nonblocking(pipe->read_end.get());
  expect_blocks_and_resumes(pipe->write_end.get(), pipe->read_end.get());
  EXPECT_EQ(::fcntl(pipe->write_end.get(), F_GETFL) & O_NONBLOCK, 0) << "the caller's descriptor keeps its mode";
}

TEST(OutputSink, AFullSocketDoesNotBlockTheLauncher) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor mine(ends[0]);
  const Descriptor other(ends[1]);
  expect_blocks_and_resumes(mine.get(), other.get());
}

TEST(OutputSink, AClosedReaderBreaksItAndLaterOutputIsDropped) {
  std::signal(SIGPIPE, SIG_IGN);
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  OutputSink sink(pipe->write_end.get());
  pipe->read_end.reset();
  sink.buffer() += "text";
  EXPECT_EQ(sink.flush(), OutputSink::State::broken);
  EXPECT_EQ(sink.error(), EPIPE);
  sink.buffer() += "more";
  EXPECT_EQ(sink.flush(), OutputSink::State::broken);
  EXPECT_EQ(sink.pending_bytes(), 0U);
}

TEST(OutputSink, AFullDiskIsReported) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "no /dev/full here";
  OutputSink sink(full.get());
  sink.buffer() += "text";
  EXPECT_EQ(sink.flush(), OutputSink::State::broken);
  EXPECT_EQ(sink.error(), ENOSPC);
}

TEST(OutputSink, AFileGetsEverything) {
  char path[] = "/tmp/weft_output_sink_XXXXXX";
  const Descriptor file(::mkstemp(path));
  ASSERT_TRUE(file);
  ::unlink(path);
  OutputSink sink(file.get());
  sink.buffer().assign(kMoreThanAPipeHolds, 'x');
  EXPECT_EQ(sink.flush(), OutputSink::State::empty);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), static_cast<off_t>(kMoreThanAPipeHolds));
}

}  // namespace
}  // namespace weft::net::launch
