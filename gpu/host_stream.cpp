#include "weft/gpu/host_stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <future>
#include <system_error>

#include "weft/gpu/stream.hpp"
#include "weft/runtime/topology.hpp"

namespace weft::gpu {

static_assert(StreamLike<HostStream>);

namespace {

constexpr std::size_t kReservedOperations = 256;  // 40 KiB; a step of a deep network enqueues some hundred

Reactor& reactor_of_this_thread() {
  Reactor* const reactor = Reactor::current();
  if (reactor == nullptr) {
    throw Error(Errc::invalid_argument, "HostStream", "no reactor runs on this thread; make streams inside a task");
  }
  return *reactor;
}

/// Blocks every signal of this thread for its lifetime: a thread started meanwhile inherits that.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

HostStream::HostStream(const HostStreamOptions& options)
    : poller_(reactor_of_this_thread()), synchronized_(*Reactor::current()) {
  queue_.reserve(kReservedOperations);
  start_worker(options);
}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  arrived_.notify_one();
  worker_.join();
}

void HostStream::start_worker(const HostStreamOptions& options) {
  std::promise<Outcome> bound;
  std::future<Outcome> outcome = bound.get_future();
  try {
    const SignalsBlocked signals_blocked;
    worker_ = std::thread([this, &options, &bound] {
      name_this_thread(options.name);
      Outcome result;
      if (options.processor) {
        result = bind_this_thread(*options.processor);
      } else {
        unbind_this_thread();  // a rank is bound to its core; compute is what the other cores are for
      }
      bound.set_value(result);  // `options` and `bound` may be gone from here on
      if (result.ok()) run_worker();
    });
  } catch (const std::system_error& error) {
    throw Error(Errc::exhausted, "HostStream", "cannot start a thread", kNoRank, error.code().value());
  }
  const Outcome result = outcome.get();
  if (result.ok()) return;
  worker_.join();
  throw Error(Errc::invalid_argument, "HostStream",
              "cannot tie its thread to processor " + std::to_string(*options.processor), kNoRank, result.native);
}

void HostStream::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (to.size() != from.size()) {
    throw Error(Errc::invalid_argument, "HostStream::copy",
                "from " + std::to_string(from.size()) + " bytes to " + std::to_string(to.size()));
  }
  if (to.empty()) return;
  launch([to, from] { std::memcpy(to.data(), from.data(), from.size()); });
}

Task<void> HostStream::synchronize() {
  const std::uint64_t call = ++synchronize_calls_;
  write_value(synchronized_, call);
  try {
    co_await poller_.until(synchronized_, call);
  } catch (const Error&) {
    if (!synchronized_.aborted()) throw;
  }
  if (synchronized_.aborted()) std::rethrow_exception(failure_);
}

void HostStream::enqueue(Operation operation) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    was_empty = queue_.empty();
    queue_.push_back(std::move(operation));
  }
  if (was_empty) arrived_.notify_one();  // a queue that was not empty has woken the worker already
}

void HostStream::run_worker() noexcept {
  std::vector<Operation> taken;
  taken.reserve(kReservedOperations);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      while (queue_.empty() && !closing_)
        arrived_.wait(lock);
      if (queue_.empty()) return;
      taken.swap(queue_);
    }
    for (Operation& operation : taken)
      execute(operation);
    taken.clear();
  }
}

void HostStream::execute(Operation& operation) noexcept {
  switch (operation.kind) {
    case Kind::work:
      if (failure_ == nullptr) {
        try {
          operation.work();
        } catch (...) {
          failure_ = std::current_exception();
        }
      }
      operation.work.reset();  // captures go as soon as their work has run
      return;
    case Kind::write: operation.written->store(failure_ == nullptr ? operation.value : kFlagAborted); return;
    case Kind::wait:
      if (failure_ != nullptr) return;
      operation.awaited->block_until(operation.value);
      if (operation.awaited->aborted()) {
        failure_ = std::make_exception_ptr(
            Error(Errc::closed, "wait_value", "the flag that this stream waited for was aborted by its writer"));
      }
      return;
  }
}

}  // namespace weft::gpu
