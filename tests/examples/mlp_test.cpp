// The network: gradients against finite differences, shards that add up to their batch, and what training reaches.
#include "mlp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "batches.hpp"
#include "random.hpp"
#include "weft/runtime/error.hpp"

namespace digits {
namespace {

constexpr std::array<std::size_t, 4> kSmall = {kPixels, 12, 9, kClasses};
constexpr std::array<std::size_t, 4> kDefault = {kPixels, 128, 128, kClasses};

Dataset draw_data(std::size_t samples, std::uint64_t seed) {
  SplitMix64 random(seed);
  Dataset data;
  for (std::size_t s = 0; s < samples; ++s) {
    data.labels.push_back(static_cast<std::uint8_t>(random.below(kClasses)));
    for (std::size_t i = 0; i < kPixels; ++i)
      data.pixels.push_back(static_cast<float>(random.unit()));
  }
  return data;
}

std::vector<std::uint32_t> rows_of(std::size_t count) {
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

std::vector<float> backward_all(Mlp& model) {
  std::vector<float> gradient(model.parameters().size(), 99.0F);
  for (std::size_t l = model.layers().size(); l-- > 0;) {
    const LayerPlace& place = model.layers()[l];
    const auto own = std::span(gradient).subspan(place.begin, place.size());
    model.backward(l, own.first(place.shape.weights()), own.subspan(place.shape.weights()));
  }
  return gradient;
}

// One batch cut into `shards`, gradients added in shard order as an all-reduce would.
double batch_gradient(Mlp& model, const Dataset& data, std::span<const std::uint32_t> batch, std::size_t shards,
                      std::vector<float>& gradient) {
  double loss = 0.0;
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  for (std::size_t k = 0; k < shards; ++k) {
    const Range shard = part_of(batch.size(), k, shards);
    loss += model.train_forward(data, batch.subspan(shard.first, shard.size()), batch.size());
    const std::vector<float> part = backward_all(model);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] += part[i];
  }
  return loss;
}

TEST(Mlp, PlacesLayersOneAfterTheOther) {
  const Mlp model(kSmall, 4, 1);
  ASSERT_EQ(model.layers().size(), 3U);
  std::size_t begin = 0;
  for (const LayerPlace& place : model.layers()) {
    EXPECT_EQ(place.begin, begin);
    EXPECT_EQ(place.bias_begin(), begin + place.shape.weights());
    begin += place.size();
  }
  EXPECT_EQ(begin, model.parameters().size());
  EXPECT_EQ(begin, 64U * 12 + 12 + 12 * 9 + 9 + 9 * 10 + 10);
}

TEST(Mlp, DrawsItsWeightsFromTheSeed) {
  const Mlp one(kSmall, 4, 1);
  const Mlp same(kSmall, 8, 1);
  const Mlp other(kSmall, 4, 2);
  EXPECT_EQ(fingerprint(one.parameters()), fingerprint(same.parameters()));
  EXPECT_NE(fingerprint(one.parameters()), fingerprint(other.parameters()));
  const LayerPlace& first = one.layers()[0];
  const float limit = std::sqrt(6.0F / 64.0F);
  double squares = 0.0;
  for (const float weight : one.parameters().subspan(first.begin, first.shape.weights())) {
    EXPECT_LE(std::abs(weight), limit);
    squares += static_cast<double>(weight * weight);
  }
  EXPECT_NEAR(squares / static_cast<double>(first.shape.weights()), 2.0 / 64.0, 0.004);
  for (const float bias : one.parameters().subspan(first.bias_begin(), first.shape.outputs))
    EXPECT_EQ(bias, 0.0F);
}

TEST(Mlp, RefusesWidthsThatDoNotFit) {
  const std::vector<std::vector<std::size_t>> faults = {{}, {64}, {63, 10}, {64, 11}, {64, 0, 10}};
  for (const std::vector<std::size_t>& widths : faults)
    EXPECT_THROW(Mlp(widths, 4, 1), weft::Error);
}

TEST(Mlp, GradientsAgreeWithFiniteDifferences) {
  const Dataset data = draw_data(16, 11);
  const std::vector<std::uint32_t> rows = rows_of(data.size());
  Mlp model(kSmall, rows.size(), 3);
  // Biases off zero, so that their part of the forward pass counts.
  SplitMix64 random(12);
  for (float& parameter : model.parameters())
    parameter += static_cast<float>(0.1 * random.unit());
  (void)model.train_forward(data, rows, rows.size());
  const std::vector<float> gradient = backward_all(model);

  // Central differences of a loss computed in float: the step is large enough that rounding (1e-7 / step) and curvature
  // (step^2) both stay below the tolerance.
  constexpr float kStep = 4e-3F;
  double largest = 0.0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    float& parameter = model.parameters()[i];
    const float kept = parameter;
    const float up = kept + kStep;
    const float down = kept - kStep;
    parameter = up;
    const double above = model.train_forward(data, rows, rows.size());
    parameter = down;
    const double below = model.train_forward(data, rows, rows.size());
    parameter = kept;
    const double slope = (above - below) / (static_cast<double>(up - down) * static_cast<double>(rows.size()));
    ASSERT_NEAR(gradient[i], slope, 2e-4) << "parameter " << i;
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 0.05) << "the comparison would pass with gradients of zero";
}

TEST(Mlp, ShardsAddUpToTheirBatch) {
  const Dataset data = draw_data(64, 13);
  const std::vector<std::uint32_t> rows = rows_of(61);
  Mlp model(kDefault, 64, 5);
  std::vector<float> whole(model.parameters().size());
  std::vector<float> sum(whole.size());
  const double loss = batch_gradient(model, data, rows, 1, whole);
  const float scale = std::abs(
      *std::max_element(whole.begin(), whole.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
  for (const std::size_t shards : {2U, 3U, 4U, 8U, 61U, 64U}) {
    EXPECT_NEAR(batch_gradient(model, data, rows, shards, sum), loss, loss * 1e-12) << shards;
    for (std::size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(sum[i], whole[i], 2e-6F * scale) << shards;
  }
}

TEST(Mlp, AnEmptyShardHasNoLossAndAZeroGradient) {
  const Dataset data = draw_data(4, 14);
  Mlp model(kSmall, 4, 6);
  EXPECT_EQ(model.train_forward(data, {}, 3), 0.0);
  for (const float value : backward_all(model))
    ASSERT_EQ(value, 0.0F);
}

TEST(Mlp, EvaluatesInPartsAsInOne) {
  const Dataset data = draw_data(50, 15);
  Mlp large(kSmall, 64, 7);
  Mlp small(kSmall, 8, 7);
  const Evaluation whole = large.evaluate(data, 0, 50);
  const Evaluation chunked = small.evaluate(data, 0, 50);
  const Evaluation front = small.evaluate(data, 0, 17);
  const Evaluation back = small.evaluate(data, 17, 50);
  EXPECT_NEAR(chunked.loss_sum, whole.loss_sum, 1e-10);
  EXPECT_NEAR(front.loss_sum + back.loss_sum, whole.loss_sum, 1e-10);
  EXPECT_EQ(chunked.correct, whole.correct);
  EXPECT_EQ(front.correct + back.correct, whole.correct);
  EXPECT_EQ(small.evaluate(data, 20, 20).correct, 0U);
}

TEST(MlpDeathTest, RefusesLayersOutOfOrder) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Dataset data = draw_data(4, 16);
  Mlp model(kSmall, 4, 8);
  std::vector<float> d_weights(model.layers()[0].shape.weights());
  std::vector<float> d_bias(model.layers()[0].shape.outputs);
  EXPECT_DEATH(model.backward(0, d_weights, d_bias), "layers go from the last to the first");
  (void)model.train_forward(data, rows_of(4), 4);
  EXPECT_DEATH(model.backward(0, d_weights, d_bias), "layers go from the last to the first");
}

TEST(Sgd, MovesAgainstTheGradientWithMomentum) {
  std::vector<float> parameters = {1.0F, 1.0F};
  std::vector<float> velocity = {0.0F, 2.0F};
  const std::vector<float> gradient = {4.0F, 0.0F};
  sgd_step(parameters, velocity, gradient, 0.25F, 0.5F);
  EXPECT_EQ(velocity, (std::vector<float>{4.0F, 1.0F}));
  EXPECT_EQ(parameters, (std::vector<float>{0.0F, 0.75F}));
}

TEST(Fingerprint, SeesEveryBitAndTheOrder) {
  // FNV-1a of four zero bytes.
  EXPECT_EQ(fingerprint(std::vector<float>{0.0F}), 0x4d25767f9dce13f5U);
  EXPECT_EQ(fingerprint({}), 0xcbf29ce484222325U);
  EXPECT_NE(fingerprint(std::vector<float>{0.0F}), fingerprint(std::vector<float>{-0.0F}));
  EXPECT_NE(fingerprint(std::vector<float>{1.0F, 2.0F}), fingerprint(std::vector<float>{2.0F, 1.0F}));
}

// What the trainer does at its defaults, with ranks that take turns. Hidden layers of 32 keep unoptimised builds quick.
struct Training {
  std::vector<double> losses;
  double accuracy = 0.0;
};

Training train(const Split& split, std::size_t shards, std::uint64_t seed) {
  constexpr std::size_t kBatch = 64;
  constexpr std::array<std::size_t, 4> kWidths = {kPixels, 32, 32, kClasses};
  Mlp model(kWidths, kBatch, seed);
  std::vector<float> gradient(model.parameters().size());
  std::vector<float> velocity(gradient.size(), 0.0F);
  Training result;
  for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
    std::vector<std::uint32_t> order(split.train.size());
    epoch_order(order, seed, epoch);
    double loss = 0.0;
    for (std::size_t first = 0; first < order.size(); first += kBatch) {
      const auto batch = std::span<const std::uint32_t>(order).subspan(first, std::min(kBatch, order.size() - first));
      loss += batch_gradient(model, split.train, batch, shards, gradient);
      sgd_step(model.parameters(), velocity, gradient, 0.03F, 0.9F);
    }
    result.losses.push_back(loss / static_cast<double>(order.size()));
  }
  const std::size_t tests = split.test.size();
  result.accuracy = static_cast<double>(model.evaluate(split.test, 0, tests).correct) / static_cast<double>(tests);
  return result;
}

TEST(Training, ReachesItsAccuracyWithTheSameLossesForEveryNumberOfShards) {
  const Split split = split_dataset(load_dataset(WEFT_TEST_SOURCE_DIR "/examples/data/digits.csv"));
  const std::uint64_t seed = 1;
  const Training one = train(split, 1, seed);
  EXPECT_GE(one.accuracy, 0.96);
  for (const std::size_t shards : {2U, 3U, 4U}) {
    const Training many = train(split, shards, seed);
    EXPECT_GE(many.accuracy, 0.96);
    for (std::size_t e = 0; e < one.losses.size(); ++e) {
      EXPECT_NEAR(many.losses[e], one.losses[e], 2e-5 * one.losses[e]) << shards << " shards, epoch " << e + 1;
    }
  }
}

}  // namespace
}  // namespace digits
