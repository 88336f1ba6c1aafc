// For tests that run programs as a user does, in a shell.
#pragma once

#include <string>

namespace bench::testing {

struct Ended {
  int exit_code = -1;  ///< 128 + signal where one ended it; -1 where it could not be started
  std::string out;
  std::string err;
};

/// The whole file; empty where there is none.
[[nodiscard]] std::string slurp(const std::string& path);

/// A new, empty file that goes with this object.
class TemporaryFile {
 public:
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Runs a command line with the build's programs on PATH, /dev/null as standard input, and no job around it.
[[nodiscard]] Ended run(const std::string& command);

}  // namespace bench::testing
