// How many small messages a second go from one rank to another?
//
// Messages of 8 bytes in windows of 64. Sender and receiver await them one after the other: a small send ends when its
// buffer is free again, so the window is on its way all the same, without the price of a task for each message.
//
// Expected, two pinned processes. shm: the slower side decides, the receiver: take a cell, match, copy 8 bytes, resume:
// 40 to 60 ns, so 15 to 25 M messages a second, where bare cells give 22 to 27. tcp: many messages to a system call, so
// a few millions a second where one call each gives 0.28.
#include "benchmarks.hpp"
#include "message_window.hpp"

namespace bench {
namespace {

constexpr std::size_t kBytes = 8;

std::unique_ptr<Floor> floor_for(Session& session) {
  const weft::Rank rank = session.world.rank();
  if (session.transport == "tcp" && session.socket) return socket_stream(session.socket, rank, kBytes);
  if (session.transport == "shm" && session.arena) return memory_cells(session.arena, rank);
  return nullptr;
}

}  // namespace

weft::Task<void> run_rate(Session& session) {
  const std::size_t window = session.options.window;
  const Plan plan = plan_for(session.options, kBytes, window);
  Record record = begin_record(session, "rate", kBytes, plan);
  MessageWindow subject(session.world, kBytes, window, WindowStyle::sequential);
  const std::unique_ptr<Floor> floor = floor_for(session);
  co_await measure(session, record, plan, subject, floor.get());
  if (record.median_us.value_or(0) > 0) {
    record.gbytes_per_s = static_cast<double>(kBytes) * 1e-3 / *record.median_us;
    record.mmsg_per_s = 1 / *record.median_us;
  }
  session.reporter.report(record);
}

}  // namespace bench
