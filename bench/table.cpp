#include "table.hpp"

#include <array>
#include <cstdio>
#include <vector>

namespace bench {
namespace {

struct Column {
  const char* title;
  int width;
  std::string (*text)(const Record& record);
};

// Four significant digits, never an exponent: 0.2134, 15.62, 1204, 40213.
std::string number(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  const double size = *value < 0 ? -*value : *value;
  int digits = 0;
  if (size < 10) {
    digits = 3;
  } else if (size < 100) {
    digits = 2;
  } else if (size < 1000) {
    digits = 1;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, *value);
  return text.data();
}

std::optional<double> more(const Record& record, const char* key) {
  for (const auto& [name, value] : record.more) {
    if (name == key) return value;
  }
  return std::nullopt;
}

const Column kName{"floor", 18, [](const Record& r) { return r.name.substr(r.name.find('_') + 1); }};
const Column kBytes{"bytes", 7, [](const Record& r) { return size_text(r.bytes); }};
const Column kMedian{"median us", 11, [](const Record& r) { return number(r.median_us); }};
const Column kTail{"p99 us", 11, [](const Record& r) { return number(r.p99_us); }};
const Column kMin{"min us", 11, [](const Record& r) { return number(r.min_us); }};
const Column kGigabytes{"GB/s", 8, [](const Record& r) { return number(r.gbytes_per_s); }};
const Column kMessages{"Mmsg/s", 8, [](const Record& r) { return number(r.mmsg_per_s); }};
const Column kFloor{"floor us", 11, [](const Record& r) { return number(r.floor_us); }};
const Column kOver{"x floor", 8, [](const Record& r) { return number(r.over_floor); }};
const Column kAllocations{"allocs/op", 10, [](const Record& r) { return number(r.allocs_per_op); }};
const Column kSyscalls{"syscalls/op", 12, [](const Record& r) { return number(r.syscalls_per_op); }};
const Column kCompute{"compute us", 11, [](const Record& r) { return number(more(r, "compute_us")); }};
const Column kCommunication{"comm us", 11, [](const Record& r) { return number(more(r, "communication_us")); }};
const Column kTogether{"together us", 12, [](const Record& r) { return number(r.median_us); }};
const Column kHidden{"hidden", 8, [](const Record& r) { return number(more(r, "hidden")); }};
const Column kSaved{"saved", 8, [](const Record& r) { return number(more(r, "saved")); }};

std::vector<Column> columns(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::floor: return {kName, kBytes, kMedian, kTail, kMin, kGigabytes, kMessages};
    case Benchmark::latency: return {kBytes, kMedian, kTail, kMin, kFloor, kOver, kAllocations, kSyscalls};
    case Benchmark::bandwidth: return {kBytes, kGigabytes, kMedian, kTail, kFloor, kOver, kAllocations, kSyscalls};
    case Benchmark::rate: return {kBytes, kMessages, kMedian, kTail, kFloor, kOver, kAllocations, kSyscalls};
    case Benchmark::all_reduce: return {kBytes, kMedian, kTail, kMin, kFloor, kOver, kAllocations, kSyscalls};
    case Benchmark::overlap:
      return {kBytes, kCompute, kCommunication, kTogether, kHidden, kSaved, kAllocations, kSyscalls};
  }
  return {};
}

std::string aligned(const std::string& text, int width) {
  const auto room = static_cast<std::size_t>(width);
  return text.size() >= room ? " " + text : std::string(room - text.size(), ' ') + text;
}

}  // namespace

std::string table_head(Benchmark benchmark, const Record& first) {
  std::string head = std::string(to_string(benchmark)) + ": " + std::to_string(first.ranks);
  head += first.threads ? " ranks, threads of one process" : " ranks, processes";
  if (!first.transport.empty()) head += ", " + first.transport;
  head += '\n';
  for (const Column& column : columns(benchmark))
    head += aligned(column.title, column.width);
  return head;
}

std::string table_row(Benchmark benchmark, const Record& record) {
  std::string row;
  for (const Column& column : columns(benchmark))
    row += aligned(column.text(record), column.width);
  return row;
}

}  // namespace bench
