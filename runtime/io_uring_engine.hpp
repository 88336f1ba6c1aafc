// The io engine on io_uring. The class itself is in the source file, the only one that knows liburing.
#pragma once

#include <memory>

#include "weft/runtime/io_engine.hpp"

namespace weft {

/// An engine, or why there is none.
struct IoUringAttempt {
  std::unique_ptr<IoEngine> engine;
  int error = 0;            ///< errno of io_uring_setup; 0 with an engine, or when Weft was built without liburing
  const char* reason = "";  ///< a clause for the notice; a literal
};

/// Asks the kernel for a ring. Errors: in the result; throws nothing but std::bad_alloc.
[[nodiscard]] IoUringAttempt try_make_io_uring_engine();

}  // namespace weft
