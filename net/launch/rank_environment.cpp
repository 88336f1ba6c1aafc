#include "weft/net/launch/rank_environment.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft::net::launch {
namespace {

// Set by another launcher around us, or by the user for another kind of start: they would move the store to a port
// where this job has none.
constexpr std::array<std::string_view, 4> kRemoved = {"WEFT_STORE_FD", "WEFT_STORE_PORT", "TORCHELASTIC_RUN_ID",
                                                      "TORCHELASTIC_USE_AGENT_STORE"};

}  // namespace

std::vector<RankBlock> rank_blocks(std::int32_t ranks, std::int32_t ranks_per_process) {
  std::vector<RankBlock> blocks;
  for (std::int32_t first = 0; first < ranks;) {
    const std::int32_t count = std::min(ranks_per_process, ranks - first);
    blocks.push_back({first, count});
    first += count;
  }
  return blocks;
}

Result<std::string> make_job_token() {
  std::array<unsigned char, 32> bytes{};
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  // Up to 256 bytes getrandom never returns less than it was asked for.
  if (got != static_cast<ssize_t>(bytes.size())) {
    return Error(Errc::io, "job token", "the kernel gives no random bytes", kNoRank, errno);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

std::vector<std::string> rank_environment(std::span<const std::string> base, const JobIdentity& job, RankBlock block,
                                          int store_fd) {
  std::vector<std::pair<std::string, std::string>> set = {
      {"RANK", std::to_string(block.first)},
      {"WORLD_SIZE", std::to_string(job.ranks)},
      {"LOCAL_RANK", std::to_string(block.first)},
      {"LOCAL_WORLD_SIZE", std::to_string(job.ranks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(job.port)},
      {"WEFT_NUM_RANKS", std::to_string(job.ranks)},
      {"WEFT_RANKS_PER_PROCESS", std::to_string(job.ranks_per_process)},
      {"WEFT_JOB_TOKEN", job.token},
  };
  set.insert(set.end(), job.settings.begin(), job.settings.end());
  if (store_fd >= 0) set.emplace_back("WEFT_STORE_FD", std::to_string(store_fd));

  std::vector<std::string> environment;
  for (const std::string& entry : base) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const bool replaced = std::find(kRemoved.begin(), kRemoved.end(), name) != kRemoved.end() ||
                          std::any_of(set.begin(), set.end(), [&](const auto& s) { return s.first == name; });
    if (!replaced) environment.push_back(entry);
  }
  for (const auto& [name, value] : set) {
    std::string entry = name;
    entry += '=';
    entry += value;
    environment.push_back(std::move(entry));
  }
  return environment;
}

}  // namespace weft::net::launch
