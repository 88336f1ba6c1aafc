#include "weft/runtime/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace weft::detail {

void assertion_failed(const char* what, const char* file, int line) noexcept {
  std::fprintf(stderr, "weft: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace weft::detail
