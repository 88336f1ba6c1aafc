// Which cores this process may use, and how a thread is tied to one.
#pragma once

#include <string>
#include <vector>

#include "weft/runtime/error.hpp"

namespace weft {

/// Processors (numbers as the kernel counts them) for threads that each want a core of their own: one hardware thread
/// of every physical core this process may run on, then the second ones, and so on. Never empty.
/// Source: hwloc; the affinity mask of the process where hwloc cannot tell. Thread: any. Cost: reads /sys; keep it.
[[nodiscard]] std::vector<unsigned> available_processors();

/// Physical cores among them.
[[nodiscard]] unsigned available_cores();

/// Ties the calling thread to a processor. Errors: the errno in `native` where the kernel refuses.
[[nodiscard]] Outcome bind_this_thread(unsigned processor) noexcept;

/// Names the calling thread for debuggers and `top`; at most 15 bytes count.
void name_this_thread(const std::string& name) noexcept;

}  // namespace weft
