// Counts what a thread takes from the heap through operator new, so that a test can show that a path takes nothing, and
// a benchmark what an operation takes. Linking it replaces operator new of the whole program.
#pragma once

#include <cstdint>

namespace weft::test {

/// Calls of operator new by this thread since it started.
[[nodiscard]] std::uint64_t allocations_of_this_thread() noexcept;

}  // namespace weft::test
