// How long does a sum of f32 over all ranks take?
//
// Reductions from one warm buffer into another one, back to back; a sample is the time of the slowest rank, of one
// reduction or of a batch of 16 up to 4 KiB. No barrier between them: a rank cannot end one before all have begun it.
//
// Expected, two pinned processes on shm. 8 bytes: each sends its value and takes the other's at the same time, so the
// one-way latency of a message and a little more for the bookkeeping of a collective: 0.4 us. 1 MiB: half of it each
// way twice, each byte copied once and added once, some 150 to 250 us; the floor, where each rank reads the other's
// memory in place and there is no copy, takes a sixth of that.
#include <algorithm>
#include <stdexcept>

#include "benchmarks.hpp"
#include "private_buffer.hpp"
#include "spin.hpp"
#include "weft/coll/all_reduce.hpp"

namespace bench {
namespace {

using weft::Task;

constexpr std::uint64_t kCheckedRounds = 10;

class Reduction final : public Subject {
 public:
  Reduction(weft::Communicator& world, std::size_t bytes, std::size_t batch)
      : world_(world), batch_(batch), in_(bytes), out_(bytes) {
    std::fill(in_.as<float>().begin(), in_.as<float>().end(), 1.0F);
  }

  Task<void> run(std::size_t grains, Samples* samples) override {
    const std::span<const float> in = in_.as<float>();
    const std::span<float> out = out_.as<float>();
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch_; ++i) {
        co_await weft::coll::all_reduce(world_, in, out, weft::coll::sum);
      }
      if (samples != nullptr) samples->add(now_ns() - begin, batch_);
    }
  }

  Task<void> check() override {
    const std::span<float> in = in_.as<float>();
    const std::span<float> out = out_.as<float>();
    const auto ranks = static_cast<std::uint64_t>(world_.size());
    for (std::uint64_t round = 0; round < kCheckedRounds; ++round) {
      // Whole numbers whose sums a float holds exactly, so that the order of the additions does not matter.
      const auto value = [&](std::uint64_t rank, std::size_t i) { return (i * 7 + round * 13 + rank * 5) % 1021; };
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<float>(value(static_cast<std::uint64_t>(world_.rank()), i));
      }
      co_await weft::coll::all_reduce(world_, std::span<const float>(in), out, weft::coll::sum);
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::uint64_t sum = 0;
        for (std::uint64_t rank = 0; rank < ranks; ++rank)
          sum += value(rank, i);
        if (out[i] == static_cast<float>(sum)) continue;
        throw std::runtime_error("check failed: element " + std::to_string(i) + " of " + std::to_string(out.size()) +
                                 " is " + std::to_string(out[i]) + " instead of " + std::to_string(sum));
      }
    }
  }

  [[nodiscard]] bool slowest_rank_counts() const noexcept override { return true; }

 private:
  weft::Communicator& world_;
  std::size_t batch_;
  PrivateBuffer in_;
  PrivateBuffer out_;
};

std::unique_ptr<Floor> floor_for(Session& session, Record& record) {
  const weft::Rank rank = session.world.rank();
  const weft::Rank ranks = session.world.size();
  if (session.transport == "shm" && session.arena) return memory_sum(session.arena, rank, ranks, record.bytes);
  if (session.transport == "tcp" && session.socket && ranks == 2) {
    return socket_exchange(session.socket, rank, record.bytes);
  }
  if (session.transport == "tcp" && ranks > 2 && session.no_floor.empty())
    record.notes.emplace_back("floor: on tcp for 2 ranks only");
  return nullptr;
}

}  // namespace

Task<void> run_all_reduce(Session& session) {
  for (const std::size_t bytes : session.options.sizes) {
    const std::size_t batch = batch_for(session.options, bytes);
    const Plan plan = plan_for(session.options, bytes, batch);
    Record record = begin_record(session, "all_reduce", bytes, plan);
    Reduction subject(session.world, bytes, batch);
    const std::unique_ptr<Floor> floor = floor_for(session, record);
    co_await measure(session, record, plan, subject, floor.get());
    session.reporter.report(record);
  }
}

}  // namespace bench
