// BucketScheduler: gradients are reduced over all ranks while the backward pass still computes.
//
//     BucketScheduler scheduler(world, parameters);              // before the streams: see Lifetime
//     HostStream stream;
//     for each step:
//       for each layer, last one first:
//         stream.launch(backward of the layer, into scheduler.gradient(id));
//         scheduler.mark_ready(id, stream);
//       co_await scheduler.step();                               // all gradients are averages now
//
// The gradients are views into one flat buffer, neighbours in the backward pass are neighbours in it, and buckets are
// contiguous parts of it: nothing is copied. A bucket is launched when its last gradient is ready, strictly in the
// order of their indices, which is the same on all ranks whatever becomes ready first; several fly at once. No message
// but those of the reductions is sent for a step, except in the first, which checks that all ranks registered the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/gpu/bucket_options.hpp"
#include "weft/gpu/bucket_transport.hpp"
#include "weft/gpu/flag.hpp"
#include "weft/gpu/gradient_bucket.hpp"
#include "weft/gpu/step_timing.hpp"
#include "weft/gpu/stream.hpp"
#include "weft/net/communicator.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/task.hpp"

namespace weft::gpu {

/// See the top of the file. Pinned. Thread: its rank's reactor, on which it is made and destroyed.
///
/// Lifetime: the communicator must outlive it and stay in place. Its streams write into its gradients and flags, so
/// their work must have ended before it is destroyed: declare streams after it. Between the beginning of a step() and
/// its end no other collective may run on the communicator.
///
/// Errors: an Error that step() throws ends the scheduler: ranks have got to different places. mark_ready() and step()
/// throw Error(closed) from then on. What mark_ready() itself throws harms nothing.
class BucketScheduler {
 public:
  /// Errors: throws Error(invalid_argument) for options that are 0 where they must not be, sizes that do not fit
  /// into memory, or a thread without a reactor.
  BucketScheduler(Communicator& communicator, std::span<const ParameterInfo> parameters,
                  const BucketOptions& options = BucketOptions())
      : BucketScheduler(make_all_reduce_transport(communicator, options.op), parameters, options) {}
  /// With another way to reduce a bucket.
  BucketScheduler(std::unique_ptr<BucketTransport> transport, std::span<const ParameterInfo> parameters,
                  const BucketOptions& options = BucketOptions());
  BucketScheduler(const BucketScheduler&) = delete;
  BucketScheduler& operator=(const BucketScheduler&) = delete;
  /// Blocks until every mark_ready() of an unfinished step has been reached by its stream, because up to there the
  /// stream's work writes gradients.
  ~BucketScheduler();

  [[nodiscard]] std::size_t parameter_count() const noexcept { return parameters_.size(); }
  [[nodiscard]] const ParameterInfo& parameter(std::size_t id) const noexcept { return parameters_[id]; }

  /// Where the gradient of parameter `id` belongs: count floats, aligned to 64 bytes, zero at first. Nobody else may
  /// touch it from mark_ready() to the end of step().
  [[nodiscard]] std::span<float> gradient(std::size_t id) noexcept;
  /// All gradients with the padding between them, which is always zero.
  [[nodiscard]] std::span<float> gradients() noexcept { return {floats_.get(), plan_.floats}; }
  [[nodiscard]] std::span<const GradientBucket> buckets() const noexcept { return plan_.buckets; }

  /// The compute of the next step begins now. Optional: else it begins at the step's first mark_ready().
  void begin_step() noexcept;

  /// Gradient `id` is ready when `stream` has done all its work enqueued so far. In any order; each once a step, before
  /// step() or while it runs.
  /// Errors: throws Error(invalid_argument) that names the parameter when it was marked in this step already; closed.
  /// Cost: no allocation.
  template <StreamLike Stream>
  void mark_ready(std::size_t id, Stream& stream) {
    stream.write_value(mark(id, !Stream::kWakesReactor), steps_ + 1);
  }
  /// Gradient `id` is ready now: for gradients that the reactor's own thread computes.
  void mark_ready(std::size_t id) { mark(id, false).store(steps_ + 1); }

  /// Reduces all gradients, each bucket as soon as it is ready. When it returns, every gradient holds its reduction,
  /// and work enqueued anywhere from then on sees it. One at a time; always await it.
  /// Errors: timed_out, under a deadline or after the option's ready_timeout, names the gradients that are missing;
  /// closed when a stream failed before it had computed a gradient (its synchronize() says why); mismatch when ranks
  /// registered different parameters or options; those of all_reduce, naming the bucket; cancelled. invalid_argument
  /// and closed are also thrown by the call itself.
  /// Cost: no allocation in steady state.
  [[nodiscard]] Task<void> step();

  /// Work that is enqueued on `stream` from now on runs after the reduction of the step that runs now (step() has been
  /// called), without the reactor in between. Does nothing when none runs. If that step fails, so does the stream.
  template <StreamLike Stream>
  void wait_on(Stream& stream) {
    if (running_) stream.wait_value(done_, steps_ + 1);
  }

  /// Steps that have ended well.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Of the last step that ended well, by the reactor's clock: gradients count when their stream got there, not when
  /// the reactor noticed.
  [[nodiscard]] const StepTiming& timing() const noexcept { return timing_; }

 private:
  struct FreeFloats {
    void operator()(float* floats) const noexcept;
  };

  /// Notes that `id` is on its way and gives its flag.
  Flag& mark(std::size_t id, bool silent);
  void check_usable(const char* operation) const;
  [[nodiscard]] Task<void> run_step();
  static Task<void> launch_buckets(Nursery& nursery, BucketScheduler* self);
  [[nodiscard]] Task<void> await_bucket(std::size_t index);
  [[nodiscard]] Task<void> await_gradient(std::size_t id);
  [[nodiscard]] Task<void> reduce_bucket(std::size_t index);
  void start_clock() noexcept;
  void complete_step() noexcept;
  [[noreturn]] void fail_step(const std::exception_ptr& failure);
  [[nodiscard]] std::string describe_bucket(std::size_t index) const;
  [[nodiscard]] std::string describe_missing() const;

  Reactor& reactor_;
  std::unique_ptr<BucketTransport> transport_;
  std::vector<ParameterInfo> parameters_;
  BucketOptions options_;
  BucketPlan plan_;
  std::unique_ptr<float[], FreeFloats> floats_;

  // Steps are numbered from 1; their numbers are the values of the flags.
  std::uint64_t steps_ = 0;
  std::vector<std::uint64_t> marked_;  ///< by parameter: the last step in which it was marked
  std::unique_ptr<Flag[]> ready_;      ///< by parameter: the last step whose gradient is computed
  Flag done_;                          ///< the last step that is reduced
  FlagPoller poller_;

  bool agreed_ = false;   ///< all ranks registered the same
  bool running_ = false;  ///< step() has been called and has not ended
  std::string broken_;    ///< why the scheduler takes no more steps; empty while all is well
  std::size_t in_flight_ = 0;
  weft::Event slot_free_;

  bool clock_runs_ = false;  ///< computing_.begin is that of the open step
  TimeInterval computing_;
  std::vector<TimeInterval> flights_;  ///< by bucket
  StepTiming timing_;
};

}  // namespace weft::gpu
