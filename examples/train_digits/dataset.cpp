#include "dataset.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>

#include "random.hpp"
#include "weft/runtime/error.hpp"

namespace digits {
namespace {

constexpr std::size_t kColumns = kPixels + 1;
constexpr std::string_view kShape = "a row has 64 pixels 0..16 and a label 0..9, separated by commas";

/// Where the reader stands; rows and columns count from 1, as editors do.
struct Place {
  std::string_view name;
  std::size_t row;
};

[[noreturn]] void refuse(std::string_view name, const std::string& reason) {
  throw weft::Error(weft::Errc::invalid_argument, name, reason);
}

[[noreturn]] void refuse(const Place& place, std::size_t column, const std::string& reason) {
  refuse(place.name, "row " + std::to_string(place.row) + ", column " + std::to_string(column) + ": " + reason);
}

/// A field as a message may show it: in quotes, at most 24 bytes of it, nothing that a terminal would obey.
std::string quoted(std::string_view field) {
  constexpr std::size_t kShown = 24;
  std::string text = "\"";
  for (const char c : field.substr(0, kShown))
    text.push_back(c >= ' ' && c <= '~' ? c : '?');
  text += field.size() > kShown ? "...\"" : "\"";
  return text;
}

int parse_field(const Place& place, std::size_t column, std::string_view field) {
  if (field.empty()) refuse(place, column, "the field is empty");
  int value = 0;
  const char* const end = field.data() + field.size();
  const auto [rest, error] = std::from_chars(field.data(), end, value);
  const bool label = column == kColumns;
  const int limit = label ? static_cast<int>(kClasses) - 1 : kMaxGrey;
  const std::string what = label ? "label " : "pixel ";
  if (error == std::errc::invalid_argument || rest != end) {
    refuse(place, column, what + quoted(field) + " is not a whole number");
  }
  if (error == std::errc::result_out_of_range || value < 0 || value > limit) {
    refuse(place, column, what + quoted(field) + " is not within 0.." + std::to_string(limit));
  }
  return value;
}

void parse_row(const Place& place, std::string_view line, Dataset& out) {
  if (line.empty()) refuse(place, 1, "the row is empty; " + std::string(kShape));
  const auto columns = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
  if (columns != kColumns) {
    refuse(place, std::min(columns, kColumns) + 1,
           "the row has " + std::to_string(columns) + " columns instead of 65; " + std::string(kShape));
  }
  std::size_t begin = 0;
  for (std::size_t column = 1; column <= kColumns; ++column) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    const int value = parse_field(place, column, line.substr(begin, end - begin));
    begin = end + 1;
    if (column == kColumns) {
      out.labels.push_back(static_cast<std::uint8_t>(value));
    } else {
      out.pixels.push_back(static_cast<float>(value) / static_cast<float>(kMaxGrey));
    }
  }
}

Dataset pick(const Dataset& all, std::span<const std::size_t> rows) {
  Dataset part;
  part.pixels.reserve(rows.size() * kPixels);
  part.labels.reserve(rows.size());
  for (const std::size_t row : rows) {
    const auto image = all.image(row);
    part.pixels.insert(part.pixels.end(), image.begin(), image.end());
    part.labels.push_back(all.labels[row]);
  }
  return part;
}

}  // namespace

Dataset parse_dataset(std::string_view text, std::string_view name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t last = text.find_last_not_of("\r\n");
  if (last == std::string_view::npos) refuse(name, "the file is empty; " + std::string(kShape));
  text = text.substr(0, last + 1);

  Dataset all;
  Place place{name, 1};
  for (std::size_t begin = 0; begin <= text.size(); ++place.row) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, newline - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    parse_row(place, line, all);
    begin = newline + 1;
  }
  return all;
}

Dataset load_dataset(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto close = [](std::FILE* open) { std::fclose(open); };
  const std::unique_ptr<std::FILE, decltype(close)> in(std::fopen(name.c_str(), "rbe"), close);
  const auto fail = [&name](const char* reason) {
    throw weft::Error(weft::Errc::invalid_argument, name, reason, weft::kNoRank, errno);
  };
  if (!in) fail("cannot open the data file");
  std::string text;
  std::array<char, 1U << 16U> chunk;
  while (const std::size_t length = std::fread(chunk.data(), 1, chunk.size(), in.get())) {
    text.append(chunk.data(), length);
  }
  if (std::ferror(in.get()) != 0) fail("cannot read the data file");
  return parse_dataset(text, name);
}

Split split_dataset(const Dataset& all, std::uint64_t seed) {
  constexpr std::size_t kLeast = 5;
  if (all.size() < kLeast) {
    throw weft::Error(
        weft::Errc::invalid_argument, "split_dataset",
        std::to_string(all.size()) + " rows are too few to hold a fifth back for testing; 5 is the least");
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  SplitMix64 random(seed);
  shuffle(std::span(order), random);
  const std::size_t train = all.size() * 4 / 5;
  const std::span<const std::size_t> rows(order);
  return Split{pick(all, rows.first(train)), pick(all, rows.subspan(train))};
}

}  // namespace digits
