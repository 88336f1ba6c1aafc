#include "weft/runtime/assert.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace weft::detail {

void assertion_failed(const char* what, const char* file, int line) noexcept {
  char thread[16] = "?";
  (void)::pthread_getname_np(::pthread_self(), thread, sizeof thread);
  std::fprintf(stderr, "weft: %s (%s:%d, thread %s)\n", what, file, line, thread);
  std::abort();
}

}  // namespace weft::detail
