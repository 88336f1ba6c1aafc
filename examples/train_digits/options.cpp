#include "options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>

namespace digits {
namespace {

constexpr int kBadUse = 2;

// CLI11 reads whole numbers with strtoull, which takes -1 for 2^64 - 1 and cuts what is too large.
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

// CLI::Range and CLI::PositiveNumber let "nan" pass.
std::string check_rate(std::string& text) {
  double rate = 0.0;
  const bool number = CLI::detail::lexical_cast(text, rate);
  if (number && std::isfinite(rate) && rate > 0.0 && rate <= 10.0) return {};
  return "'" + text + "' is not a learning rate above 0 and up to 10";
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv, Voice voice) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app(
      "Trains a multilayer perceptron on handwritten digits, data-parallel over the ranks that weftrun starts.\n"
      "Each epoch prints its mean loss, the accuracy on the test part, the time of a step and the share of\n"
      "communication that was hidden behind the backward pass; the last line is a hash of the trained parameters.",
      "train_digits");
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    return program->get_name() + ": " + error.what() + "\nRun with --help for more information.\n";
  });
  app.option_defaults()->always_capture_default();
  app.add_option("--epochs", options.epochs, "passes over the training part")->check(whole_number(1, 1000000));
  app.add_option("--hidden", options.hidden, "width of both hidden layers")->check(whole_number(1, 16384));
  app.add_option("--batch", options.batch, "samples of a step, all ranks together")->check(whole_number(1, 1000000));
  app.add_option("--seed", options.seed, "seed of the first weights and of the order of the samples")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--lr", options.rate, "learning rate (momentum is 0.9)")
      ->check(CLI::Validator(check_rate, "FLOAT in (0 - 10]"));
  app.add_option("--bucket-kib", options.bucket_kib, "gradients travel in buckets of this many KiB")
      ->check(whole_number(1, 1048576));
  app.add_option("--data", options.data, "CSV file: 64 pixels 0..16 and a label 0..9 a row [examples/data/digits.csv]")
      ->type_name("FILE")
      ->always_capture_default(false);
  try {
    app.parse(argc, argv);
    if (app.count("--data") > 0 && options.data.empty()) throw CLI::ValidationError("--data", "the file has no name");
  } catch (const CLI::ParseError& error) {
    std::ostringstream unheard;
    const bool speaks = voice == Voice::speaks;
    const int code = app.exit(error, speaks ? std::cout : unheard, speaks ? std::cerr : unheard);
    parsed.exit_code = code == 0 ? 0 : kBadUse;
  }
  return parsed;
}

}  // namespace digits
