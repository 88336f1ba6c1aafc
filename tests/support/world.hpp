// Worlds for tests: several ranks as threads of the test's process, over a transport of choice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/run.hpp"

namespace weft::test {

/// A world to be run.
struct WorldOptions {
  std::int32_t ranks = 2;
  net::TransportChoice transport = net::TransportChoice::shm;
  bool canonical_order = false;
  Duration timeout = Duration::max();
};

/// Runs `main` on every rank; gives how each ended.
[[nodiscard]] std::vector<RankOutcome> run_world(const WorldOptions& options, const RankMain& main);

/// The same, and every rank must end in order: the test fails with the text of each failure.
void in_world(const WorldOptions& options, const RankMain& main);

/// "ok", or what() of the failure.
[[nodiscard]] std::string text_of(const std::exception_ptr& failure);
/// Errc::ok, or the code of a weft::Error; Errc::io for any other exception.
[[nodiscard]] Errc code_of(const std::exception_ptr& failure);

/// "shm" or "tcp", for names of parameterised tests.
[[nodiscard]] std::string name_of(net::TransportChoice transport);

}  // namespace weft::test
