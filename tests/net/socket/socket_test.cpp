// Goal: stream sockets for coroutines, over both io engines: data, ends, descriptors, cancellation, and errors that say
// who and why.
#include "weft/net/socket/socket.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "weft/net/socket/socket_address.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

using namespace std::chrono_literals;

std::size_t open_descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(directory) != nullptr)
    ++count;
  ::closedir(directory);
  return count;
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = std::byte((i * 31 + i / 251 + seed) & 0xFF);
  return bytes;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct SocketPair {
  Socket a;
  Socket b;
};

SocketPair make_unix_pair(Reactor& reactor) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  SocketPair pair;
  pair.a = Socket(reactor, UniqueFd(fds[0]), "side b");
  pair.b = Socket(reactor, UniqueFd(fds[1]), "side a");
  return pair;
}

class SocketTest : public testing::TestWithParam<IoEngineKind> {
 protected:
  void SetUp() override {
    ReactorOptions options;
    options.io = GetParam();
    options.idle.mode = IdleMode::block;  // no spinning: every wake-up must come through the engine
    before_ = open_descriptors();
    try {
      reactor_ = std::make_unique<Reactor>(options);
    } catch (const Error& error) {
      if (GetParam() == IoEngineKind::io_uring && error.code() == Errc::unsupported) GTEST_SKIP() << error.what();
      throw;
    }
  }
  void TearDown() override {
    reactor_.reset();
    // Expect: no test leaves a descriptor behind, whichever way its tasks ended.
    EXPECT_EQ(open_descriptors(), before_);
  }

  Reactor& reactor() { return *reactor_; }
  Instant in(Duration wait) { return saturating_add(reactor_->clock().now(), wait); }

  std::unique_ptr<Reactor> reactor_;
  std::size_t before_ = 0;
};

Task<void> echo(Nursery& /*nursery*/, Acceptor* acceptor) {
  Socket socket = co_await acceptor->accept();
  std::array<std::byte, 1000> buffer;
  for (;;) {
    const std::size_t got = co_await socket.read_some(buffer);
    if (got == 0) co_return;
    co_await socket.write_all(std::span(buffer).first(got));
  }
}

Task<void> write_then_close(Socket* socket, std::span<const std::byte> bytes) {
  co_await socket->write_all(bytes);
  socket->close();
}

Task<void> echo_body(Nursery& nursery, Reactor* reactor, const char* listen_host, const char* connect_host) {
  Acceptor acceptor(*reactor, listen_tcp(listen_host, 0));
  const std::uint16_t port = local_port(acceptor.fd());
  nursery.start(echo(nursery, &acceptor));
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  Socket socket = co_await connect_tcp(*reactor, connect_host, port, deadline);
  EXPECT_TRUE(socket.open());
  EXPECT_NE(socket.peer().find(std::to_string(port)), std::string::npos) << socket.peer();
  for (const std::size_t size : {std::size_t(1), std::size_t(7), std::size_t(1000), std::size_t(100000)}) {
    const std::vector<std::byte> sent = pattern(size, unsigned(size));
    std::vector<std::byte> received(size);
    co_await socket.write_all(sent);
    co_await socket.read_exact(received);
    EXPECT_EQ(sent, received);
  }
}

TEST_P(SocketTest, EchoesOverEveryLoopbackName) {
  struct Case {
    const char* listen_host;
    const char* connect_host;
  };
  for (const Case& names : {Case{"127.0.0.1", "127.0.0.1"}, Case{"::1", "::1"}, Case{"localhost", "localhost"},
                            Case{"", "127.0.0.1"}, Case{"", "localhost"}}) {
    if (std::string_view(names.listen_host) == "::1") {
      UniqueFd probe(::socket(AF_INET6, SOCK_STREAM, 0));
      if (!probe || ::access("/proc/net/if_inet6", R_OK) != 0) continue;
    }
    reactor().run(with_nursery(echo_body, reactor_.get(), names.listen_host, names.connect_host));
  }
}

Task<void> big_transfer_body(Nursery& nursery, Reactor* reactor) {
  SocketPair pair = make_unix_pair(*reactor);
  const std::vector<std::byte> sent = pattern(8 << 20, 3);
  nursery.start(write_then_close(&pair.a, sent));
  std::vector<std::byte> received;
  std::array<std::byte, 4097> buffer;
  for (;;) {
    const std::size_t got = co_await pair.b.read_some(buffer);
    if (got == 0) break;
    received.insert(received.end(), buffer.begin(), buffer.begin() + std::ptrdiff_t(got));
  }
  EXPECT_TRUE(sent == received);
}

TEST_P(SocketTest, AWriterWaitsForASlowReaderAndNothingIsLost) {
  reactor().run(with_nursery(big_transfer_body, reactor_.get()));
}

Task<void> ends_body(Reactor* reactor) {
  std::array<std::byte, 16> buffer{};
  SocketPair at_start = make_unix_pair(*reactor);
  at_start.a.close();
  Result<void> result = co_await as_result(at_start.b.read_exact(buffer));
  EXPECT_EQ(result.code(), Errc::peer_closed);
  const std::size_t got = co_await at_start.b.read_some(buffer);
  EXPECT_EQ(got, 0U);

  SocketPair in_the_middle = make_unix_pair(*reactor);
  co_await in_the_middle.a.write_all(as_bytes("abc"));
  in_the_middle.a.close();
  result = co_await as_result(in_the_middle.b.read_exact(buffer));
  EXPECT_EQ(result.code(), Errc::peer_lost);
  EXPECT_NE(std::string(result.error().what()).find("3 of 16"), std::string::npos) << result.error().what();
  EXPECT_NE(std::string(result.error().what()).find("side a"), std::string::npos) << result.error().what();

  // Expect: writing to nobody is an error, not a SIGPIPE.
  result = co_await as_result(in_the_middle.b.write_all(as_bytes("x")));
  EXPECT_EQ(result.code(), Errc::peer_lost);

  Socket empty;
  result = co_await as_result(empty.read_exact(buffer));
  EXPECT_EQ(result.code(), Errc::closed);
}

TEST_P(SocketTest, TheEndOfTheStreamIsToldApartFromALoss) {
  reactor().run(ends_body(reactor_.get()));
}

Task<void> reset_body(Reactor* reactor) {
  Acceptor acceptor(*reactor, listen_tcp("127.0.0.1", 0));
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  Socket client = co_await connect_tcp(*reactor, "127.0.0.1", local_port(acceptor.fd()), deadline);
  Socket server = co_await acceptor.accept();
  const linger hard{.l_onoff = 1, .l_linger = 0};
  EXPECT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
  client.close();  // sends RST
  std::array<std::byte, 4> buffer{};
  const Result<void> result = co_await as_result(server.read_exact(buffer));
  EXPECT_EQ(result.code(), Errc::peer_lost);
  EXPECT_EQ(result.error().native(), ECONNRESET);
  EXPECT_NE(std::string(result.error().what()).find("127.0.0.1:"), std::string::npos) << result.error().what();
}

TEST_P(SocketTest, AResetIsALostPeer) {
  reactor().run(reset_body(reactor_.get()));
}

Task<void> descriptors_body(Reactor* reactor) {
  SocketPair pair = make_unix_pair(*reactor);
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  UniqueFd pipe_out(fds[0]);
  UniqueFd pipe_in(fds[1]);
  std::array<int, 2> sent{pipe_out.get(), pipe_in.get()};
  co_await pair.a.write_with_fds(as_bytes("hello"), sent);
  std::array<std::byte, 5> buffer{};
  std::vector<UniqueFd> received;
  co_await pair.b.read_with_fds(buffer, received, 2);
  EXPECT_EQ(std::memcmp(buffer.data(), "hello", 5), 0);
  EXPECT_EQ(received.size(), 2U);
  // Expect: duplicates of the pipe, closed on exec.
  EXPECT_NE(received[0].get(), pipe_out.get());
  EXPECT_TRUE(::fcntl(received[0].get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(::write(received[1].get(), "y", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe_out.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'y');

  // Expect: more than asked for is refused, and none of them stays open.
  const std::size_t before = open_descriptors();
  co_await pair.a.write_with_fds(as_bytes("hello"), sent);
  const Result<void> result = co_await as_result(pair.b.read_with_fds(buffer, received, 1));
  EXPECT_EQ(result.code(), Errc::protocol);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(received.size(), 2U);
}

TEST_P(SocketTest, PassesDescriptors) {
  reactor().run(descriptors_body(reactor_.get()));
}

Task<void> cancel_read_body(Reactor* reactor) {
  SocketPair pair = make_unix_pair(*reactor);
  std::array<std::byte, 4> buffer{};
  Result<void> result = co_await as_result(with_deadline(Duration(2ms), pair.b.read_exact(buffer)));
  EXPECT_EQ(result.code(), Errc::timed_out);
  // Expect: the socket works as if nothing had happened.
  co_await pair.a.write_all(as_bytes("abcd"));
  co_await pair.b.read_exact(buffer);
  EXPECT_EQ(std::memcmp(buffer.data(), "abcd", 4), 0);

  // A cancel before the wait starts is not lost, even where the data is there.
  co_await pair.a.write_all(as_bytes("efgh"));
  co_await sleep_for(Duration::zero());
  result = co_await as_result(with_deadline(Duration(1ms), pair.a.read_exact(buffer)));
  EXPECT_EQ(result.code(), Errc::timed_out);
  co_await pair.b.read_exact(buffer);

  const std::vector<std::byte> much(4 << 20);
  result = co_await as_result(with_deadline(Duration(2ms), pair.a.write_all(much)));
  EXPECT_EQ(result.code(), Errc::timed_out);
}

TEST_P(SocketTest, ACancelledReadOrWriteEndsAndHarmsNobody) {
  reactor().run(cancel_read_body(reactor_.get()));
}

Task<void> read_until_closed(Socket* socket, Errc* code) {
  std::array<std::byte, 4> buffer{};
  const Result<void> result = co_await as_result(socket->read_exact(buffer));
  *code = result.code();
}

Task<void> close_body(Nursery& nursery, Reactor* reactor) {
  SocketPair pair = make_unix_pair(*reactor);
  Errc code = Errc::ok;
  nursery.start(read_until_closed(&pair.b, &code));
  co_await sleep_for(Duration::zero());
  Socket moved = std::move(pair.b);  // a task in flight does not mind
  co_await sleep_for(Duration::zero());
  EXPECT_EQ(code, Errc::ok);
  moved = Socket();  // closes
  while (code == Errc::ok)
    co_await sleep_for(Duration::zero());
  EXPECT_EQ(code, Errc::closed);
}

TEST_P(SocketTest, CloseEndsWhoeverWaits) {
  reactor().run(with_nursery(close_body, reactor_.get()));
}

Task<void> accept_cancel_body(Reactor* reactor) {
  Acceptor acceptor(*reactor, listen_tcp("127.0.0.1", 0));
  const Result<Socket> result = co_await as_result(with_deadline(Duration(2ms), acceptor.accept()));
  EXPECT_EQ(result.code(), Errc::timed_out);
}

TEST_P(SocketTest, ACancelledAcceptEnds) {
  reactor().run(accept_cancel_body(reactor_.get()));
}

// A port of this machine that nobody listens on, for a moment at least.
std::uint16_t free_port() {
  const UniqueFd fd = listen_tcp("127.0.0.1", 0);
  return local_port(fd.get());
}

Task<void> refused_body(Reactor* reactor) {
  const std::uint16_t port = free_port();
  const Instant begin = reactor->clock().now();
  const Instant deadline = saturating_add(begin, 60ms);
  const Result<Socket> result = co_await as_result(connect_tcp(*reactor, "localhost", port, deadline));
  EXPECT_EQ(result.code(), Errc::unreachable);
  // Expect: it tried until the deadline, and tells what every address said.
  EXPECT_GE(reactor->clock().now(), deadline);
  const std::string text = result.error().what();
  EXPECT_NE(text.find("localhost:" + std::to_string(port)), std::string::npos) << text;
  EXPECT_NE(text.find("127.0.0.1:" + std::to_string(port) + ": Connection refused"), std::string::npos) << text;
  EXPECT_NE(text.find("attempts"), std::string::npos) << text;
}

TEST_P(SocketTest, ConnectToAClosedPortTriesUntilTheDeadlineAndListsAddresses) {
  reactor().run(refused_body(reactor_.get()));
}

Task<void> listen_later(Reactor* reactor, std::uint16_t port) {
  co_await sleep_for(Duration(30ms));
  Acceptor acceptor(*reactor, listen_tcp("127.0.0.1", port));
  Socket socket = co_await acceptor.accept();
  co_await socket.write_all(as_bytes("!"));
}

Task<void> late_listener_body(Nursery& nursery, Reactor* reactor) {
  const std::uint16_t port = free_port();
  nursery.start(listen_later(reactor, port));
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  Socket socket = co_await connect_tcp(*reactor, "127.0.0.1", port, deadline);
  std::array<std::byte, 1> byte{};
  co_await socket.read_exact(byte);
  EXPECT_EQ(byte[0], std::byte('!'));
}

TEST_P(SocketTest, ConnectSucceedsWhenTheListenerComesLate) {
  reactor().run(with_nursery(late_listener_body, reactor_.get()));
}

Task<void> cancel_connect_body(Reactor* reactor) {
  // A listener with a full queue lets a connect hang: nobody accepts.
  UniqueFd listener = listen_tcp("127.0.0.1", 0);
  EXPECT_EQ(::listen(listener.get(), 0), 0);
  const std::uint16_t port = local_port(listener.get());
  std::vector<Socket> filling;
  Errc code = Errc::ok;
  for (int i = 0; i < 8 && code == Errc::ok; ++i) {
    Result<Socket> result =
        co_await as_result(with_deadline(Duration(20ms), connect_tcp(*reactor, "127.0.0.1", port, kNever)));
    code = result.code();
    if (result) filling.push_back(std::move(*result));
  }
  EXPECT_EQ(code, Errc::timed_out);
  // The same with the connect's own deadline: it names the silent address.
  const Instant deadline = saturating_add(reactor->clock().now(), 20ms);
  const Result<Socket> result = co_await as_result(connect_tcp(*reactor, "127.0.0.1", port, deadline));
  EXPECT_EQ(result.code(), Errc::unreachable);
  EXPECT_NE(std::string(result.error().what()).find("no answer"), std::string::npos) << result.error().what();
}

TEST_P(SocketTest, ACancelledConnectEnds) {
  reactor().run(cancel_connect_body(reactor_.get()));
}

Task<void> unresolvable_body(Reactor* reactor) {
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  const Result<Socket> result = co_await as_result(connect_tcp(*reactor, "no-such-host.invalid", 4242, deadline));
  EXPECT_EQ(result.code(), Errc::unreachable);
  EXPECT_NE(std::string(result.error().what()).find("no-such-host.invalid"), std::string::npos)
      << result.error().what();
}

TEST_P(SocketTest, AnUnresolvableNameIsNamed) {
  reactor().run(unresolvable_body(reactor_.get()));
}

Task<void> exhaustion_body(Nursery& nursery, Reactor* reactor, Errc* code) {
  Acceptor acceptor(*reactor, listen_tcp("127.0.0.1", 0));
  const Instant deadline = saturating_add(reactor->clock().now(), 20s);
  Socket client = co_await connect_tcp(*reactor, "127.0.0.1", local_port(acceptor.fd()), deadline);
  // Goal: no number is free for the accepted connection, until one is closed.
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  std::vector<UniqueFd> fill;
  for (UniqueFd fd(::dup(0)); fd && fd.get() < 256; fd = UniqueFd(::dup(0)))
    fill.push_back(std::move(fd));
  tight.rlim_cur = 256;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  Result<Socket> result = co_await as_result(with_deadline(Duration(120ms), acceptor.accept()));
  EXPECT_EQ(result.code(), Errc::timed_out) << "it waits, it does not fail";
  fill.pop_back();
  result = co_await as_result(acceptor.accept());
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  *code = result.code();
  (void)nursery;
}

TEST_P(SocketTest, AcceptWithoutDescriptorsPausesAndGoesOn) {
  Errc code = Errc::io;
  reactor().run(with_nursery(exhaustion_body, reactor_.get(), &code));
  EXPECT_EQ(code, Errc::ok);
}

Task<void> unix_body(Reactor* reactor) {
  const std::string name = "weft-socket-test-" + std::to_string(::getpid());
  Acceptor acceptor(*reactor, listen_unix(name));
  Socket client = co_await connect_unix(*reactor, name);
  Socket server = co_await acceptor.accept();
  EXPECT_EQ(client.peer(), "@" + name);
  EXPECT_EQ(server.peer(), "local process " + std::to_string(::getpid()));
  co_await client.write_all(as_bytes("ping"));
  std::array<std::byte, 4> buffer{};
  co_await server.read_exact(buffer);
  EXPECT_EQ(std::memcmp(buffer.data(), "ping", 4), 0);

  const Result<Socket> nobody = co_await as_result(connect_unix(*reactor, name + "-nobody"));
  EXPECT_EQ(nobody.code(), Errc::unreachable);
  EXPECT_NE(std::string(nobody.error().what()).find(name + "-nobody"), std::string::npos) << nobody.error().what();
}

TEST_P(SocketTest, ConnectsByAnAbstractName) {
  reactor().run(unix_body(reactor_.get()));
}

Task<void> released_body(Reactor* reactor, UniqueFd* out) {
  SocketPair pair = make_unix_pair(*reactor);
  *out = pair.a.release();
  EXPECT_FALSE(pair.a.open());
  co_return;
}

TEST_P(SocketTest, AReleasedDescriptorStaysOpen) {
  UniqueFd fd;
  reactor().run(released_body(reactor_.get(), &fd));
  EXPECT_GE(::fcntl(fd.get(), F_GETFD), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, SocketTest, testing::Values(IoEngineKind::io_uring, IoEngineKind::epoll),
                         [](const auto& test) { return test.param == IoEngineKind::epoll ? "Epoll" : "IoUring"; });

TEST(Listen, ABusyPortIsAddressInUseAndNamed) {
  const UniqueFd first = listen_tcp("127.0.0.1", 0);
  const std::uint16_t port = local_port(first.get());
  for (const char* host : {"127.0.0.1", "localhost", ""}) {
    try {
      const UniqueFd second = listen_tcp(host, port);
      // An IPv6 listener of its own does not collide with one that has IPv4 only.
      EXPECT_STREQ(host, "localhost");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::address_in_use) << error.what();
      EXPECT_NE(std::string(error.what()).find(std::to_string(port)), std::string::npos) << error.what();
    }
  }
}

TEST(Listen, AForeignAddressIsUnreachable) {
  try {
    const UniqueFd fd = listen_tcp("192.0.2.1", 0);  // TEST-NET-1 belongs to nobody
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unreachable) << error.what();
  }
}

TEST(Listen, ATooLongLocalNameIsRefused) {
  EXPECT_NO_THROW((void)listen_unix(std::string(107, 'x')));
  EXPECT_THROW((void)listen_unix(std::string(108, 'x')), Error);
}

TEST(SocketAddress, TextsAreWhatUsersType) {
  EXPECT_EQ(to_text(resolve_tcp("127.0.0.1", 80, false).front()), "127.0.0.1:80");
  EXPECT_EQ(to_text(resolve_tcp("::1", 80, false).front()), "[::1]:80");
  EXPECT_EQ(to_text(abstract_unix_address("name")), "@name");
  EXPECT_EQ(host_port_text("::1", 80), "[::1]:80");
  EXPECT_EQ(host_port_text("host", 80), "host:80");
}

}  // namespace
}  // namespace weft::net
