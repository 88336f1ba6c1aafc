// Which cores this process may use, and how a thread is tied to one.
#pragma once

#include <string>
#include <vector>

#include "weft/runtime/error.hpp"

namespace weft {

/// Processors (numbers as the kernel counts them) for threads that each want a core of their own: one hardware thread
/// of every physical core this process may run on, then the second ones, and so on. Never empty.
/// It is what the first caller of this process may use: whoever binds a thread later does not change it.
/// Source: hwloc; the affinity mask of the process where hwloc cannot tell. Thread: any.
[[nodiscard]] std::vector<unsigned> available_processors();

/// Physical cores among them.
[[nodiscard]] unsigned available_cores();

/// Ties the calling thread to a processor. Errors: the errno in `native` where the kernel refuses.
[[nodiscard]] Outcome bind_this_thread(unsigned processor) noexcept;

/// Lets the calling thread run on all of available_processors(): for a thread that was started by a bound one.
void unbind_this_thread() noexcept;

/// Ties the thread that makes it to a processor, and gives it its former mask back in the end. On one thread only.
class ThreadBinding {
 public:
  ThreadBinding() noexcept;
  ThreadBinding(const ThreadBinding&) = delete;
  ThreadBinding& operator=(const ThreadBinding&) = delete;
  ~ThreadBinding();

  /// Errors: as bind_this_thread().
  [[nodiscard]] Outcome bind(unsigned processor) noexcept;

 private:
  std::vector<unsigned> before_;  ///< empty until bind()
};

/// Names the calling thread for debuggers and `top`; at most 15 bytes count.
void name_this_thread(const std::string& name) noexcept;

}  // namespace weft
