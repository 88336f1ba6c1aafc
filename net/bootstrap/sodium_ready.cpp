#include "weft/net/bootstrap/sodium_ready.hpp"

#include <sodium.h>

#include "weft/runtime/assert.hpp"

namespace weft::net::detail {

void sodium_ready() {
  // 1 means that it was ready already; libsodium locks inside.
  const int result = sodium_init();
  WEFT_ASSERT(result >= 0, "libsodium cannot start: the system gives no random numbers");
}

}  // namespace weft::net::detail
