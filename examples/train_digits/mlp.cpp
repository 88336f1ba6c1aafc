#include "mlp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "random.hpp"
#include "weft/runtime/assert.hpp"
#include "weft/runtime/error.hpp"

namespace digits {
namespace {

constexpr std::uint64_t kWeightStream = 1;

void check_widths(std::span<const std::size_t> widths) {
  const auto refuse = [](const char* reason) { throw weft::Error(weft::Errc::invalid_argument, "Mlp", reason); };
  if (widths.size() < 2) refuse("a network needs at least two widths, that of its input and that of its output");
  if (widths.front() != kPixels) refuse("the first width must be 64, one for each pixel");
  if (widths.back() != kClasses) refuse("the last width must be 10, one for each digit");
  if (std::find(widths.begin(), widths.end(), std::size_t{0}) != widths.end()) refuse("a hidden layer of width 0");
}

}  // namespace

Mlp::Mlp(std::span<const std::size_t> widths, std::size_t max_samples, std::uint64_t seed)
    : max_samples_(std::max<std::size_t>(max_samples, 1)) {
  check_widths(widths);
  std::size_t begin = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    layers_.push_back(LayerPlace{DenseShape{widths[l], widths[l + 1]}, begin});
    begin += layers_.back().size();
    activations_.emplace_back(max_samples_ * widths[l]);
    slopes_.emplace_back(max_samples_ * widths[l + 1]);
    deltas_.emplace_back(max_samples_ * widths[l + 1]);
  }
  activations_.emplace_back(max_samples_ * widths.back());
  labels_.resize(max_samples_);

  parameters_.assign(begin, 0.0F);
  SplitMix64 random(seed, kWeightStream);
  for (const LayerPlace& layer : layers_) {
    const double limit = std::sqrt(6.0 / static_cast<double>(layer.shape.inputs));
    for (float& weight : std::span(parameters_).subspan(layer.begin, layer.shape.weights())) {
      weight = static_cast<float>((2.0 * random.unit() - 1.0) * limit);
    }
  }
}

double Mlp::train_forward(const Dataset& data, std::span<const std::uint32_t> rows,
                          std::size_t batch_samples) noexcept {
  WEFT_ASSERT(rows.size() <= max_samples_, "Mlp::train_forward: the shard is larger than max_samples");
  WEFT_ASSERT(rows.size() <= batch_samples, "Mlp::train_forward: the shard is larger than its batch");
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const auto image = data.image(rows[s]);
    std::copy(image.begin(), image.end(), activations_[0].begin() + static_cast<std::ptrdiff_t>(s * kPixels));
    labels_[s] = data.labels[rows[s]];
  }
  run_layers(rows.size());
  const float scale = rows.empty() ? 0.0F : 1.0F / static_cast<float>(batch_samples);
  const Evaluation seen = score(std::span(labels_).first(rows.size()), scale);
  samples_ = rows.size();
  backward_left_ = layers_.size();
  return seen.loss_sum;
}

void Mlp::backward(std::size_t layer, std::span<float> d_weights, std::span<float> d_bias) noexcept {
  WEFT_ASSERT(backward_left_ > 0 && layer == backward_left_ - 1,
              "Mlp::backward: layers go from the last to the first, once after each train_forward");
  const LayerPlace& place = layers_[layer];
  WEFT_ASSERT(d_weights.size() == place.shape.weights() && d_bias.size() == place.shape.outputs,
              "Mlp::backward: the gradients have another size than the layer");
  const std::span<float> own = delta(layer, samples_);
  const std::span<float> input = activation(layer, samples_);
  if (layer + 1 < layers_.size()) {
    // The derivative comes down from the layer above here and not at the end of that layer's backward(): its gradient
    // need not wait for this.
    const LayerPlace& above = layers_[layer + 1];
    const auto weights = std::span<const float>(parameters_).subspan(above.begin, above.shape.weights());
    dense_input_gradient(above.shape, delta(layer + 1, samples_), weights, own);
    const std::vector<float>& slope = slopes_[layer];
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] *= slope[i];
  }
  dense_parameter_gradient(place.shape, input, own, d_weights, d_bias);
  backward_left_ = layer;
}

Evaluation Mlp::evaluate(const Dataset& data, std::size_t first, std::size_t last) noexcept {
  WEFT_ASSERT(first <= last && last <= data.size(), "Mlp::evaluate: samples outside of the data");
  backward_left_ = 0;
  Evaluation sum;
  while (first < last) {
    const std::size_t samples = std::min(max_samples_, last - first);
    const auto pixels = std::span(data.pixels).subspan(first * kPixels, samples * kPixels);
    std::copy(pixels.begin(), pixels.end(), activations_[0].begin());
    run_layers(samples);
    const Evaluation part = score(std::span(data.labels).subspan(first, samples), 0.0F);
    sum.loss_sum += part.loss_sum;
    sum.correct += part.correct;
    first += samples;
  }
  return sum;
}

void Mlp::run_layers(std::size_t samples) noexcept {
  const std::span<const float> parameters(parameters_);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerPlace& place = layers_[l];
    const std::span<float> output = activation(l + 1, samples);
    dense_forward(place.shape, activation(l, samples), parameters.subspan(place.begin, place.shape.weights()),
                  parameters.subspan(place.bias_begin(), place.shape.outputs), output);
    if (l + 1 == layers_.size()) continue;  // the scores go to the softmax as they are
    rectify(output, std::span(slopes_[l]).first(output.size()));
  }
}

// Softmax cross entropy of the scores of the last layer. Writes its derivative, times gradient_scale, to the last
// delta.
Evaluation Mlp::score(std::span<const std::uint8_t> labels, float gradient_scale) noexcept {
  const std::span<const float> scores = activation(layers_.size(), labels.size());
  const std::span<float> derivative = delta(layers_.size() - 1, labels.size());
  Evaluation sum;
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const auto row = scores.subspan(s * kClasses, kClasses);
    const auto largest = std::max_element(row.begin(), row.end());
    const double shift = *largest;
    double total = 0.0;
    for (const float value : row)
      total += std::exp(static_cast<double>(value) - shift);
    const std::size_t label = labels[s];
    sum.loss_sum += std::log(total) - (static_cast<double>(row[label]) - shift);
    sum.correct += static_cast<std::size_t>(largest - row.begin()) == label ? 1U : 0U;
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double probability = std::exp(static_cast<double>(row[c]) - shift) / total;
      derivative[s * kClasses + c] = static_cast<float>(probability - (c == label ? 1.0 : 0.0)) * gradient_scale;
    }
  }
  return sum;
}

std::span<float> Mlp::activation(std::size_t level, std::size_t samples) noexcept {
  const std::size_t width = level == 0 ? kPixels : layers_[level - 1].shape.outputs;
  return std::span(activations_[level]).first(samples * width);
}

std::span<float> Mlp::delta(std::size_t layer, std::size_t samples) noexcept {
  return std::span(deltas_[layer]).first(samples * layers_[layer].shape.outputs);
}

void sgd_step(std::span<float> parameters, std::span<float> velocity, std::span<const float> gradient, float rate,
              float momentum) noexcept {
  WEFT_ASSERT(parameters.size() == velocity.size() && parameters.size() == gradient.size(),
              "sgd_step: parameters, velocity and gradient differ in size");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    parameters[i] -= rate * velocity[i];
  }
}

std::uint64_t fingerprint(std::span<const float> parameters) noexcept {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325U;
  constexpr std::uint64_t kPrime = 0x100000001b3U;
  std::uint64_t hash = kOffset;
  for (const float value : parameters) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((bits >> shift) & 0xffU)) * kPrime;
  }
  return hash;
}

}  // namespace digits
