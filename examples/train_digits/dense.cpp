#include "dense.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "weft/runtime/assert.hpp"

namespace digits {
namespace {

// The loops below work on tiles of outputs whose sums stay in registers. 16 floats are 4 SSE or NEON registers: enough
// independent chains to cover the latency of an add, few enough to leave registers for the operands.
constexpr std::size_t kTile = 16;
// Rows of W that meet all samples before the next rows do. With a power-of-two width the rows of a tile fall into few
// sets of the first-level cache: 128 rows 512 bytes apart do not fit 12 ways, 32 fit 8. Sums still take their terms in
// order.
constexpr std::size_t kDepth = 32;
constexpr std::size_t kLanes = 8;

// sums[k] += sum over t of a[t * a_stride] * b[t * b_stride + k]: a row of x times a tile of W, or a column of x times
// a tile of dy. `width` is kTile except for the last tile of a layer.
template <std::size_t kWidth>
void accumulate(const float* a, std::size_t a_stride, const float* b, std::size_t b_stride, std::size_t terms,
                float* sums) noexcept {
  std::array<float, kWidth> local;
  std::copy_n(sums, kWidth, local.begin());
  for (std::size_t t = 0; t < terms; ++t) {
    const float factor = a[t * a_stride];
    const float* const row = b + t * b_stride;
    for (std::size_t k = 0; k < kWidth; ++k)
      local[k] += factor * row[k];
  }
  std::copy_n(local.begin(), kWidth, sums);
}

void accumulate_tile(const float* a, std::size_t a_stride, const float* b, std::size_t b_stride, std::size_t terms,
                     float* sums, std::size_t width) noexcept {
  if (width == kTile) {
    accumulate<kTile>(a, a_stride, b, b_stride, terms, sums);
    return;
  }
  for (std::size_t k = 0; k < width; ++k)
    accumulate<1>(a, a_stride, b + k, b_stride, terms, sums + k);
}

float dot(const float* a, const float* b, std::size_t length) noexcept {
  std::array<float, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k)
      lanes[k] += a[i + k] * b[i + k];
  }
  for (std::size_t k = 0; i < length; ++i, ++k)
    lanes[k] += a[i] * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace

void dense_forward(DenseShape shape, std::span<const float> x, std::span<const float> weights,
                   std::span<const float> bias, std::span<float> y) noexcept {
  const auto [inputs, outputs] = shape;
  const std::size_t samples = x.size() / inputs;
  WEFT_ASSERT(x.size() == samples * inputs && y.size() == samples * outputs && weights.size() == shape.weights() &&
                  bias.size() == outputs,
              "dense_forward: the spans do not fit the layer");
  for (std::size_t s = 0; s < samples; ++s)
    std::copy(bias.begin(), bias.end(), y.data() + s * outputs);
  for (std::size_t o = 0; o < outputs; o += kTile) {
    const std::size_t width = std::min(kTile, outputs - o);
    for (std::size_t i = 0; i < inputs; i += kDepth) {
      const std::size_t terms = std::min(kDepth, inputs - i);
      const float* const tile = weights.data() + i * outputs + o;
      for (std::size_t s = 0; s < samples; ++s) {
        accumulate_tile(x.data() + s * inputs + i, 1, tile, outputs, terms, y.data() + s * outputs + o, width);
      }
    }
  }
}

void dense_parameter_gradient(DenseShape shape, std::span<const float> x, std::span<const float> dy,
                              std::span<float> d_weights, std::span<float> d_bias) noexcept {
  const auto [inputs, outputs] = shape;
  const std::size_t samples = x.size() / inputs;
  WEFT_ASSERT(x.size() == samples * inputs && dy.size() == samples * outputs && d_weights.size() == shape.weights() &&
                  d_bias.size() == outputs,
              "dense_parameter_gradient: the spans do not fit the layer");
  std::fill(d_weights.begin(), d_weights.end(), 0.0F);
  std::fill(d_bias.begin(), d_bias.end(), 0.0F);
  if (samples == 0) return;  // an empty span may be a null pointer
  const float one = 1.0F;
  for (std::size_t o = 0; o < outputs; o += kTile) {
    const std::size_t width = std::min(kTile, outputs - o);
    const float* const tile = dy.data() + o;
    for (std::size_t i = 0; i < inputs; ++i) {
      accumulate_tile(x.data() + i, inputs, tile, outputs, samples, d_weights.data() + i * outputs + o, width);
    }
    accumulate_tile(&one, 0, tile, outputs, samples, d_bias.data() + o, width);
  }
}

void dense_input_gradient(DenseShape shape, std::span<const float> dy, std::span<const float> weights,
                          std::span<float> dx) noexcept {
  const auto [inputs, outputs] = shape;
  const std::size_t samples = dy.size() / outputs;
  WEFT_ASSERT(dy.size() == samples * outputs && dx.size() == samples * inputs && weights.size() == shape.weights(),
              "dense_input_gradient: the spans do not fit the layer");
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t i = 0; i < inputs; ++i) {
      dx[s * inputs + i] = dot(dy.data() + s * outputs, weights.data() + i * outputs, outputs);
    }
  }
}

void rectify(std::span<float> sums, std::span<float> slopes) noexcept {
  WEFT_ASSERT(sums.size() == slopes.size(), "rectify: sums and slopes differ in size");
  // Three loops: in one, g++ turns the two comparisons into jumps and vectorises nothing.
  for (std::size_t i = 0; i < sums.size(); ++i)
    slopes[i] = sums[i] > 0.0F ? sums[i] : 0.0F;
  for (std::size_t i = 0; i < sums.size(); ++i)
    slopes[i] = slopes[i] < 1.0F ? slopes[i] : 1.0F;
  // A NaN among the sums stays one: a run that diverged must show it.
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = slopes[i] * (sums[i] - 0.5F * slopes[i]);
}

}  // namespace digits
