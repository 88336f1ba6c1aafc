// A multilayer perceptron (rectifiers between the layers, softmax cross entropy at the end) whose backward pass is
// driven layer by layer from outside: the trainer can send a layer's gradient on its way while the layers below still
// compute theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset.hpp"
#include "dense.hpp"

namespace digits {

/// One layer and where its parameters lie in the flat parameter and gradient vectors: weights, then bias.
struct LayerPlace {
  DenseShape shape;
  std::size_t begin;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return shape.weights() + shape.outputs; }
  [[nodiscard]] constexpr std::size_t bias_begin() const noexcept { return begin + shape.weights(); }
};

/// What a model makes of labelled images.
struct Evaluation {
  double loss_sum = 0.0;      ///< cross entropy in nats, summed over the samples
  std::uint64_t correct = 0;  ///< samples whose label has the largest score
};

/// The network, its parameters, and the activations of the shard it saw last. Owner, move-only. Thread: one at a time.
class Mlp {
 public:
  /// `widths` from pixels to classes, say {64, 128, 128, 10}; `max_samples` is the largest shard train_forward will
  /// see. Weights are drawn from `seed` (He's uniform: +-sqrt(6 / inputs)), biases are zero. Errors: weft::Error
  /// invalid_argument when there is no layer, a width is 0, or the ends are not kPixels and kClasses.
  Mlp(std::span<const std::size_t> widths, std::size_t max_samples, std::uint64_t seed);
  Mlp(Mlp&&) = default;
  Mlp& operator=(Mlp&&) = default;

  /// Runs samples `rows` of `data` forward and keeps what backward() needs. The gradients that follow are those of
  /// the mean loss over `batch_samples` samples, of which this shard is a part: added over all shards they are the
  /// gradient of the batch. An empty shard is allowed. Returns the sum of the shard's losses.
  /// Cost: no allocation.
  [[nodiscard]] double train_forward(const Dataset& data, std::span<const std::uint32_t> rows,
                                     std::size_t batch_samples) noexcept;

  /// Writes the gradients of layer `layer`. To be called for every layer from the last to the first after each
  /// train_forward. Units/shape: d_weights float[inputs][outputs], d_bias float[outputs]. Cost: no allocation.
  void backward(std::size_t layer, std::span<float> d_weights, std::span<float> d_bias) noexcept;

  /// Loss and hits on samples first..last-1 of `data`. Leaves no backward pass pending.
  [[nodiscard]] Evaluation evaluate(const Dataset& data, std::size_t first, std::size_t last) noexcept;

  [[nodiscard]] std::span<const LayerPlace> layers() const noexcept { return layers_; }
  [[nodiscard]] std::span<float> parameters() noexcept { return parameters_; }
  [[nodiscard]] std::span<const float> parameters() const noexcept { return parameters_; }

 private:
  void run_layers(std::size_t samples) noexcept;
  Evaluation score(std::span<const std::uint8_t> labels, float gradient_scale) noexcept;
  std::span<float> activation(std::size_t level, std::size_t samples) noexcept;
  std::span<float> delta(std::size_t layer, std::size_t samples) noexcept;

  std::vector<LayerPlace> layers_;
  std::vector<float> parameters_;
  std::size_t max_samples_;
  std::vector<std::vector<float>> activations_;  ///< [0] the images, [l + 1] the output of layer l, rectified
  std::vector<std::vector<float>> slopes_;       ///< [l] derivative of the rectifier at the sums of layer l
  std::vector<std::vector<float>> deltas_;       ///< [l] derivative of the loss by the sums of layer l
  std::vector<std::uint8_t> labels_;
  std::size_t samples_ = 0;        ///< of the shard seen last
  std::size_t backward_left_ = 0;  ///< layers whose backward() is still to come
};

/// Gradient descent with momentum: v = momentum v + g; p = p - rate v. Each element by itself, hence the same
/// result whether called for the whole vector or bucket by bucket.
void sgd_step(std::span<float> parameters, std::span<float> velocity, std::span<const float> gradient, float rate,
              float momentum) noexcept;

/// 64-bit FNV-1a over the bits of `parameters`, lowest byte first: equal on two ranks exactly when (but for 2^-64)
/// every bit is.
[[nodiscard]] std::uint64_t fingerprint(std::span<const float> parameters) noexcept;

}  // namespace digits
