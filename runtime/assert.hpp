// Assertions that stay on in release builds. They catch bugs in Weft or in the program that uses it; what the
// world outside may do (a dead peer, a full ring) is never an assertion but an Errc.
#pragma once

namespace weft::detail {

/// Prints `what`, the place and the name of this thread to stderr, then aborts. Any thread.
[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char* what, const char* file, int line) noexcept;

}  // namespace weft::detail

#define WEFT_ASSERT(condition, message) \
  (static_cast<bool>(condition) ? void(0) : ::weft::detail::assertion_failed(message, __FILE__, __LINE__))

// For checks inside per-byte or per-element loops.
#ifdef NDEBUG
#define WEFT_DEBUG_ASSERT(condition, message) void(0)
#else
#define WEFT_DEBUG_ASSERT(condition, message) WEFT_ASSERT(condition, message)
#endif
