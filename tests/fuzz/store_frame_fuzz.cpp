// Feeds arbitrary bytes to the store as if they came from ranks that have proven the token: the decoder must take
// nothing that it would not write itself, and the store must answer or refuse, never fail.
//
// The input is a row of frames: u8 rank, u16 length (little endian), that many bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/net/bootstrap/store_core.hpp"
#include "weft/net/bootstrap/store_frame.hpp"
#include "weft/runtime/assert.hpp"

namespace {

using namespace weft::net::store;

constexpr std::int32_t kRanks = 3;

/// Every frame that the store sends must be one that a client can read.
class ReadingClients final : public StoreOutput {
 public:
  void send(std::int32_t rank, OutFrame frame) override {
    WEFT_ASSERT(rank >= 0 && rank < kRanks, "the store answers a rank that does not exist");
    if (frame.tail) frame.head.insert(frame.head.end(), frame.tail->begin(), frame.tail->end());
    const Bytes bytes(frame.head);
    WEFT_ASSERT(bytes.size() > kLengthBytes, "the store sends less than a frame");
    const auto length = decode_length(bytes.first<kLengthBytes>(), kMaxFrameBytes);
    WEFT_ASSERT(length && *length == bytes.size() - kLengthBytes, "the store sends a wrong length");
    WEFT_ASSERT(decode(bytes.subspan(kLengthBytes)).has_value(), "the store sends what no client can read");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes input = std::as_bytes(std::span(data, size));
  ReadingClients clients;
  StoreCore store(kRanks, clients);
  bool connected[kRanks];
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    store.join(rank, "fuzz");
    connected[rank] = true;
  }
  while (input.size() >= 3) {
    const auto rank = std::to_integer<std::int32_t>(input[0]) % kRanks;
    const std::size_t length = std::to_integer<std::size_t>(input[1]) | std::to_integer<std::size_t>(input[2]) << 8;
    input = input.subspan(3);
    const Bytes bytes = input.first(std::min(length, input.size()));
    input = input.subspan(bytes.size());
    if (!connected[rank]) continue;
    const auto frame = decode(bytes);
    if (frame) {
      const auto again = encode(*frame);
      WEFT_ASSERT(again.size() == bytes.size() + kLengthBytes &&
                      std::equal(bytes.begin(), bytes.end(), again.begin() + kLengthBytes),
                  "decode and encode disagree");
    }
    if (!frame || !store.handle(rank, *frame)) {
      connected[rank] = false;
      store.gone(rank, "sent what no client sends");
    }
  }
  return 0;
}
