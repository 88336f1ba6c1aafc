// Goal: a closure arrives as it was made, runs, and dies exactly once, whether it is held in place or on the heap.
#include "weft/gpu/stream_work.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace weft::gpu {
namespace {

template <std::size_t Bytes>
struct Payload {
  std::array<std::byte, Bytes> bytes{};
};

template <std::size_t Bytes>
void run_and_count(std::size_t moves) {
  auto alive = std::make_shared<int>(0);
  int runs = 0;
  {
    StreamWork work([alive, &runs, payload = Payload<Bytes>()] { runs += payload.bytes.size() == Bytes ? 1 : 0; });
    EXPECT_EQ(alive.use_count(), 2);
    std::vector<StreamWork> moved;
    moved.push_back(std::move(work));
    for (std::size_t i = 0; i < moves; ++i)
      moved.emplace_back();
    EXPECT_FALSE(bool(work));  // NOLINT: what a move leaves behind is empty
    std::swap(moved.front(), moved.back());
    moved.back()();
    EXPECT_EQ(alive.use_count(), 2);
    moved.back().reset();
    EXPECT_EQ(alive.use_count(), 1);
  }
  EXPECT_EQ(runs, 1);
}

TEST(StreamWork, ASmallClosureIsRunAndDestroyedOnce) {
  run_and_count<8>(5);
}
TEST(StreamWork, ALargeClosureIsRunAndDestroyedOnce) {
  run_and_count<4096>(5);
}

TEST(StreamWork, ClosuresThatOnlyMoveAreTaken) {
  auto number = std::make_unique<int>(41);
  int seen = 0;
  StreamWork work([number = std::move(number), &seen] { seen = ++*number; });
  StreamWork other;
  other = std::move(work);
  other();
  EXPECT_EQ(seen, 42);
}

}  // namespace
}  // namespace weft::gpu
