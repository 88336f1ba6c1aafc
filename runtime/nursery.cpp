#include "weft/runtime/nursery.hpp"

namespace weft {

void Nursery::fail(std::exception_ptr failure) noexcept {
  if (failure_ == nullptr) failure_ = std::move(failure);
  scope_.cancel();
}

void Nursery::rethrow_failure() {
  if (failure_ == nullptr) return;
  if (!cancelled_here_) std::rethrow_exception(std::move(failure_));
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    if (error.code() != Errc::cancelled) throw;
  }
}

}  // namespace weft
