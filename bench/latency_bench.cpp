// How long does a message take, one way?
//
// Ranks 0 and 1 send one message to and fro; a sample is half of the time of a round trip, or of a batch of 16 round
// trips for messages up to 4 KiB, because one look at the clock costs 20 to 25 ns. Nothing is subtracted.
//
// Expected, two pinned processes. shm, 8 bytes: header and payload share one cache line, so the line itself (0.14 to
// 0.23 us between two cores) and a turn of the reactor, a match and a resume on each side (some 30 ns each): 1.2 to 1.4
// times the bare line. shm, 1 MiB: a handshake of two such messages, then one copy by the kernel at 15 to 20 GB/s: 60
// to 80 us. tcp, 8 bytes: what spinning sockets take (3.9 us, nearly all of it in the kernel) and the same 30 ns.
#include "benchmarks.hpp"
#include "payload.hpp"
#include "private_buffer.hpp"
#include "spin.hpp"

namespace bench {
namespace {

using weft::Task;

constexpr weft::Tag kTag = 1;
constexpr std::size_t kCheckedRounds = 50;

class PingPong final : public Subject {
 public:
  PingPong(weft::Communicator& world, std::size_t bytes, std::size_t batch)
      : world_(world), batch_(batch), out_(bytes), in_(bytes) {}

  Task<void> run(std::size_t grains, Samples* samples) override {
    const weft::Rank rank = world_.rank();
    for (std::size_t grain = 0; grain < grains && rank <= 1; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch_; ++i) {
        if (rank == 0) co_await world_.send(1, kTag, out_.bytes());
        co_await world_.recv(1 - rank, kTag, in_.bytes());
        if (rank == 1) co_await world_.send(0, kTag, out_.bytes());
      }
      if (samples != nullptr && rank == 0) samples->add(now_ns() - begin, 2 * batch_);
    }
  }

  Task<void> check() override {
    const weft::Rank rank = world_.rank();
    for (std::uint64_t round = 0; round < kCheckedRounds && rank <= 1; ++round) {
      // Each direction has payloads of its own, so that an echo of what was sent is found out.
      fill_payload(out_.bytes(), 2 * round + static_cast<std::uint64_t>(rank));
      if (rank == 0) co_await world_.send(1, kTag, out_.bytes());
      const weft::MessageInfo info = co_await world_.recv(1 - rank, kTag, in_.bytes());
      check_length(info.length, in_.size());
      check_payload(in_.bytes(), 2 * round + static_cast<std::uint64_t>(1 - rank));
      if (rank == 1) co_await world_.send(0, kTag, out_.bytes());
    }
  }

 private:
  weft::Communicator& world_;
  std::size_t batch_;
  PrivateBuffer out_;
  PrivateBuffer in_;
};

std::unique_ptr<Floor> floor_for(Session& session, std::size_t bytes) {
  const weft::Rank rank = session.world.rank();
  if (session.transport == "tcp" && session.socket) return socket_ping_pong(session.socket, rank, bytes);
  if (session.transport == "shm" && session.arena) return memory_ping_pong(session.arena, rank, bytes);
  return nullptr;
}

}  // namespace

Task<void> run_latency(Session& session) {
  for (const std::size_t bytes : session.options.sizes) {
    const std::size_t batch = batch_for(session.options, bytes);
    const Plan plan = plan_for(session.options, bytes, batch);
    Record record = begin_record(session, "latency", bytes, plan);
    PingPong subject(session.world, bytes, batch);
    const std::unique_ptr<Floor> floor = floor_for(session, bytes);
    co_await measure(session, record, plan, subject, floor.get());
    const bool bare_line = session.transport == "shm" && bytes <= sizeof(FlagLine::room);
    if (bare_line && record.floor_us.value_or(1) < kSharedCoreUs) record.notes.emplace_back(kSharedCoreNote);
    session.reporter.report(record);
  }
}

}  // namespace bench
