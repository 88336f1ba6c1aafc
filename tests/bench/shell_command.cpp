#include "bench/shell_command.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace bench::testing {

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TemporaryFile::TemporaryFile() {
  std::string name = (std::filesystem::temp_directory_path() / "weft_bench_XXXXXX").string();
  const int fd = ::mkstemp(name.data());
  if (fd >= 0) ::close(fd);
  path_ = name;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Ended run(const std::string& command) {
  const TemporaryFile errors;
  // Variables of a job around this test would make every run a part of it.
  const std::string line = "exec 2>" + errors.path() +
                           " </dev/null; unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_RANK " +
                           "LOCAL_WORLD_SIZE WEFT_JOB_TOKEN; PATH=" + WEFT_TEST_BIN_DIR + ":$PATH; " + command;
  Ended ended;
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> block{};
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    ended.out.append(block.data(), count);
  }
  const int status = ::pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.err = slurp(errors.path());
  return ended;
}

}  // namespace bench::testing
