// The fixed header in front of every message between two ranks, on every transport.
//
// 24 bytes, so that 40 bytes of payload share one 64-byte line with it. Little endian, every field at a fixed
// offset; decode() trusts nothing. `channel` belongs to the transport that carries the header (shm keeps its ring
// sequence there) and is not interpreted above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "weft/runtime/error.hpp"

namespace weft::net {

inline constexpr std::uint8_t kWireVersion = 1;

/// What a packet means. The comment names the fields that carry it beside `length`, the bytes of payload behind it.
enum class PacketKind : std::uint8_t {
  eager = 1,       ///< a whole message: context, tag, aux = note, payload
  rts = 2,         ///< request to send: context, tag, aux = sender's slot, payload = RtsPayload
  cts = 3,         ///< clear to send: aux = sender's slot, payload = CtsPayload
  data = 4,        ///< a piece of a rendezvous message: aux = receiver's slot, tag = offset in bytes, payload
  fin = 5,         ///< the receiver is done with the sender's buffer: aux = sender's slot, tag = verdict
  credit = 6,      ///< tag = bytes of eager window given back
  rts_cancel = 7,  ///< the sender wants its RTS back: aux = sender's slot
  rts_gone = 8,    ///< answer to rts_cancel: it was still unmatched and is forgotten: aux = sender's slot
  goodbye = 9,     ///< the last packet of a rank that leaves: tag = Errc of its end, aux = rank at fault + 1, or 0
};

/// Host form and wire form are the same bytes on the little-endian machines that are supported.
struct WireHeader {
  std::uint8_t version = kWireVersion;
  PacketKind kind = PacketKind::eager;
  std::uint16_t channel = 0;
  std::uint32_t length = 0;  ///< bytes of payload behind the header
  std::uint64_t tag = 0;
  std::uint32_t context = 0;  ///< which communicator, and whether point-to-point or collective
  std::uint32_t aux = 0;
};

inline constexpr std::size_t kWireHeaderBytes = 24;
inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kPayloadBytesInFirstLine = kLineBytes - kWireHeaderBytes;

static_assert(sizeof(WireHeader) == kWireHeaderBytes && std::is_trivially_copyable_v<WireHeader>);
static_assert(offsetof(WireHeader, length) == 4 && offsetof(WireHeader, tag) == 8 &&
              offsetof(WireHeader, context) == 16);

/// Payload of `rts`.
struct RtsPayload {
  std::uint64_t length = 0;   ///< bytes of the whole message
  std::uint64_t address = 0;  ///< where it lies in the sender's memory, for transports that can get
  std::uint64_t key = 0;      ///< the transport's key for that memory; 0 where it needs none
  std::uint32_t note = 0;     ///< what `eager` carries in aux: the signature of a collective
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RtsPayload) == 32 && sizeof(RtsPayload) <= kPayloadBytesInFirstLine);

/// Payload of `cts`.
struct CtsPayload {
  std::uint64_t length = 0;  ///< bytes the receiver wants, at most what the RTS offered
  std::uint32_t slot = 0;    ///< receiver's slot, to be repeated in every `data`
  std::uint32_t reserved = 0;
};
static_assert(sizeof(CtsPayload) == 16);

/// Reads a header from `bytes`.
///
/// Errors: Errc::protocol for fewer than kWireHeaderBytes bytes, another version, an unknown kind, a length over
/// `max_payload_bytes`, or a length that the kind does not allow (rts, cts and the kinds without payload are exact).
[[nodiscard]] Errc decode(std::span<const std::byte> bytes, std::size_t max_payload_bytes, WireHeader& header) noexcept;

/// Writes kWireHeaderBytes at `to`.
void encode(const WireHeader& header, std::byte* to) noexcept;

}  // namespace weft::net
