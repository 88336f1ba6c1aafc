// Where results go: the table to standard output, JSON lines to a file. With `--json -` JSON has standard output to
// itself and the table goes to standard error.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "options.hpp"
#include "progress.hpp"
#include "record.hpp"

namespace bench {

/// Rank 0 has one that prints; those of the others do nothing.
class Reporter {
 public:
  /// Silent.
  Reporter() = default;
  /// Errors: throws Error(invalid_argument) when the JSON file cannot be written.
  explicit Reporter(const Options& options);

  /// One result. Errors: throws Error(io) when an output takes no more.
  void report(const Record& record);
  /// A line below the table. The same one twice counts once.
  void remark(const std::string& line);
  /// After the last result: what the floors were, and why figures are absent.
  void finish();

  [[nodiscard]] Progress& progress() noexcept { return progress_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  Benchmark benchmark_ = Benchmark::floor;
  Progress progress_;
  std::FILE* table_ = nullptr;  ///< null: silent
  std::FILE* json_ = nullptr;
  std::unique_ptr<std::FILE, CloseFile> file_;  ///< what json_ is, unless it is standard output
  bool head_printed_ = false;
  std::vector<std::string> remarks_;
};

}  // namespace bench
