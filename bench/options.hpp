// The command line of weft-bench.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/bootstrap/environment.hpp"

namespace bench {

enum class Benchmark : std::uint8_t { floor, latency, bandwidth, rate, all_reduce, overlap };

/// The name of the subcommand; a literal.
[[nodiscard]] const char* to_string(Benchmark benchmark) noexcept;

/// What was asked for. What is empty or 0 was not, and each benchmark has its own idea of it.
struct Options {
  Benchmark benchmark = Benchmark::latency;
  std::optional<std::int32_t> ranks;  ///< as given; under a launcher it must agree with the launcher
  bool threads = false;               ///< ranks are threads of this process
  std::optional<weft::net::TransportChoice> transport;
  std::optional<weft::net::BindChoice> bind;
  std::optional<weft::IdleMode> idle;
  std::vector<std::size_t> sizes;     ///< bytes
  std::size_t iterations = 0;         ///< operations of a repeat; 0: by size
  std::optional<std::size_t> warmup;  ///< operations before the first repeat
  std::size_t repeats = 5;
  std::size_t batch = 0;         ///< operations between two looks at the clock; 0: by size
  std::size_t window = 64;       ///< messages on their way between two acknowledgements
  std::size_t layers = 8;        ///< of the model that `overlap` pretends to train
  std::size_t bucket_bytes = 0;  ///< of `overlap`; 0: a quarter of all gradients
  bool check = false;            ///< verify payloads, in a pass of its own
  std::string json;              ///< file, "-" for standard output, empty for none
};

inline constexpr std::int32_t kDefaultRanks = 2;

/// What to do after the command line was read.
struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;  ///< the program ends with it: 0 after --help, 2 after bad use
};

/// Reads the command line. Help goes to standard output, complaints to standard error.
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

/// "8", "1K", "64k", "4M", "1G" (and "1KiB", "1KB": all powers of 1024) in bytes, up to 4 GiB; nothing for other text.
[[nodiscard]] std::optional<std::size_t> parse_size(std::string_view text) noexcept;

/// The shortest text that parse_size() reads back: "1K", "1000".
[[nodiscard]] std::string size_text(std::size_t bytes);

/// What the benchmark takes for sizes when none are given.
[[nodiscard]] std::vector<std::size_t> default_sizes(Benchmark benchmark);

/// Ranks without which the benchmark makes no sense.
[[nodiscard]] std::int32_t least_ranks(Benchmark benchmark) noexcept;

}  // namespace bench
