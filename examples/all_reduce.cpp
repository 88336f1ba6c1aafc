// A sum over all ranks, awaited like any other task, and a look at whether it is right.
//
//   all_reduce                                   a world of one
//   weftrun -n 4 all_reduce                      four processes
//   weftrun -n 4 --transport tcp all_reduce      the same over sockets
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/coll/all_reduce.hpp"
#include "weft/net/run.hpp"

namespace {

weft::Task<void> rank_main(weft::Communicator& world, std::size_t count) {
  std::vector<float> grad(count, static_cast<float>(world.rank()));
  co_await weft::coll::all_reduce(world, std::span(grad), weft::coll::sum);

  // 0 + 1 + ... + (ranks - 1): a float holds it exactly up to 5,000 ranks.
  const auto ranks = static_cast<float>(world.size());
  const float expected = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < grad.size(); ++i) {
    if (grad[i] == expected) continue;
    throw std::runtime_error("element " + std::to_string(i) + " is " + std::to_string(grad[i]) + " instead of " +
                             std::to_string(expected));
  }
  std::printf("rank %d of %d: %zu sums, each is %g as it should be\n", world.rank(), world.size(), grad.size(),
              static_cast<double>(expected));
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = std::size_t{1} << 20;
  CLI::App app("Sums a vector over all ranks. Start it with: weftrun -n 4 all_reduce", "all_reduce");
  app.add_option("--count", count, "elements of the vector [1048576]")->check(CLI::Range(0, 1 << 30));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : weft::kExitBadUse;
  }
  return weft::run(argc, argv, [count](weft::Communicator& world) { return rank_main(world, count); });
}
