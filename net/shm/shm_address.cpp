#include "weft/net/shm/shm_address.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "weft/runtime/error.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace weft::net {
namespace {

constexpr std::string_view kPrefix = "weft-shm:1";
constexpr std::size_t kLongestField = 64;

std::string read_boot_id() {
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (got <= 0) {
    throw Error(Errc::unsupported, "shm transport", "/proc/sys/kernel/random/boot_id cannot be read", kNoRank, errno);
  }
  std::string id(text.data(), static_cast<std::size_t>(got));
  while (!id.empty() && id.back() == '\n')
    id.pop_back();
  return id;
}

std::string own_network_namespace() {
  struct stat ns {};
  if (::stat("/proc/self/ns/net", &ns) != 0) {
    throw Error(Errc::unsupported, "shm transport", "/proc/self/ns/net cannot be read", kNoRank, errno);
  }
  return std::to_string(ns.st_ino);
}

std::string random_name() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(Errc::io, "shm transport", "the kernel gives no random numbers", kNoRank, errno);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "weft-";
  for (const std::uint8_t byte : bytes) {
    name.push_back(kDigits[byte >> 4]);
    name.push_back(kDigits[byte & 15]);
  }
  return name;
}

/// Takes ";KEY=VALUE" off the front of `text`.
bool take_field(std::string_view& text, std::string_view key, std::string& value) {
  if (text.size() < key.size() + 2 || text[0] != ';' || text.substr(1, key.size()) != key) return false;
  if (text[key.size() + 1] != '=') return false;
  text.remove_prefix(key.size() + 2);
  const std::string_view found = text.substr(0, text.find(';'));
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  };
  if (found.empty() || found.size() > kLongestField || !std::all_of(found.begin(), found.end(), is_plain)) return false;
  value = found;
  text.remove_prefix(found.size());
  return true;
}

}  // namespace

ShmAddress make_shm_address() {
  ShmAddress address;
  address.boot_id = read_boot_id();
  address.network_namespace = own_network_namespace();
  address.socket_name = random_name();
  return address;
}

std::string to_string(const ShmAddress& address) {
  std::string text(kPrefix);
  text.append(";boot=").append(address.boot_id);
  text.append(";net=").append(address.network_namespace);
  text.append(";name=").append(address.socket_name);
  return text;
}

bool parse_shm_address(std::string_view text, ShmAddress& address) {
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text.remove_prefix(kPrefix.size());
  return take_field(text, "boot", address.boot_id) && take_field(text, "net", address.network_namespace) &&
         take_field(text, "name", address.socket_name) && text.empty();
}

std::string shm_unreachable_reason(std::string_view own, std::string_view peer) {
  ShmAddress here;
  ShmAddress there;
  if (own.empty()) return "this rank has no shared-memory transport";
  if (peer.empty()) return "the peer has no shared-memory transport";
  if (!parse_shm_address(own, here)) return "this rank's shared-memory address is malformed";
  if (!parse_shm_address(peer, there)) return "the peer's shared-memory address is malformed or of another version";
  if (here.boot_id != there.boot_id) return "the peer runs on another machine (its boot id differs)";
  if (here.network_namespace != there.network_namespace) {
    return "the peer runs in another network namespace (a container with its own network)";
  }
  return {};
}

}  // namespace weft::net
