// Data-parallel training on one rank. Each mini-batch is split over the ranks; every rank runs its part forward and
// backward on a stream of its own, and as soon as a layer's gradient is computed it travels, while the layers below
// still compute theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batches.hpp"
#include "dataset.hpp"
#include "mlp.hpp"
#include "options.hpp"
#include "weft/gpu/bucket_scheduler.hpp"
#include "weft/gpu/host_stream.hpp"
#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"

namespace digits {

/// What an epoch has brought; loss, accuracy and hidden are those of all ranks together.
struct EpochReport {
  double loss = 0.0;      ///< mean cross entropy in nats over the training part, each sample as its step saw it
  double accuracy = 0.0;  ///< on the test part, after the epoch
  double step_ms = 0.0;   ///< mean time of a step on this rank
  double hidden = 1.0;    ///< share of the communication that ran behind compute; 1 where there was none
};

/// See the top of the file. Pinned; keep it on the heap, because a coroutine's frame may not align what it holds.
/// Lifetime: the communicator and the data must outlive it. Thread: its rank's reactor.
class Trainer {
 public:
  Trainer(weft::Communicator& world, const Split& data, const Options& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() = default;

  /// Collective: checks that all ranks have the same flags and data, then gives everybody rank 0's weights.
  /// Errors: mismatch, naming the flag; those of collectives.
  [[nodiscard]] weft::Task<void> agree();

  /// Collective: one pass over the training part, and a look at the test part. `epoch` decides the order of samples.
  /// Errors: those of BucketScheduler::step() and of all_reduce.
  [[nodiscard]] weft::Task<EpochReport> run_epoch(std::size_t epoch);

  /// Collective: the fingerprint of the parameters, after it was compared with everybody's.
  /// Errors: mismatch where one bit differs; those of all_reduce.
  [[nodiscard]] weft::Task<std::uint64_t> agreed_fingerprint();

 private:
  /// Enqueues this rank's part of a batch, forward and backward, and marks gradients as they come.
  void enqueue_batch(Range batch);
  /// Enqueues the descent along the reduced gradients.
  void enqueue_update();
  /// Thread: the stream's.
  void update_layer(const LayerPlace& layer, std::span<const float> d_weights, std::span<const float> d_bias);

  weft::Communicator& world_;
  const Split& data_;
  const Options options_;
  Mlp model_;
  std::vector<float> velocity_;       ///< of the descent, laid out as the model's parameters
  std::vector<std::uint32_t> order_;  ///< of the samples in this epoch
  double loss_sum_ = 0.0;             ///< of this rank's samples in this epoch; the stream's while it runs
  Evaluation test_;                   ///< of this rank's part of the test data; the stream's while it runs
  weft::gpu::BucketScheduler gradients_;
  weft::gpu::HostStream stream_;  ///< last, so that its work has ended before anything it uses is gone
};

/// What a rank does from start to end; rank 0 prints a line for each epoch and the fingerprint at the end.
/// Lifetime: options and data until the task ends.
[[nodiscard]] weft::Task<void> train(weft::Communicator& world, const Options* options, const Split* data);

}  // namespace digits
