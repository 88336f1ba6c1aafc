// ReactorPool: several reactors, each on a thread of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "weft/runtime/reactor.hpp"

namespace weft {

struct ReactorPoolOptions {
  std::size_t reactors = 0;  ///< 0: one per core this process may use
  bool bind = true;          ///< tie reactor i to the i-th of available_processors(); off when there are more reactors
  ReactorOptions reactor{};  ///< its idle policy is cut to no spinning where there are more reactors than cores
};

/// Starts its threads in the constructor, stops them in order in stop() or the destructor. Use the reactors by
/// submit_to(). Thread: any one thread may own it; reactor(i) is safe everywhere.
class ReactorPool {
 public:
  /// Errors: throws Error as Reactor does, or std::system_error when a thread cannot be started; nothing is left then.
  explicit ReactorPool(const ReactorPoolOptions& options = ReactorPoolOptions());
  ReactorPool(const ReactorPool&) = delete;
  ReactorPool& operator=(const ReactorPool&) = delete;
  ~ReactorPool();

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] Reactor& reactor(std::size_t index) noexcept;

  /// Waits until the tasks submitted so far have ended, and whatever they submit to each other; then ends the reactors
  /// and joins the threads. Nobody else may submit from now on, and the caller must not be one of the threads. May be
  /// called again.
  void stop() noexcept;

 private:
  class Member;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace weft
