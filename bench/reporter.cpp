#include "reporter.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "json_line.hpp"
#include "table.hpp"
#include "weft/runtime/error.hpp"

namespace bench {
namespace {

void print(std::FILE* out, const std::string& line) {
  std::fprintf(out, "%s\n", line.c_str());
  if (std::fflush(out) != 0) throw weft::Error(weft::Errc::io, "output", std::strerror(errno), weft::kNoRank, errno);
}

}  // namespace

Reporter::Reporter(const Options& options)
    : benchmark_(options.benchmark), progress_(Progress::on_terminal()), table_(options.json == "-" ? stderr : stdout) {
  if (options.json == "-") {
    json_ = stdout;
  } else if (!options.json.empty()) {
    file_.reset(std::fopen(options.json.c_str(), "we"));
    json_ = file_.get();
    if (json_ == nullptr) {
      throw weft::Error(weft::Errc::invalid_argument, "--json", options.json + ": " + std::strerror(errno));
    }
  }
}

void Reporter::report(const Record& record) {
  if (table_ == nullptr) return;
  progress_.clear();
  if (!head_printed_) print(table_, table_head(benchmark_, record));
  head_printed_ = true;
  print(table_, table_row(benchmark_, record));
  if (json_ != nullptr) print(json_, json_line(record));
  if (!record.floor.empty() && benchmark_ != Benchmark::floor) {
    remark("floor of " + size_text(record.bytes) + ": " + record.floor);
  }
  for (const std::string& note : record.notes)
    remark(note);
}

void Reporter::finish() {
  if (table_ == nullptr) return;
  progress_.clear();
  for (const std::string& remark : remarks_)
    print(table_, "  " + remark);
}

void Reporter::remark(const std::string& line) {
  if (std::find(remarks_.begin(), remarks_.end(), line) == remarks_.end()) remarks_.push_back(line);
}

}  // namespace bench
