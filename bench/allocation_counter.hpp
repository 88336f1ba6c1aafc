// Counts what a thread takes from the heap, so that a benchmark can say what an operation costs besides time. Linking
// this file replaces operator new of the whole program.
#pragma once

#include <cstdint>

namespace bench {

/// Calls of operator new by this thread since it started. Cost: none worth naming.
[[nodiscard]] std::uint64_t allocations_of_this_thread() noexcept;

}  // namespace bench
