// How many bytes a second go from one rank to another?
//
// Windows of 64 messages, each awaited by a task of its own. GB/s counts 1e9 bytes and is bytes over the median time of
// a message.
//
// Expected, two pinned processes. shm: one copy, done by the receiver's core straight out of the sender's memory, so
// what memcpy gives for that size less a handshake of some 1 us a message: 90 % of memcpy from 1 MiB on. tcp: two
// copies by the kernel, one on each core at the same time: 5 to 6 GB/s for 1 MiB and above.
#include "benchmarks.hpp"
#include "message_window.hpp"

namespace bench {
namespace {

// Below this a message costs more than its bytes, and memcpy of so little says nothing about it.
constexpr std::size_t kLeastCopyFloor = 1024;

std::unique_ptr<Floor> floor_for(Session& session, Record& record) {
  const weft::Rank rank = session.world.rank();
  if (session.transport == "tcp" && session.socket) return socket_stream(session.socket, rank, record.bytes);
  if (session.transport != "shm") return nullptr;
  if (record.bytes >= kLeastCopyFloor) return memory_copy(rank, record.bytes);
  record.notes.emplace_back("floor: none below 1K, where a message costs more than its bytes; see rate");
  return nullptr;
}

}  // namespace

weft::Task<void> run_bandwidth(Session& session) {
  for (const std::size_t bytes : session.options.sizes) {
    const std::size_t window = session.options.window;
    const Plan plan = plan_for(session.options, bytes, window);
    Record record = begin_record(session, "bandwidth", bytes, plan);
    MessageWindow subject(session.world, bytes, window, WindowStyle::concurrent);
    const std::unique_ptr<Floor> floor = floor_for(session, record);
    co_await measure(session, record, plan, subject, floor.get());
    if (record.median_us.value_or(0) > 0) {
      record.gbytes_per_s = static_cast<double>(bytes) * 1e-3 / *record.median_us;
      record.mmsg_per_s = 1 / *record.median_us;
    }
    session.reporter.report(record);
  }
}

}  // namespace bench
