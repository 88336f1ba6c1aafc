#include "weft/net/bootstrap/job_token.hpp"

#include <sodium.h>

#include <string>

#include "weft/net/bootstrap/sodium_ready.hpp"

namespace weft::net {
namespace {

[[nodiscard]] int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Result<JobToken> JobToken::from_hex(std::string_view digits) {
  if (digits.size() != 2 * kJobTokenBytes) {
    return Error(Errc::invalid_argument, "job token",
                 "a token is 64 hex digits, this text has " + std::to_string(digits.size()) + " characters");
  }
  detail::sodium_ready();
  JobToken token;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const int value = hex_value(digits[i]);
    if (value < 0) {
      return Error(Errc::invalid_argument, "job token",
                   "a token is 64 hex digits, character " + std::to_string(i + 1) + " of this text is none");
    }
    unsigned char& byte = token.bytes_[i / 2];
    byte = static_cast<unsigned char>((byte << 4) | value);
  }
  return token;
}

JobToken JobToken::random() {
  detail::sodium_ready();
  JobToken token;
  randombytes_buf(token.bytes_.data(), token.bytes_.size());
  return token;
}

JobToken JobToken::derived(std::string_view text) {
  detail::sodium_ready();
  // The key separates this use of the hash from every other one; it need not be secret.
  static constexpr std::string_view kDomain = "weft job token from launcher text";
  static_assert(kDomain.size() >= crypto_generichash_KEYBYTES_MIN && kDomain.size() <= crypto_generichash_KEYBYTES_MAX);
  JobToken token;
  crypto_generichash(token.bytes_.data(), token.bytes_.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), reinterpret_cast<const unsigned char*>(kDomain.data()), kDomain.size());
  return token;
}

JobToken::~JobToken() {
  sodium_memzero(bytes_.data(), bytes_.size());
}

bool operator==(const JobToken& a, const JobToken& b) noexcept {
  return sodium_memcmp(a.bytes_.data(), b.bytes_.data(), a.bytes_.size()) == 0;
}

}  // namespace weft::net
