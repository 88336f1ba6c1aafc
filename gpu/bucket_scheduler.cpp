#include "weft/gpu/bucket_scheduler.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/gpu/bucket_agreement.hpp"
#include "weft/runtime/deadline.hpp"

namespace weft::gpu {
namespace {

constexpr std::size_t kMaxNamesInText = 8;

Reactor& reactor_of_this_thread() {
  Reactor* const reactor = Reactor::current();
  if (reactor == nullptr) {
    throw Error(Errc::invalid_argument, "BucketScheduler", "no reactor runs on this thread; make it inside a task");
  }
  return *reactor;
}

BucketOptions checked(BucketOptions options) {
  const auto refuse = [](const char* what) { throw Error(Errc::invalid_argument, "BucketScheduler", what); };
  if (options.bucket_bytes == 0) refuse("bucket_bytes is 0; a bucket needs room");
  if (options.first_bucket_bytes == 0) refuse("first_bucket_bytes is 0; a bucket needs room");
  if (options.in_flight == 0) refuse("in_flight is 0; one bucket at least must fly");
  if (!coll::is_valid(options.op)) refuse("op is none of sum, avg, min, max");
  options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
  return options;
}

float* allocate_floats(std::size_t count) {
  const std::size_t bytes = std::max(count, std::size_t{1}) * sizeof(float);
  void* const memory = ::operator new(bytes, std::align_val_t(kGradientAlignmentBytes), std::nothrow);
  if (memory == nullptr) {
    throw Error(Errc::exhausted, "BucketScheduler", "no memory for " + std::to_string(bytes) + " bytes of gradients");
  }
  std::memset(memory, 0, bytes);
  return static_cast<float*>(memory);
}

/// `error` with what it happened in before its text, and `more` behind it.
Error in_context(const Error& error, const std::string& operation, const std::string& more = {}) {
  std::string reason = error.what();
  const std::string native = " (" + std::string(std::strerror(error.native())) + ")";
  if (error.native() != 0 && reason.ends_with(native)) reason.resize(reason.size() - native.size());
  return Error(error.code(), operation, reason + more, error.peer(), error.native());
}

/// "'a', 'b' and 3 more"
class NameList {
 public:
  void add(const std::string& name) {
    if (++count_ > kMaxNamesInText) return;
    if (count_ > 1) text_ += ", ";
    text_ += "'" + name + "'";
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    return count_ <= kMaxNamesInText ? text_ : text_ + " and " + std::to_string(count_ - kMaxNamesInText) + " more";
  }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace

void BucketScheduler::FreeFloats::operator()(float* floats) const noexcept {
  ::operator delete(floats, std::align_val_t(kGradientAlignmentBytes));
}

BucketScheduler::BucketScheduler(std::unique_ptr<BucketTransport> transport, std::span<const ParameterInfo> parameters,
                                 const BucketOptions& options)
    : reactor_(reactor_of_this_thread()),
      transport_(std::move(transport)),
      parameters_(parameters.begin(), parameters.end()),
      options_(checked(options)),
      plan_(cut_buckets(parameters, options_.first_bucket_bytes, options_.bucket_bytes)),
      floats_(allocate_floats(plan_.floats)),
      marked_(parameters.size(), 0),
      ready_(std::make_unique<Flag[]>(parameters.size())),
      done_(reactor_),
      poller_(reactor_),
      flights_(plan_.buckets.size()) {
  for (std::size_t id = 0; id < parameters_.size(); ++id)
    ready_[id].attach(reactor_);
}

BucketScheduler::~BucketScheduler() {
  if (running_) done_.store(kFlagAborted);  // step() was called, its task dropped before it started
  for (std::size_t id = 0; id < parameters_.size(); ++id) {
    if (marked_[id] > steps_) ready_[id].block_until(marked_[id]);
  }
}

std::span<float> BucketScheduler::gradient(std::size_t id) noexcept {
  WEFT_ASSERT(id < parameters_.size(), "BucketScheduler::gradient: there is no such parameter");
  const GradientPlace& place = plan_.gradients[id];
  return {floats_.get() + place.begin, place.count};
}

void BucketScheduler::begin_step() noexcept {
  computing_.begin = reactor_.clock().now();
  clock_runs_ = true;
}

void BucketScheduler::start_clock() noexcept {
  if (!clock_runs_) begin_step();
}

void BucketScheduler::check_usable(const char* operation) const {
  if (!broken_.empty()) throw Error(Errc::closed, operation, "an earlier step failed: " + broken_);
}

Flag& BucketScheduler::mark(std::size_t id, bool silent) {
  check_usable("mark_ready");
  if (id >= parameters_.size()) {
    throw Error(Errc::invalid_argument, "mark_ready",
                "there is no parameter " + std::to_string(id) + "; they are numbered from 0 to " +
                    std::to_string(parameters_.size()) + " (excluded)");
  }
  if (marked_[id] == steps_ + 1) {
    throw Error(Errc::invalid_argument, "mark_ready",
                "gradient '" + parameters_[id].name + "' was marked twice in step " + std::to_string(steps_ + 1));
  }
  start_clock();
  marked_[id] = steps_ + 1;
  ready_[id].set_silent(silent);
  return ready_[id];
}

Task<void> BucketScheduler::step() {
  check_usable("step");
  if (running_) {
    throw Error(Errc::invalid_argument, "step", "step " + std::to_string(steps_ + 1) + " has not ended yet");
  }
  running_ = true;
  return run_step();
}

Task<void> BucketScheduler::run_step() {
  start_clock();
  computing_.end = computing_.begin;
  in_flight_ = 0;
  std::exception_ptr failure;
  try {
    if (!agreed_) {
      co_await agree_on_parameters(*transport_, parameters_, options_);
      agreed_ = true;
    }
    co_await with_nursery(&BucketScheduler::launch_buckets, this);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure != nullptr) fail_step(failure);
  complete_step();
}

// Buckets start in the order of their indices: a child first runs in the order in which it was started, and a reduction
// takes its place among the communicator's collectives when it first runs.
Task<void> BucketScheduler::launch_buckets(Nursery& nursery, BucketScheduler* self) {
  for (std::size_t index = 0; index < self->plan_.buckets.size(); ++index) {
    co_await self->await_bucket(index);
    while (self->in_flight_ == self->options_.in_flight) {
      self->slot_free_.reset();
      co_await self->slot_free_.wait();
    }
    const Instant now = self->reactor_.clock().now();
    self->flights_[index] = TimeInterval{now, now};
    if (self->plan_.buckets[index].bytes() == 0) continue;
    ++self->in_flight_;
    nursery.start(self->reduce_bucket(index));
  }
}

Task<void> BucketScheduler::await_bucket(std::size_t index) {
  const GradientBucket& bucket = plan_.buckets[index];
  for (std::size_t id = bucket.last_parameter + 1; id-- > bucket.first_parameter;) {
    const Flag& flag = ready_[id];
    try {
      const Duration limit =
          options_.ready_timeout > Duration::zero() ? options_.ready_timeout : transport_->default_timeout();
      if (flag.value() != steps_ + 1 && limit > Duration::zero()) {
        Task<void> waiting = await_gradient(id);
        co_await with_deadline(limit, std::move(waiting));
      } else {
        co_await poller_.until(flag, steps_ + 1);
      }
    } catch (const Error& error) {
      const char* const why =
          error.code() == Errc::closed ? "its stream has failed; its synchronize() says why: " : "it is not ready: ";
      throw Error(error.code(), describe_bucket(index),
                  "gradient '" + parameters_[id].name + "': " + why + std::string(to_string(error.code())));
    }
    // A silent writer leaves no time; then it counts from when it was noticed.
    computing_.end = std::max(computing_.end, flag.silent() ? reactor_.clock().now() : flag.stored_at());
  }
}

Task<void> BucketScheduler::await_gradient(std::size_t id) {
  co_await poller_.until(ready_[id], steps_ + 1);
}

Task<void> BucketScheduler::reduce_bucket(std::size_t index) {
  const GradientBucket& bucket = plan_.buckets[index];
  const std::span<float> values(floats_.get() + bucket.begin, bucket.end - bucket.begin);
  try {
    co_await transport_->reduce(values, index);
  } catch (const Error& error) {
    throw in_context(error, describe_bucket(index));
  }
  flights_[index].end = reactor_.clock().now();
  --in_flight_;
  slot_free_.set();
}

void BucketScheduler::complete_step() noexcept {
  timing_ = split_step(computing_, flights_);
  clock_runs_ = false;
  running_ = false;
  ++steps_;
  done_.store(steps_);
}

// Streams that wait for the step are let go, as failed.
void BucketScheduler::fail_step(const std::exception_ptr& failure) {
  const std::string operation = "step " + std::to_string(steps_ + 1);
  running_ = false;
  done_.store(kFlagAborted);
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    const bool late = error.code() == Errc::timed_out;
    const Error worded = in_context(error, operation, late ? describe_missing() : std::string());
    broken_ = worded.what();
    throw worded;
  } catch (const std::exception& error) {
    broken_ = operation + ": " + error.what();
    throw;
  } catch (...) {
    broken_ = operation + ": an exception of an unknown type";
    throw;
  }
}

std::string BucketScheduler::describe_bucket(std::size_t index) const {
  const GradientBucket& bucket = plan_.buckets[index];
  std::string text = "bucket " + std::to_string(index + 1) + " of " + std::to_string(plan_.buckets.size()) + " ('" +
                     parameters_[bucket.last_parameter].name + "'";
  if (bucket.first_parameter != bucket.last_parameter) {
    text += " to '" + parameters_[bucket.first_parameter].name + "'";
  }
  return text + ")";
}

std::string BucketScheduler::describe_missing() const {
  NameList never_marked;
  NameList not_reached;
  for (std::size_t id = 0; id < parameters_.size(); ++id) {
    if (marked_[id] != steps_ + 1) {
      never_marked.add(parameters_[id].name);
    } else if (!ready_[id].reached(steps_ + 1)) {
      not_reached.add(parameters_[id].name);
    }
  }
  std::string text;
  if (!never_marked.empty()) text += "; never marked ready on this rank: " + never_marked.text();
  if (!not_reached.empty()) text += "; marked, but their stream has not got there: " + not_reached.text();
  return text;
}

}  // namespace weft::gpu
