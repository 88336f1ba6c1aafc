// Feeds arbitrary bytes to decode(): what it accepts must keep every rule of the wire and survive a round trip.
// The first byte of the input chooses the packet limit, the rest is what arrived.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "weft/net/protocol/wire_header.hpp"
#include "weft/runtime/assert.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::net;
  if (size == 0) return 0;
  const std::size_t max_payload_bytes = std::size_t{1} << (data[0] % 33);
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));

  WireHeader header;
  const Errc outcome = decode(bytes, max_payload_bytes, header);
  WEFT_ASSERT(outcome == Errc::ok || outcome == Errc::protocol, "decode: another error than it promises");
  if (outcome != Errc::ok) return 0;

  WEFT_ASSERT(bytes.size() >= kWireHeaderBytes, "decode: accepted a truncated header");
  WEFT_ASSERT(header.version == kWireVersion, "decode: accepted another version");
  WEFT_ASSERT(header.length <= max_payload_bytes, "decode: accepted a length over the limit");
  switch (header.kind) {
    case PacketKind::eager: break;
    case PacketKind::data: WEFT_ASSERT(header.length > 0, "decode: accepted data without payload"); break;
    case PacketKind::rts:
      WEFT_ASSERT(header.length == sizeof(RtsPayload), "decode: accepted an RTS of odd length");
      break;
    case PacketKind::cts:
      WEFT_ASSERT(header.length == sizeof(CtsPayload), "decode: accepted a CTS of odd length");
      break;
    case PacketKind::fin:
    case PacketKind::credit:
    case PacketKind::rts_cancel:
    case PacketKind::rts_gone:
    case PacketKind::goodbye: WEFT_ASSERT(header.length == 0, "decode: accepted payload where there is none"); break;
    default: WEFT_ASSERT(false, "decode: accepted an unknown kind");
  }
  std::byte again[kWireHeaderBytes];
  encode(header, again);
  WEFT_ASSERT(std::memcmp(again, bytes.data(), kWireHeaderBytes) == 0, "decode and encode disagree");
  return 0;
}
