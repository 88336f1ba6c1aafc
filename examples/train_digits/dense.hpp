// The arithmetic of one fully connected layer, y = x W + b, on a shard of samples, its two derivatives, and the
// rectifier behind it. Each result is a sum in a fixed order that depends on neither the number of samples in the shard
// nor the compiler's vector width, so that a sample gives the same bits wherever it is computed.
#pragma once

#include <cstddef>
#include <span>

namespace digits {

struct DenseShape {
  std::size_t inputs;
  std::size_t outputs;

  [[nodiscard]] constexpr std::size_t weights() const noexcept { return inputs * outputs; }
};

/// y[s][o] = bias[o] + sum over i of x[s][i] * weights[i][o], i ascending.
/// Units/shape: x float[samples][inputs], weights float[inputs][outputs], y float[samples][outputs]; no two overlap.
void dense_forward(DenseShape shape, std::span<const float> x, std::span<const float> weights,
                   std::span<const float> bias, std::span<float> y) noexcept;

/// d_weights[i][o] = sum over s of x[s][i] * dy[s][o] and d_bias[o] = sum over s of dy[s][o], s ascending; overwrites.
/// An empty shard gives zeros.
void dense_parameter_gradient(DenseShape shape, std::span<const float> x, std::span<const float> dy,
                              std::span<float> d_weights, std::span<float> d_bias) noexcept;

/// dx[s][i] = sum over o of dy[s][o] * weights[i][o], in eight interleaved partial sums.
void dense_input_gradient(DenseShape shape, std::span<const float> dy, std::span<const float> weights,
                          std::span<float> dx) noexcept;

/// Replaces each sum by its rectified value and writes the rectifier's derivative there to `slopes`, of the same size.
///
/// The rectifier is a ReLU with a rounded corner: 0 below 0, x^2 / 2 from 0 to 1, x - 1/2 above. At a sharp corner a
/// sum within one rounding error of 0 has slope 0 in one run and 1 in another; millions of sums pass it in a training,
/// and one such sum can move the loss by a thousandth. With a continuous slope, runs on one rank and on four, which
/// differ only in how their gradients were rounded, stay together (measured over 10 seeds at rate 0.02: losses 8e-3
/// apart with the sharp corner, 1e-6 with this one).
void rectify(std::span<float> sums, std::span<float> slopes) noexcept;

}  // namespace digits
