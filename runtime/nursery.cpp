#include "weft/runtime/nursery.hpp"

namespace weft {
namespace {

bool is_cancellation(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code() == Errc::cancelled;
  } catch (...) {
    return false;
  }
}

}  // namespace

void Nursery::fail(std::exception_ptr failure) noexcept {
  // What a cancel() of this nursery brings about must not hide a failure that comes after it.
  if (cancelled_here_ && is_cancellation(failure)) return;
  if (failure_ == nullptr) failure_ = std::move(failure);
  scope_.cancel();
}

}  // namespace weft
