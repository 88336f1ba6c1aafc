#include "weft/net/protocol/wire_header.hpp"

#include <bit>
#include <cstring>

namespace weft::net {

static_assert(std::endian::native == std::endian::little,
              "the wire format is the memory format of little-endian hosts");

namespace {

bool length_fits(PacketKind kind, std::uint32_t length) noexcept {
  switch (kind) {
    case PacketKind::eager: return true;
    case PacketKind::data: return length > 0;
    case PacketKind::rts: return length == sizeof(RtsPayload);
    case PacketKind::cts: return length == sizeof(CtsPayload);
    case PacketKind::fin:
    case PacketKind::credit:
    case PacketKind::rts_cancel:
    case PacketKind::rts_gone:
    case PacketKind::goodbye: return length == 0;
  }
  return false;  // a kind that no sender of this version knows
}

}  // namespace

Errc decode(std::span<const std::byte> bytes, std::size_t max_payload_bytes, WireHeader& header) noexcept {
  if (bytes.size() < kWireHeaderBytes) return Errc::protocol;
  std::memcpy(&header, bytes.data(), kWireHeaderBytes);
  if (header.version != kWireVersion) return Errc::protocol;
  if (header.length > max_payload_bytes) return Errc::protocol;
  return length_fits(header.kind, header.length) ? Errc::ok : Errc::protocol;
}

void encode(const WireHeader& header, std::byte* to) noexcept { std::memcpy(to, &header, kWireHeaderBytes); }

}  // namespace weft::net
