#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <map>

namespace bench {
namespace {

constexpr int kBadUse = 2;
constexpr std::size_t kMaxSize = std::size_t{4} << 30;
constexpr std::uint64_t kMaxCount = 1'000'000'000;

struct Description {
  Benchmark benchmark;
  const char* name;
  const char* text;
};

constexpr std::array kBenchmarks = {
    Description{
        Benchmark::floor, "floor",
        "What the hardware and the kernel give without Weft: a cache line to and fro, memcpy, spinning sockets."},
    Description{Benchmark::latency, "latency",
                "One-way time of a message: half of a round trip between ranks 0 and 1."},
    Description{Benchmark::bandwidth, "bandwidth",
                "Bytes a second from rank 0 to rank 1, a window of messages at a time, acknowledged at its end."},
    Description{Benchmark::rate, "rate", "Messages a second from rank 0 to rank 1, a window at a time."},
    Description{Benchmark::all_reduce, "all_reduce", "Time of a sum of f32 over all ranks; the slowest rank counts."},
    Description{
        Benchmark::overlap, "overlap",
        "How much of the gradient communication a BucketScheduler hides behind a backward pass. --sizes: bytes\n"
        "of all gradients."},
};

// CLI11 reads whole numbers with strtoull, which takes -1 for 2^64 - 1.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  const auto check = [least, most, range](std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && rest == text.data() + text.size() && value >= least && value <= most) return {};
    return "'" + text + "' is not a whole number from " + range;
  };
  return CLI::Validator(check, "in " + range);
}

// Turns each size into bytes, which is all that CLI11 has to read afterwards.
CLI::Validator size_in_bytes(std::size_t least) {
  const auto check = [least](std::string& text) -> std::string {
    const std::optional<std::size_t> bytes = parse_size(text);
    if (!bytes.has_value()) return "'" + text + "' is not a size such as 8, 64K or 1M, up to 4G";
    if (*bytes < least) return "'" + text + "' is less than " + std::to_string(least);
    text = std::to_string(*bytes);
    return {};
  };
  return CLI::Validator(check, "");
}

void add_options(CLI::App& app, Benchmark benchmark, Options& options) {
  using weft::IdleMode;
  using weft::net::BindChoice;
  using weft::net::TransportChoice;
  static const std::map<std::string, TransportChoice> transports = {
      {"auto", TransportChoice::automatic}, {"shm", TransportChoice::shm}, {"tcp", TransportChoice::tcp}};
  static const std::map<std::string, BindChoice> binds = {{"core", BindChoice::core}, {"none", BindChoice::none}};
  static const std::map<std::string, IdleMode> idles = {
      {"auto", IdleMode::automatic}, {"spin", IdleMode::spin}, {"yield", IdleMode::yield}, {"block", IdleMode::block}};

  app.add_option("--ranks", options.ranks, "local ranks to start, as processes [2]")->check(whole_number(1, 4096));
  app.add_flag("--threads", options.threads, "the ranks are threads of one process");
  app.add_option("--transport", options.transport, "auto, shm or tcp [WEFT_TRANSPORT, else auto]")
      ->transform(CLI::CheckedTransformer(transports).description(""))
      ->type_name("T");
  app.add_option("--bind", options.bind, "core: each rank keeps to one core; none [core where they suffice]")
      ->transform(CLI::CheckedTransformer(binds).description(""))
      ->type_name("B");
  app.add_option("--idle", options.idle, "what a rank does while it waits: auto, spin, yield or block [auto]")
      ->transform(CLI::CheckedTransformer(idles).description(""))
      ->type_name("MODE");
  if (benchmark != Benchmark::rate) {
    app.add_option("--sizes", options.sizes, "bytes, separated by commas: 8,1K,64K,1M")
        ->delimiter(',')
        ->transform(size_in_bytes(benchmark == Benchmark::overlap ? 4096 : 0))
        ->type_name("LIST");
  }
  app.add_option("--iters", options.iterations, "operations of a repeat [by size]")->check(whole_number(1, kMaxCount));
  app.add_option("--warmup", options.warmup, "operations before the first repeat [a tenth of --iters]")
      ->check(whole_number(0, kMaxCount));
  app.add_option("--repeat", options.repeats, "repeats; the table shows their median [5]")
      ->check(whole_number(1, 1000));
  if (benchmark != Benchmark::overlap) {
    app.add_option("--batch", options.batch, "operations between two looks at the clock [16 up to 4K, else 1]")
        ->check(whole_number(1, 1'000'000));
  }
  if (benchmark == Benchmark::bandwidth || benchmark == Benchmark::rate || benchmark == Benchmark::floor) {
    app.add_option("--window", options.window, "messages between two acknowledgements [64]")
        ->check(whole_number(1, 65536));
  }
  if (benchmark == Benchmark::overlap) {
    app.add_option("--layers", options.layers, "layers of the model, equal in size and work [8]")
        ->check(whole_number(1, 1024));
    app.add_option("--bucket", options.bucket_bytes, "bytes of a gradient bucket [a quarter of all]")
        ->transform(size_in_bytes(64));
  }
  if (benchmark != Benchmark::floor) {
    app.add_flag("--check", options.check, "verify what arrives, in a pass that is not timed");
  }
  app.add_option("--json", options.json, "one JSON object a line into FILE; - : standard output, the table to stderr")
      ->type_name("FILE");
}

bool is_benchmark(std::string_view name) {
  return std::any_of(kBenchmarks.begin(), kBenchmarks.end(), [&](const Description& one) { return name == one.name; });
}

// What no single option can know. Gives an empty text where all is well.
std::string contradiction(const Options& options) {
  const std::int32_t ranks = options.ranks.value_or(kDefaultRanks);
  if (ranks < least_ranks(options.benchmark)) {
    return std::string(to_string(options.benchmark)) + " takes at least " +
           std::to_string(least_ranks(options.benchmark)) + " ranks";
  }
  if (options.benchmark == Benchmark::all_reduce) {
    for (const std::size_t bytes : options.sizes) {
      if (bytes < 4 || bytes % 4 != 0) return "--sizes: " + std::to_string(bytes) + " bytes are no whole number of f32";
    }
  }
  return {};
}

}  // namespace

const char* to_string(Benchmark benchmark) noexcept {
  for (const Description& one : kBenchmarks) {
    if (one.benchmark == benchmark) return one.name;
  }
  return "";
}

std::optional<std::size_t> parse_size(std::string_view text) noexcept {
  std::size_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  unsigned shift = 0;
  if (!unit.empty()) {
    switch (unit.front()) {
      case 'K':
      case 'k': shift = 10; break;
      case 'M':
      case 'm': shift = 20; break;
      case 'G':
      case 'g': shift = 30; break;
      case 'B': break;
      default: return std::nullopt;
    }
    const std::string_view tail = unit.substr(1);
    if (!tail.empty() && (shift == 0 || (tail != "B" && tail != "iB"))) return std::nullopt;
  }
  if (number > kMaxSize >> shift) return std::nullopt;
  return number << shift;
}

std::string size_text(std::size_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30U, "G"}, std::pair{20U, "M"}, std::pair{10U, "K"}}) {
    if (bytes != 0 && bytes % (std::size_t{1} << shift) == 0) return std::to_string(bytes >> shift) + unit;
  }
  return std::to_string(bytes);
}

std::vector<std::size_t> default_sizes(Benchmark benchmark) {
  constexpr std::size_t kKi = 1024;
  constexpr std::size_t kMi = kKi * kKi;
  switch (benchmark) {
    case Benchmark::floor:
    case Benchmark::latency: return {8, kKi, 64 * kKi, kMi};
    case Benchmark::bandwidth: return {64 * kKi, kMi, 4 * kMi, 16 * kMi};
    case Benchmark::rate: return {8};
    case Benchmark::all_reduce: return {8, kKi, 64 * kKi, kMi, 16 * kMi};
    case Benchmark::overlap: return {kMi, 16 * kMi};
  }
  return {};
}

std::int32_t least_ranks(Benchmark benchmark) noexcept {
  return benchmark == Benchmark::all_reduce || benchmark == Benchmark::overlap ? 1 : 2;
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app(
      "Measures Weft between local ranks, beside the floor: what hardware and kernel give, in the same run.\n"
      "It starts its own ranks; under weftrun or torchrun it takes the ranks that it is given.\n"
      "Figures are medians over repeats. bench/README.md says what each of them means.",
      "weft-bench");
  app.require_subcommand(1);
  for (const Description& one : kBenchmarks) {
    CLI::App* const command = app.add_subcommand(one.name, one.text);
    command->fallthrough(false);
    add_options(*command, one.benchmark, options);
    command->callback([&options, benchmark = one.benchmark] { options.benchmark = benchmark; });
  }
  try {
    // CLI11 would only say that a subcommand is required.
    if (argc > 1 && argv[1][0] != '-' && !is_benchmark(argv[1])) {
      throw CLI::ValidationError(
          "'" + std::string(argv[1]) +
          "' is no benchmark; there are floor, latency, bandwidth, rate, all_reduce and overlap");
    }
    app.parse(argc, argv);
    const std::string wrong = contradiction(options);
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
    if (options.sizes.empty()) options.sizes = default_sizes(options.benchmark);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error, std::cout, std::cerr) == 0 ? 0 : kBadUse;
  }
  return parsed;
}

}  // namespace bench
