// HostStream: a stream on the CPU. One worker thread runs what is enqueued, in order, as a CUDA stream would.
//
//     HostStream stream;
//     stream.launch([=] { layer_backward(...); });
//     co_await stream.synchronize();
//
// Lifetime: what queued work refers to must live until the work has run; a HostStream's destructor waits for that, so
// declare a stream after the memory its work uses (and after a BucketScheduler whose gradients it computes).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/gpu/flag.hpp"
#include "weft/gpu/stream_work.hpp"
#include "weft/runtime/task.hpp"

namespace weft::gpu {

/// A point in the work of a HostStream that other streams can wait for. Pinned.
/// Lifetime: as a Flag's. Thread: one at a time.
class HostEvent {
 public:
  HostEvent() noexcept = default;

 private:
  friend class HostStream;
  Flag flag_;
  std::uint64_t recorded_ = 0;  ///< the value that stands for the latest record()
};

struct HostStreamOptions {
  std::string name = "stream";        ///< of the worker thread; 15 bytes count
  std::optional<unsigned> processor;  ///< ties the worker to it; else it may run wherever the process may
};

/// See the top of the file. Satisfies StreamLike. Pinned.
///
/// The queue grows as long as work is enqueued faster than it runs: waiting for room could deadlock a reactor whose
/// stream waits for that very reactor.
///
/// Errors: the first exception that work throws ends the stream. What is queued behind it and what comes later is
/// dropped, every flag it was to write shows kFlagAborted, and every synchronize() rethrows the exception. So does a
/// wait_value() on an aborted flag, with Error(closed). Only a new stream helps.
/// Thread: enqueue and await on the reactor it was made on. Its worker blocks every signal and sleeps while idle.
/// Cost: enqueuing takes an uncontended lock; no allocation once the queue has seen its greatest depth (256 are
/// reserved) and closures fit StreamWork::kInlineBytes.
class HostStream {
 public:
  using Event = HostEvent;
  static constexpr bool kWakesReactor = true;

  /// Errors: throws Error(invalid_argument) on a thread without a reactor, Error(exhausted) when no thread can be
  /// started, Error(invalid_argument) when it cannot be tied to the processor.
  explicit HostStream(const HostStreamOptions& options = HostStreamOptions());
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  /// Blocks until everything enqueued has run; for ever, if the stream waits for a flag that nobody writes.
  ~HostStream();

  /// Runs `function()` on the worker.
  template <typename Function>
  void launch(Function&& function) {
    enqueue(Operation(StreamWork(std::forward<Function>(function))));
  }

  /// The ranges must not overlap. Errors: throws Error(invalid_argument) when they differ in length.
  void copy(std::span<std::byte> to, std::span<const std::byte> from);

  void write_value(Flag& flag, std::uint64_t value) { enqueue(Operation(Kind::write, &flag, nullptr, value)); }
  void wait_value(const Flag& flag, std::uint64_t value) { enqueue(Operation(Kind::wait, nullptr, &flag, value)); }
  void record(HostEvent& event) { write_value(event.flag_, ++event.recorded_); }
  void wait(const HostEvent& event) { wait_value(event.flag_, event.recorded_); }

  /// Ends when everything enqueued before the await has run.
  /// Errors: what its work has thrown; cancelled, timed_out (the work goes on all the same).
  [[nodiscard]] Task<void> synchronize();

 private:
  enum class Kind : std::uint8_t { work, write, wait };

  struct Operation {
    explicit Operation(StreamWork closure) noexcept : work(std::move(closure)) {}
    Operation(Kind what, Flag* to, const Flag* from, std::uint64_t number) noexcept
        : kind(what), written(to), awaited(from), value(number) {}

    Kind kind = Kind::work;
    Flag* written = nullptr;
    const Flag* awaited = nullptr;
    std::uint64_t value = 0;
    StreamWork work;
  };

  void enqueue(Operation operation);
  void start_worker(const HostStreamOptions& options);
  void run_worker() noexcept;
  void execute(Operation& operation) noexcept;

  FlagPoller poller_;
  Flag synchronized_;
  std::uint64_t synchronize_calls_ = 0;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Operation> queue_;  ///< guarded by mutex_
  bool closing_ = false;          ///< guarded by mutex_

  /// Written by the worker before it aborts the first flag, read after an aborted flag was seen, or by the worker.
  std::exception_ptr failure_;
  std::thread worker_;
};

}  // namespace weft::gpu
