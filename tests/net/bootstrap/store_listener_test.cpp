#include "weft/net/bootstrap/store_listener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "weft/net/socket/socket.hpp"

namespace weft::net {
namespace {

void expect_refused(int fd, std::string_view part) {
  try {
    const UniqueFd adopted = adopt_store_listener(fd);
    FAIL() << "adopted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_environment);
    EXPECT_EQ(error.operation(), "WEFT_STORE_FD");
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(StoreListener, AdoptsAListeningTcpSocketAndKeepsItToItself) {
  UniqueFd listener = listen_tcp("127.0.0.1", 0);
  const int fd = listener.get();
  ASSERT_EQ(::fcntl(fd, F_SETFD, 0), 0);
  const UniqueFd adopted = adopt_store_listener(listener.release());
  EXPECT_EQ(adopted.get(), fd);
  EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(StoreListener, RefusesWhatIsNoListeningTcpSocketAndLeavesItOpen) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const UniqueFd read_end(pipe[0]);
  const UniqueFd write_end(pipe[1]);
  expect_refused(read_end.get(), "not a socket");
  const UniqueFd plain(::socket(AF_INET, SOCK_STREAM, 0));
  expect_refused(plain.get(), "not listening");
  const UniqueFd datagram(::socket(AF_INET, SOCK_DGRAM, 0));
  expect_refused(datagram.get(), "not a TCP socket");
  const UniqueFd local(::socket(AF_UNIX, SOCK_STREAM, 0));
  expect_refused(local.get(), "not a TCP socket");
  EXPECT_GE(::fcntl(plain.get(), F_GETFD), 0);
}

TEST(StoreListener, RefusesADescriptorThatIsNotOpen) {
  const int closed = ::dup(0);
  ::close(closed);
  expect_refused(closed, "not open");
}

TEST(StoreListener, ABusyPortIsNamed) {
  const UniqueFd taken = listen_tcp("127.0.0.1", 0);
  JobEnvironment job;
  job.master_port = local_port(taken.get());
  try {
    const UniqueFd second = open_store_listener(job);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::address_in_use);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(job.master_port)), std::string::npos) << error.what();
  }
}

TEST(StoreListener, ANameThatDoesNotResolveIsNamed) {
  JobEnvironment job;
  job.master_address = "no-such-host.invalid";
  job.master_port = 29500;
  try {
    const UniqueFd listener = open_store_listener(job);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unreachable);
    EXPECT_NE(std::string(error.what()).find("no-such-host.invalid"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::net
