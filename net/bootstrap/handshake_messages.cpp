#include "weft/net/bootstrap/handshake_messages.hpp"

#include <sodium.h>

#include <cstring>

#include "weft/net/bootstrap/sodium_ready.hpp"

namespace weft::net {
namespace {

constexpr std::string_view kHelloMagic = "WEFTHELO";
constexpr std::string_view kProofMagic = "WFPF";
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kRoleAt = 10;
constexpr std::size_t kPurposeAt = 11;
constexpr std::size_t kRankAt = 12;
constexpr std::size_t kNonceAt = 16;
constexpr std::size_t kVerdictAt = 4;
constexpr std::size_t kHashAt = 8;
constexpr std::byte kAccepted{1};
constexpr std::byte kRefused{2};

static_assert(kHelloMagic.size() == kHelloMagicBytes);
static_assert(kNonceAt + kNonceBytes == kHelloBytes);
static_assert(kHashAt + crypto_generichash_BYTES == kProofBytes);
static_assert(kJobTokenBytes == crypto_generichash_KEYBYTES);

using Hash = std::array<unsigned char, crypto_generichash_BYTES>;

[[nodiscard]] const unsigned char* as_uchar(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}

/// The hash that proves `prover`: it covers who proves, both purposes, both ranks and both nonces.
[[nodiscard]] Hash transcript_hash(const JobToken& token, Role prover, const HelloBytes& client,
                                   const HelloBytes& server) {
  detail::sodium_ready();
  const std::string_view domain = prover == Role::client ? "weft handshake, client" : "weft handshake, server";
  Hash hash{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, token.key().data(), token.key().size(), hash.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(domain.data()), domain.size());
  crypto_generichash_update(&state, as_uchar(client.data()), client.size());
  crypto_generichash_update(&state, as_uchar(server.data()), server.size());
  crypto_generichash_final(&state, hash.data(), hash.size());
  sodium_memzero(&state, sizeof state);
  return hash;
}

}  // namespace

std::string_view to_string(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::store: return "store";
    case Purpose::tcp: return "tcp";
    case Purpose::shm: return "shm";
  }
  return "unknown";
}

Nonce fresh_nonce() {
  detail::sodium_ready();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

HelloBytes make_hello(Role role, PeerHello hello, const Nonce& nonce) noexcept {
  HelloBytes bytes{};
  std::memcpy(bytes.data(), kHelloMagic.data(), kHelloMagic.size());
  bytes[kVersionAt] = static_cast<std::byte>(kHandshakeVersion & 0xff);
  bytes[kVersionAt + 1] = static_cast<std::byte>(kHandshakeVersion >> 8);
  bytes[kRoleAt] = static_cast<std::byte>(role);
  bytes[kPurposeAt] = static_cast<std::byte>(hello.purpose);
  const auto rank = static_cast<std::uint32_t>(hello.rank);
  for (std::size_t i = 0; i < 4; ++i)
    bytes[kRankAt + i] = static_cast<std::byte>((rank >> (8 * i)) & 0xff);
  std::memcpy(bytes.data() + kNonceAt, nonce.data(), nonce.size());
  return bytes;
}

bool has_hello_magic(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kHelloMagic.size() && std::memcmp(bytes.data(), kHelloMagic.data(), kHelloMagic.size()) == 0;
}

CheckedHello check_hello(const HelloBytes& bytes, Role expected_role) noexcept {
  CheckedHello checked;
  checked.code = Errc::protocol;
  if (!has_hello_magic(bytes)) {
    checked.reason = "the peer does not speak Weft's protocol";
    return checked;
  }
  const auto low = std::to_integer<unsigned>(bytes[kVersionAt]);
  const auto high = std::to_integer<unsigned>(bytes[kVersionAt + 1]);
  checked.version = static_cast<std::uint16_t>(low | (high << 8));
  if (checked.version != kHandshakeVersion) {
    checked.reason = "the peer is another version of Weft";
    return checked;
  }
  if (bytes[kRoleAt] != static_cast<std::byte>(expected_role)) {
    checked.reason = expected_role == Role::client ? "both ends act as the server" : "both ends act as the client";
    return checked;
  }
  const auto purpose = std::to_integer<unsigned>(bytes[kPurposeAt]);
  if (purpose < static_cast<unsigned>(Purpose::store) || purpose > static_cast<unsigned>(Purpose::shm)) {
    checked.reason = "the peer's hello has an unknown purpose";
    return checked;
  }
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < 4; ++i)
    rank |= std::to_integer<std::uint32_t>(bytes[kRankAt + i]) << (8 * i);
  checked.hello.purpose = static_cast<Purpose>(purpose);
  checked.hello.rank = static_cast<std::int32_t>(rank);
  checked.code = Errc::ok;
  return checked;
}

ProofBytes make_proof(const JobToken& token, Role prover, const HelloBytes& client, const HelloBytes& server) {
  const Hash hash = transcript_hash(token, prover, client, server);
  ProofBytes bytes{};
  std::memcpy(bytes.data(), kProofMagic.data(), kProofMagic.size());
  bytes[kVerdictAt] = kAccepted;
  std::memcpy(bytes.data() + kHashAt, hash.data(), hash.size());
  return bytes;
}

ProofBytes make_refusal() noexcept {
  ProofBytes bytes{};
  std::memcpy(bytes.data(), kProofMagic.data(), kProofMagic.size());
  bytes[kVerdictAt] = kRefused;
  return bytes;
}

Errc check_proof(const ProofBytes& bytes, const JobToken& token, Role prover, const HelloBytes& client,
                 const HelloBytes& server) {
  if (std::memcmp(bytes.data(), kProofMagic.data(), kProofMagic.size()) != 0) return Errc::protocol;
  for (std::size_t i = kVerdictAt + 1; i < kHashAt; ++i) {
    if (bytes[i] != std::byte{0}) return Errc::protocol;
  }
  if (bytes[kVerdictAt] == kRefused) return Errc::unauthorized;
  if (bytes[kVerdictAt] != kAccepted) return Errc::protocol;
  const Hash expected = transcript_hash(token, prover, client, server);
  const bool same = sodium_memcmp(expected.data(), bytes.data() + kHashAt, expected.size()) == 0;
  return same ? Errc::ok : Errc::unauthorized;
}

}  // namespace weft::net
