// Two ranks send a message to and fro: what a message costs, and that it arrives unharmed.
//
//   weftrun -n 2 ping_pong                       shared memory
//   weftrun -n 2 --transport tcp ping_pong       sockets
//   weftrun -n 2 --ranks-per-process 2 ping_pong two threads of one process
//
// For figures that you can trust use weft-bench; this is about how the code looks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/coll/barrier.hpp"
#include "weft/net/run.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr weft::Tag kTag = 7;
constexpr std::size_t kSizes[] = {0, 8, 64, 1024, 16384, 262144, 1048576};
constexpr std::size_t kWarmup = 100;

std::byte mark_of(std::size_t round, weft::Rank rank) {
  return static_cast<std::byte>((round * 2 + static_cast<std::size_t>(rank)) % 251);
}

// Rank 0 speaks first, rank 1 answers; each looks at what it gets.
weft::Task<void> play(weft::Communicator& world, std::vector<std::byte>& buffer, std::size_t rounds) {
  const weft::Rank me = world.rank();
  const weft::Rank other = 1 - me;
  const std::span<std::byte> bytes(buffer);
  for (std::size_t round = 0; round < rounds; ++round) {
    if (me == 0) {
      std::fill(buffer.begin(), buffer.end(), mark_of(round, 0));
      co_await world.send(other, kTag, bytes);
    }
    const weft::MessageInfo info = co_await world.recv(other, kTag, bytes);
    const std::byte expected = mark_of(round, other);
    const bool whole = info.length == buffer.size();
    const bool right = buffer.empty() || (buffer.front() == expected && buffer.back() == expected);
    if (!whole || !right) throw std::runtime_error("round " + std::to_string(round) + " brought a wrong message");
    if (me == 1) {
      std::fill(buffer.begin(), buffer.end(), mark_of(round, 1));
      co_await world.send(other, kTag, bytes);
    }
  }
}

weft::Task<void> rank_main(weft::Communicator& world, std::size_t rounds) {
  if (world.size() < 2) {
    throw weft::Error(weft::Errc::bad_environment, "world",
                      "one rank cannot play alone; start it with `weftrun -n 2 ping_pong`");
  }
  if (world.rank() == 0) std::printf("%10s %14s\n", "bytes", "one way us");
  for (const std::size_t size : kSizes) {
    if (world.rank() <= 1) {
      std::vector<std::byte> buffer(size);
      co_await play(world, buffer, std::min(rounds, kWarmup));
      const Clock::time_point begin = Clock::now();
      co_await play(world, buffer, rounds);
      const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
      if (world.rank() == 0) std::printf("%10zu %14.3f\n", size, elapsed.count() / 2 / static_cast<double>(rounds));
    }
  }
  co_await weft::coll::barrier(world);  // further ranks have nothing to do and wait here
  if (world.rank() == 0) std::printf("all messages arrived unharmed\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t rounds = 1000;
  CLI::App app("Two ranks send messages of several sizes to and fro. Start it with: weftrun -n 2 ping_pong",
               "ping_pong");
  app.add_option("--rounds", rounds, "round trips of each size [1000]")->check(CLI::Range(1, 1'000'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : weft::kExitBadUse;
  }
  return weft::run(argc, argv, [rounds](weft::Communicator& world) { return rank_main(world, rounds); });
}
