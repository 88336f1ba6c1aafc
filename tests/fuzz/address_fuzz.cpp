// Feeds arbitrary text to the readers of the addresses that ranks publish.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/net/shm/shm_address.hpp"
#include "weft/net/tcp/tcp_address.hpp"
#include "weft/runtime/assert.hpp"
#include "weft/runtime/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  ShmAddress shm;
  if (parse_shm_address(text, shm)) WEFT_ASSERT(to_string(shm) == text, "parse_shm_address accepted another text");
  (void)shm_unreachable_reason(text, text);

  try {
    const auto endpoints = parse_tcp_address(text);
    WEFT_ASSERT(!endpoints.empty(), "parse_tcp_address: no endpoint and no error");
    for (const TcpEndpoint& endpoint : endpoints) {
      WEFT_ASSERT(!endpoint.host.empty() && endpoint.port != 0, "parse_tcp_address: nowhere to connect to");
    }
  } catch (const Error& error) {
    WEFT_ASSERT(error.code() == Errc::protocol, "parse_tcp_address: another error than it promises");
  }
  return 0;
}
