// The arithmetic of a layer against plain loops in double, and the same bits whatever the shard.
#include "dense.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "random.hpp"

namespace digits {
namespace {

std::vector<float> draw(std::size_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(2.0 * random.unit() - 1.0);
  return values;
}

// Widths that fill tiles exactly, leave rests, and are smaller than a tile or a lane.
const std::vector<DenseShape> kShapes = {{64, 128}, {128, 10}, {1, 1}, {3, 17}, {33, 16}, {40, 47}, {7, 5}};
constexpr std::size_t kSamples = 9;

TEST(Dense, ForwardIsXTimesWPlusB) {
  for (const DenseShape shape : kShapes) {
    const std::vector<float> x = draw(kSamples * shape.inputs, 1);
    const std::vector<float> w = draw(shape.weights(), 2);
    const std::vector<float> b = draw(shape.outputs, 3);
    std::vector<float> y(kSamples * shape.outputs, 99.0F);
    dense_forward(shape, x, w, b, y);
    for (std::size_t s = 0; s < kSamples; ++s) {
      for (std::size_t o = 0; o < shape.outputs; ++o) {
        double sum = b[o];
        for (std::size_t i = 0; i < shape.inputs; ++i) {
          sum += static_cast<double>(x[s * shape.inputs + i]) * static_cast<double>(w[i * shape.outputs + o]);
        }
        ASSERT_NEAR(y[s * shape.outputs + o], sum, 2e-5) << shape.inputs << "x" << shape.outputs;
      }
    }
  }
}

TEST(Dense, GradientsAreTheSumsOfTheirDefinitions) {
  for (const DenseShape shape : kShapes) {
    const std::vector<float> x = draw(kSamples * shape.inputs, 4);
    const std::vector<float> w = draw(shape.weights(), 5);
    const std::vector<float> dy = draw(kSamples * shape.outputs, 6);
    std::vector<float> dw(shape.weights(), 99.0F);
    std::vector<float> db(shape.outputs, 99.0F);
    std::vector<float> dx(x.size(), 99.0F);
    dense_parameter_gradient(shape, x, dy, dw, db);
    dense_input_gradient(shape, dy, w, dx);
    for (std::size_t o = 0; o < shape.outputs; ++o) {
      double bias = 0.0;
      for (std::size_t s = 0; s < kSamples; ++s)
        bias += static_cast<double>(dy[s * shape.outputs + o]);
      ASSERT_NEAR(db[o], bias, 1e-5);
      for (std::size_t i = 0; i < shape.inputs; ++i) {
        double sum = 0.0;
        for (std::size_t s = 0; s < kSamples; ++s) {
          sum += static_cast<double>(x[s * shape.inputs + i]) * static_cast<double>(dy[s * shape.outputs + o]);
        }
        ASSERT_NEAR(dw[i * shape.outputs + o], sum, 1e-5);
      }
    }
    for (std::size_t s = 0; s < kSamples; ++s) {
      for (std::size_t i = 0; i < shape.inputs; ++i) {
        double sum = 0.0;
        for (std::size_t o = 0; o < shape.outputs; ++o) {
          sum += static_cast<double>(dy[s * shape.outputs + o]) * static_cast<double>(w[i * shape.outputs + o]);
        }
        ASSERT_NEAR(dx[s * shape.inputs + i], sum, 2e-5);
      }
    }
  }
}

TEST(Dense, ASampleGivesTheSameBitsAloneAndInAShard) {
  for (const DenseShape shape : kShapes) {
    const std::vector<float> x = draw(kSamples * shape.inputs, 7);
    const std::vector<float> w = draw(shape.weights(), 8);
    const std::vector<float> b = draw(shape.outputs, 9);
    std::vector<float> y(kSamples * shape.outputs);
    std::vector<float> dx(x.size());
    dense_forward(shape, x, w, b, y);
    dense_input_gradient(shape, y, w, dx);
    for (std::size_t s = 0; s < kSamples; ++s) {
      std::vector<float> y_alone(shape.outputs);
      std::vector<float> dx_alone(shape.inputs);
      dense_forward(shape, std::span(x).subspan(s * shape.inputs, shape.inputs), w, b, y_alone);
      dense_input_gradient(shape, y_alone, w, dx_alone);
      for (std::size_t o = 0; o < shape.outputs; ++o)
        ASSERT_EQ(y_alone[o], y[s * shape.outputs + o]);
      for (std::size_t i = 0; i < shape.inputs; ++i)
        ASSERT_EQ(dx_alone[i], dx[s * shape.inputs + i]);
    }
  }
}

TEST(Dense, AnEmptyShardHasAZeroGradient) {
  const DenseShape shape{5, 19};
  std::vector<float> dw(shape.weights(), 99.0F);
  std::vector<float> db(shape.outputs, 99.0F);
  dense_parameter_gradient(shape, {}, {}, dw, db);
  for (const float value : dw)
    EXPECT_EQ(value, 0.0F);
  for (const float value : db)
    EXPECT_EQ(value, 0.0F);
}

TEST(Rectify, IsContinuousWithItsSlope) {
  std::vector<float> values = {-100.0F, -1e-7F, 0.0F, 1e-7F, 0.5F, 1.0F, 1.0000001F, 3.0F};
  const std::vector<float> expected = {0.0F, 0.0F, 0.0F, 5e-15F, 0.125F, 0.5F, 0.5000001F, 2.5F};
  const std::vector<float> expected_slopes = {0.0F, 0.0F, 0.0F, 1e-7F, 0.5F, 1.0F, 1.0F, 1.0F};
  std::vector<float> slopes(values.size(), 99.0F);
  rectify(values, slopes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-7) << i;
    EXPECT_NEAR(slopes[i], expected_slopes[i], 1e-12) << i;
  }
}

TEST(Rectify, KeepsANaN) {
  std::vector<float> values(11, 1.0F);
  values[6] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> slopes(values.size());
  rectify(values, slopes);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::isnan(values[i]), i == 6) << i;
}

}  // namespace
}  // namespace digits
