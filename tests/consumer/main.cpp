// Somebody else's program: every rank brings its number plus one, and all of them must get the same sum.
#include <weft/weft.hpp>

#include <cstdio>
#include <span>
#include <vector>

weft::Task<void> rank_main(weft::Communicator& world) {
  std::vector<float> values(1000, static_cast<float>(world.rank() + 1));
  co_await weft::coll::all_reduce(world, std::span(values), weft::coll::sum);
  const auto ranks = static_cast<float>(world.size());
  if (values.front() != ranks * (ranks + 1) / 2 || values.back() != values.front()) {
    throw weft::Error(weft::Errc::mismatch, "consumer", "the sum over all ranks is wrong");
  }
  if (world.rank() == 0) std::printf("sum over %d ranks: %g\n", static_cast<int>(world.size()), double{values.front()});
}

int main(int argc, char** argv) { return weft::run(argc, argv, rank_main); }
