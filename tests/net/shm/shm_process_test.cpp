// Goal: between two processes the transport does what it does between two threads, and the death of one, however
// sudden, loses nothing that it had published and holds nobody up.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "net/shm/shm_rank.hpp"
#include "weft/net/shm/shm_transport.hpp"

namespace weft::net {
namespace {

using namespace test;

/// A word that parent and child see.
class SharedWord {
 public:
  SharedWord()
      : word_(static_cast<std::atomic<std::uint64_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedWord() { ::munmap(word_, 4096); }
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  std::atomic<std::uint64_t>& operator*() const { return *word_; }

 private:
  std::atomic<std::uint64_t>* word_;
};

Task<void> connect_and_run(ShmRank* self, std::string address, Body* body) {
  Task<void> connecting = connect_to(self, 0, std::move(address));
  co_await std::move(connecting);
  Task<void> task = (*body)(*self);
  co_await std::move(task);
}

Task<void> wait_and_run(ShmRank* self, Body* body) {
  co_await self->sink.connected.wait();
  Task<void> task = (*body)(*self);
  co_await std::move(task);
}

/// Rank 0 here, rank 1 in a child process, which ends with 0 when nothing failed there. Returns its wait status.
class ProcessPair {
 public:
  explicit ProcessPair(IdleMode idle, const ShmOptions& options = ShmOptions()) : idle_(idle), options_(options) {}

  int run(Body parent, Body child) {
    int address_pipe[2];
    if (::pipe(address_pipe) != 0) return -1;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(address_pipe[1]);
      ::_exit(run_child(address_pipe[0], child));
    }
    ::close(address_pipe[0]);
    {
      ShmRank rank(0, 2, idle_, options_);
      const std::string address = rank.transport.address();
      EXPECT_EQ(::write(address_pipe[1], address.data(), address.size()), static_cast<ssize_t>(address.size()));
      ::close(address_pipe[1]);
      rank.run([&](ShmRank& self) { return wait_and_run(&self, &parent); });
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  /// The child, while the parent's body runs.
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  int run_child(int address_fd, Body& body) {
    try {
      std::string address;
      char bytes[512];
      for (ssize_t got = 0; (got = ::read(address_fd, bytes, sizeof bytes)) > 0;) {
        address.append(bytes, static_cast<std::size_t>(got));
      }
      ::close(address_fd);
      ShmRank rank(1, 2, idle_, options_);
      rank.run([&](ShmRank& self) { return connect_and_run(&self, address, &body); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      return 1;
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
  }

  IdleMode idle_;
  ShmOptions options_;
  pid_t pid_ = -1;
};

bool ended_well(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Sends packets of random sizes and checks the peer's.
Task<void> exchange(ShmRank* self, std::uint64_t count) {
  const std::int32_t peer = 1 - self->rank();
  std::uint64_t received = 0;
  bool wrong = false;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    wrong |= packet.header.tag != received || !holds(packet.payload, received);
    ++received;
  };
  std::mt19937_64 random(static_cast<std::uint64_t>(self->rank()) + 1);
  std::vector<std::byte> payload(kRingMaxPayload);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const std::size_t length = bits % 32 == 0 ? (bits >> 8) % (kRingMaxPayload + 1) : (bits >> 8) % 100;
    const std::span<std::byte> bytes(payload.data(), length);
    fill(bytes, i);
    WireHeader header;
    header.tag = i;
    co_await send(self, peer, header, bytes);
  }
  co_await part(self, peer);
  EXPECT_EQ(received, count);
  EXPECT_FALSE(wrong);
}

TEST(ShmProcesses, StreamsCrossInBothDirections) {
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    const Body body = [](ShmRank& self) { return exchange(&self, 100'000); };
    EXPECT_TRUE(ended_well(ProcessPair(idle).run(body, body)));
  }
}

/// Whether this machine lets a process read another one's memory at all.
bool reads_are_permitted(pid_t child, const void* address) {
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{const_cast<void*>(address), 1};
  return ::process_vm_readv(child, &local, 1, &remote, 1, 0) == 1;
}

Task<void> exchange_large(ShmRank* self, std::size_t bytes, bool permitted) {
  const std::int32_t peer = 1 - self->rank();
  std::vector<std::byte> mine(bytes);
  std::vector<std::byte> theirs(bytes);
  fill(mine, static_cast<std::uint64_t>(self->rank()));
  EXPECT_EQ(self->transport.can_get(peer), permitted);
  const bool by_get = self->transport.can_get(peer);
  GetRequest get;
  get.peer = peer;
  get.local = theirs;
  std::size_t received = 0;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    if (packet.header.kind == PacketKind::data) {
      std::memcpy(theirs.data() + packet.header.tag, packet.payload.data(), packet.payload.size());
      received += packet.payload.size();
    } else {
      get.remote_address = packet.header.tag;
      self->transport.get(get);
    }
  };
  BulkSend bulk;
  bulk.peer = peer;
  bulk.payload = mine;
  if (by_get) {
    WireHeader header;
    header.tag = reinterpret_cast<std::uintptr_t>(mine.data());
    co_await send(self, peer, header, {});
  } else {
    self->transport.send_bulk(bulk);
  }
  while (self->sink.gets.size() + self->sink.bulks.size() < 1) {
    self->sink.got.reset();
    co_await self->sink.got.wait();
  }
  co_await part(self, peer);
  if (by_get) {
    EXPECT_TRUE(self->sink.gets[0].ok());
  } else {
    EXPECT_EQ(received, bytes);
  }
  EXPECT_TRUE(holds(theirs, static_cast<std::uint64_t>(peer)));
}

TEST(ShmProcesses, SixtyFourMebibytesAreReadBothWaysAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const bool permitted = reads_are_permitted(child, "x");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!permitted) std::printf("process_vm_readv is not permitted here: the ring is used instead\n");
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{300'001}, std::size_t{64} << 20}) {
    const Body body = [&](ShmRank& self) { return exchange_large(&self, bytes, permitted); };
    EXPECT_TRUE(ended_well(ProcessPair(IdleMode::block).run(body, body)));
  }
}

TEST(ShmProcesses, WithReadsSwitchedOffLargeMessagesGoThroughTheRing) {
  ::setenv("WEFT_SHM_CMA", "off", 1);
  const ShmOptions options = ShmOptions::from_environment();
  ::unsetenv("WEFT_SHM_CMA");
  const Body body = [](ShmRank& self) { return exchange_large(&self, std::size_t{32} << 20, false); };
  EXPECT_TRUE(ended_well(ProcessPair(IdleMode::block, options).run(body, body)));
}

TEST(ShmProcesses, AnUnknownValueOfTheVariableIsAnError) {
  ::setenv("WEFT_SHM_CMA", "maybe", 1);
  EXPECT_THROW((void)ShmOptions::from_environment(), Error);
  ::setenv("WEFT_SHM_CMA", "auto", 1);
  EXPECT_TRUE(ShmOptions::from_environment().read_other_process);
  ::unsetenv("WEFT_SHM_CMA");
}

/// Sends for ever and notes what try_send has accepted.
Task<void> send_until_killed(ShmRank* self, std::atomic<std::uint64_t>* published) {
  std::vector<std::byte> payload(kRingMaxPayload);
  for (std::uint64_t i = 0;; ++i) {
    const std::span<std::byte> bytes(payload.data(), i * 7 % 300);
    fill(bytes, i);
    WireHeader header;
    header.tag = i;
    co_await send(self, 0, header, bytes);
    published->store(i + 1);
  }
}

Task<void> kill_in_mid_stream(ShmRank* self, const ProcessPair* pair, std::uint64_t kill_at,
                              std::atomic<std::uint64_t>* published) {
  std::uint64_t received = 0;
  bool wrong = false;
  bool killed = false;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) {
    wrong |= packet.header.tag != received || !holds(packet.payload, received);
    if (++received >= kill_at && !killed) {
      killed = true;
      ::kill(pair->pid(), SIGKILL);
    }
  };
  co_await self->sink.lost.wait();
  // Expect: everything that had been published, perhaps one packet more (published, but not yet noted).
  EXPECT_GE(received, published->load());
  EXPECT_LE(received, published->load() + 1);
  EXPECT_FALSE(wrong);
  EXPECT_FALSE(self->sink.after_loss);
  EXPECT_EQ(self->sink.losses.size(), 1U);
  EXPECT_EQ(self->sink.losses[0].outcome.code, Errc::peer_lost);
  self->sink.on_packet = {};
}

TEST(ShmProcesses, WhatAKilledPeerHadPublishedIsDeliveredBeforeItsLossIsTold) {
  for (const IdleMode idle : {IdleMode::yield, IdleMode::block}) {
    for (const std::uint64_t kill_at : {1U, 100U, 5'000U, 50'000U}) {
      SharedWord published;
      ProcessPair pair(idle);
      const int status = pair.run([&](ShmRank& self) { return kill_in_mid_stream(&self, &pair, kill_at, &*published); },
                                  [&](ShmRank& self) { return send_until_killed(&self, &*published); });
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
  }
}

/// The peer is dead while this rank sleeps, with a full ring, a bulk and a read in hand.
Task<void> sleep_until_lost(ShmRank* self, const ProcessPair* pair) {
  std::vector<std::byte> bytes(4 << 20);
  BulkSend bulk;
  bulk.peer = 1;
  bulk.payload = bytes;
  self->transport.send_bulk(bulk);
  WireHeader header;
  while (self->transport.try_send(1, header, {})) {
  }
  ::kill(pair->pid(), SIGKILL);
  co_await self->sink.lost.wait();
  EXPECT_EQ(self->sink.losses[0].outcome.code, Errc::peer_lost);
  EXPECT_EQ(self->sink.losses[0].bulks_given_back, 1U);
  EXPECT_EQ(self->sink.bulks[0].code, Errc::peer_lost);
  EXPECT_FALSE(self->transport.try_send(1, header, {}));
}

Task<void> stop(ShmRank* /*self*/) {
  ::pause();  // a peer that takes nothing any more
  co_return;
}

TEST(ShmProcesses, TheDeathOfAPeerWakesASleeperAndGivesBackWhatItHeld) {
  ProcessPair pair(IdleMode::block);
  const int status = pair.run([&](ShmRank& self) { return sleep_until_lost(&self, &pair); },
                              [](ShmRank& self) { return stop(&self); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/// Reads of a dead process's memory end.
Task<void> read_from_the_dead(ShmRank* self, const ProcessPair* pair) {
  std::uint64_t address = 0;
  self->sink.on_packet = [&](std::int32_t, const IncomingPacket& packet) { address = packet.header.tag; };
  co_await self->sink.arrived.wait();
  if (!self->transport.can_get(1)) {
    ::kill(pair->pid(), SIGKILL);
    co_await self->sink.lost.wait();
    co_return;
  }
  std::vector<std::byte> bytes(64 << 20);
  GetRequest requests[3];
  for (GetRequest& request : requests) {
    request.peer = 1;
    request.remote_address = address;
    request.local = bytes;
    self->transport.get(request);
  }
  ::kill(pair->pid(), SIGKILL);
  co_await self->sink.lost.wait();
  EXPECT_EQ(self->sink.gets.size(), 3U);
  EXPECT_EQ(self->sink.losses[0].gets_given_back, 3U);
  for (const Outcome& outcome : self->sink.gets)
    EXPECT_EQ(outcome.code, Errc::peer_lost);
  self->sink.on_packet = {};
}

Task<void> offer_memory(ShmRank* self) {
  std::vector<std::byte> bytes(64 << 20);
  WireHeader header;
  header.tag = reinterpret_cast<std::uintptr_t>(bytes.data());
  co_await send(self, 0, header, {});
  co_await self->sink.lost.wait();
}

TEST(ShmProcesses, ReadsOfAKilledPeersMemoryEndWithItsLoss) {
  ProcessPair pair(IdleMode::block);
  const int status = pair.run([&](ShmRank& self) { return read_from_the_dead(&self, &pair); },
                              [](ShmRank& self) { return offer_memory(&self); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/// A read of memory that the peer does not have is an error of that read alone.
Task<void> read_nonsense(ShmRank* self) {
  std::vector<std::byte> bytes(4096);
  GetRequest request;
  request.peer = 1;
  request.remote_address = 4096;
  request.local = bytes;
  if (self->transport.can_get(1)) {
    self->transport.get(request);
    co_await self->sink.got.wait();
    EXPECT_EQ(self->sink.gets[0].code, Errc::invalid_argument);
    EXPECT_EQ(self->sink.gets[0].native, EFAULT);
  }
  EXPECT_TRUE(self->sink.losses.empty());
  co_await part(self, 1);
}

TEST(ShmProcesses, AReadOfMemoryThatIsNotThereFailsAlone) {
  EXPECT_TRUE(ended_well(
      ProcessPair(IdleMode::block)
          .run([](ShmRank& self) { return read_nonsense(&self); }, [](ShmRank& self) { return part(&self, 0); })));
}

TEST(ShmProcesses, NothingIsLeftBehindByTheKilledOrTheirPeers) {
  const auto round = [] {
    SharedWord published;
    ProcessPair pair(IdleMode::block);
    pair.run([&](ShmRank& self) { return kill_in_mid_stream(&self, &pair, 1000, &*published); },
             [&](ShmRank& self) { return send_until_killed(&self, &*published); });
  };
  round();
  const std::size_t descriptors = open_descriptors();
  const std::size_t in_dev_shm = count_entries("/dev/shm");
  for (int i = 0; i < 10; ++i)
    round();
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(count_entries("/dev/shm"), in_dev_shm);
  EXPECT_EQ(weft_mappings(), 0U);
}

}  // namespace
}  // namespace weft::net
