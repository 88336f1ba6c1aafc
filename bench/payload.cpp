#include "payload.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

// splitmix64 (Steele, Lea and Flood, 2014): neighbouring inputs give unlike outputs.
std::uint64_t word_at(std::uint64_t seed, std::size_t index) noexcept {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + index;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

void fill_payload(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
}

void check_payload(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    if (std::memcmp(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at)) == 0) continue;
    throw std::runtime_error("check failed: message " + std::to_string(seed) + " of " + std::to_string(bytes.size()) +
                             " bytes is wrong in the word at byte " + std::to_string(at));
  }
}

void check_length(std::size_t length, std::size_t expected) {
  if (length == expected) return;
  throw std::runtime_error("check failed: a message has " + std::to_string(length) + " bytes instead of " +
                           std::to_string(expected));
}

}  // namespace bench
