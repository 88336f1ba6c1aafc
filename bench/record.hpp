// One line of results: what was measured, how, and the figures. Figures that do not apply, or that this machine cannot
// give, are absent, and `notes` says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Record {
  std::string name;       ///< "latency", "floor_cache_line"
  std::string transport;  ///< "shm", "tcp", "self"; empty where none is involved
  std::int32_t ranks = 0;
  bool threads = false;
  std::size_t bytes = 0;
  std::size_t iters = 0;  ///< timed operations of a repeat
  std::size_t repeats = 0;
  std::size_t batch = 0;  ///< operations between two looks at the clock

  std::optional<double> median_us;
  std::optional<double> p99_us;
  std::optional<double> min_us;
  std::optional<double> mad_us;  ///< of the repeats' medians
  std::optional<double> gbytes_per_s;
  std::optional<double> mmsg_per_s;
  std::string floor;  ///< what floor_us is a floor of
  std::optional<double> floor_us;
  std::optional<double> over_floor;
  std::optional<double> allocs_per_op;    ///< of the rank that has most
  std::optional<double> syscalls_per_op;  ///< of the rank that has most

  std::vector<std::pair<std::string, double>> more;  ///< figures of one benchmark only
  std::vector<std::string> notes;
};

}  // namespace bench
