// The four messages of the handshake (handshake.hpp) as byte arrays: how they are made and what is checked. No sockets,
// no coroutines, nothing allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/runtime/error.hpp"

namespace weft::net {

/// What a connection is for; both ends must agree.
enum class Purpose : std::uint8_t { store = 1, tcp = 2, shm = 3 };

[[nodiscard]] std::string_view to_string(Purpose purpose) noexcept;

/// What an end says of itself. The rank is believed only as far as the token is: any rank may claim any number.
struct PeerHello {
  Purpose purpose;
  std::int32_t rank;
};

/// The version of everything that Weft processes say to each other. Peers of another version are turned away.
inline constexpr std::uint16_t kHandshakeVersion = 1;

enum class Role : std::uint8_t { client = 1, server = 2 };

/// Size, magic and the place of the version never change, so that two versions can tell each other what they are.
inline constexpr std::size_t kHelloBytes = 48;
inline constexpr std::size_t kHelloMagicBytes = 8;
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 40;

using HelloBytes = std::array<std::byte, kHelloBytes>;
using ProofBytes = std::array<std::byte, kProofBytes>;
using Nonce = std::array<std::byte, kNonceBytes>;

/// 32 bytes nobody has seen before.
[[nodiscard]] Nonce fresh_nonce();

/// Layout: magic[8] | version u16 | role u8 | purpose u8 | rank i32 | nonce[32]; numbers little endian.
[[nodiscard]] HelloBytes make_hello(Role role, PeerHello hello, const Nonce& nonce) noexcept;

/// The first bytes are those of a hello of any version.
[[nodiscard]] bool has_hello_magic(std::span<const std::byte> bytes) noexcept;

struct CheckedHello {
  Errc code = Errc::ok;       ///< ok or protocol
  std::uint16_t version = 0;  ///< the other side's, where the magic is right
  PeerHello hello{};          ///< meaningful with ok only
  std::string_view reason{};  ///< a literal; empty with ok
};

/// Reads the other side's hello, which must come from `expected_role`.
[[nodiscard]] CheckedHello check_hello(const HelloBytes& bytes, Role expected_role) noexcept;

/// Layout: magic[4] | verdict u8 | zero[3] | keyed hash[32].
[[nodiscard]] ProofBytes make_proof(const JobToken& token, Role prover, const HelloBytes& client,
                                    const HelloBytes& server);
/// What a server sends in place of its proof when it does not accept the client's.
[[nodiscard]] ProofBytes make_refusal() noexcept;

/// ok; unauthorized (a wrong hash, or a refusal); protocol (no proof at all). Takes the same time for every wrong hash.
[[nodiscard]] Errc check_proof(const ProofBytes& bytes, const JobToken& token, Role prover, const HelloBytes& client,
                               const HelloBytes& server);

}  // namespace weft::net
