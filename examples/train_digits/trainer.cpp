#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "agreement.hpp"
#include "weft/coll/all_reduce.hpp"
#include "weft/coll/broadcast.hpp"

namespace digits {
namespace {

using Clock = std::chrono::steady_clock;

// Enough to keep the test pass from working sample by sample when batches are tiny.
constexpr std::size_t kLeastShard = 32;

std::size_t ranks_of(const weft::Communicator& world) {
  return static_cast<std::size_t>(world.size());
}
std::size_t rank_of(const weft::Communicator& world) {
  return static_cast<std::size_t>(world.rank());
}

std::size_t largest_shard(const weft::Communicator& world, std::size_t samples, std::size_t batch) {
  const std::size_t ranks = ranks_of(world);
  return std::max(kLeastShard, (std::min(samples, batch) + ranks - 1) / ranks);
}

Mlp make_model(const weft::Communicator& world, const Split& data, const Options& options) {
  const std::array<std::size_t, 4> widths = {kPixels, options.hidden, options.hidden, kClasses};
  return Mlp(widths, largest_shard(world, data.train.size(), options.batch), options.seed);
}

// Weights and bias of a layer are two tensors, as in every framework: layer l has the numbers 2 l and 2 l + 1.
constexpr std::size_t weights_of(std::size_t layer) {
  return 2 * layer;
}
constexpr std::size_t bias_of(std::size_t layer) {
  return 2 * layer + 1;
}

std::vector<weft::gpu::ParameterInfo> tensors_of(const Mlp& model) {
  std::vector<weft::gpu::ParameterInfo> tensors;
  for (const LayerPlace& layer : model.layers()) {
    const std::string name = "layer" + std::to_string(tensors.size() / 2 + 1);
    tensors.push_back(weft::gpu::ParameterInfo{name + ".weights", layer.shape.weights()});
    tensors.push_back(weft::gpu::ParameterInfo{name + ".bias", layer.shape.outputs});
  }
  return tensors;
}

// The model scales gradients by the size of the whole batch: the ranks' parts, which may differ in size, add up.
weft::gpu::BucketOptions bucket_options(const Options& options) {
  weft::gpu::BucketOptions buckets;
  buckets.bucket_bytes = options.bucket_kib << 10U;
  buckets.op = weft::coll::sum;
  return buckets;
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, value);
  return text.data();
}

SharedValue whole(std::string name, std::uint64_t value) {
  return SharedValue{std::move(name), std::to_string(value), value};
}

SharedValue hash(std::string name, std::uint64_t value) {
  return SharedValue{std::move(name), hex(value), value};
}

std::uint64_t data_fingerprint(const Dataset& data) {
  const std::vector<float> labels(data.labels.begin(), data.labels.end());
  return std::rotl(fingerprint(data.pixels), 1) ^ fingerprint(labels);
}

std::vector<SharedValue> shared_values(const Options& options, const Split& data) {
  std::vector<SharedValue> values;
  values.push_back(whole("--epochs", options.epochs));
  values.push_back(whole("--hidden", options.hidden));
  values.push_back(whole("--batch", options.batch));
  values.push_back(whole("--seed", options.seed));
  values.push_back(SharedValue{"--lr", std::to_string(options.rate), std::bit_cast<std::uint64_t>(options.rate)});
  values.push_back(whole("--bucket-kib", options.bucket_kib));
  values.push_back(hash("the training images", data_fingerprint(data.train)));
  values.push_back(hash("the test images", data_fingerprint(data.test)));
  return values;
}

}  // namespace

Trainer::Trainer(weft::Communicator& world, const Split& data, const Options& options)
    : world_(world),
      data_(data),
      options_(options),
      model_(make_model(world, data, options)),
      velocity_(model_.parameters().size()),
      order_(data.train.size()),
      gradients_(world, tensors_of(model_), bucket_options(options)) {}

weft::Task<void> Trainer::agree() {
  std::string subject = "start";
  std::vector<SharedValue> values = shared_values(options_, data_);
  co_await expect_agreement(world_, std::move(subject), std::move(values));
  // The seed gives everybody the same weights already; the broadcast makes it so even where compilers round
  // differently.
  co_await weft::coll::broadcast(world_, model_.parameters(), 0);
}

void Trainer::enqueue_batch(Range batch) {
  const Range part = part_of(batch.size(), rank_of(world_), ranks_of(world_));
  const std::span<const std::uint32_t> rows = std::span(order_).subspan(batch.first + part.first, part.size());
  const std::size_t batch_samples = batch.size();
  stream_.launch([this, rows, batch_samples] { loss_sum_ += model_.train_forward(data_.train, rows, batch_samples); });
  for (std::size_t layer = model_.layers().size(); layer-- > 0;) {
    const std::span<float> weights = gradients_.gradient(weights_of(layer));
    const std::span<float> bias = gradients_.gradient(bias_of(layer));
    stream_.launch([this, layer, weights, bias] { model_.backward(layer, weights, bias); });
    gradients_.mark_ready(bias_of(layer), stream_);
    gradients_.mark_ready(weights_of(layer), stream_);
  }
}

void Trainer::enqueue_update() {
  for (std::size_t layer = 0; layer < model_.layers().size(); ++layer) {
    const std::span<const float> weights = gradients_.gradient(weights_of(layer));
    const std::span<const float> bias = gradients_.gradient(bias_of(layer));
    stream_.launch([this, layer, weights, bias] { update_layer(model_.layers()[layer], weights, bias); });
  }
}

void Trainer::update_layer(const LayerPlace& layer, std::span<const float> d_weights, std::span<const float> d_bias) {
  const auto rate = static_cast<float>(options_.rate);
  const auto momentum = static_cast<float>(Options::kMomentum);
  const std::span<float> parameters = model_.parameters();
  const std::span<float> velocity(velocity_);
  sgd_step(parameters.subspan(layer.begin, d_weights.size()), velocity.subspan(layer.begin, d_weights.size()),
           d_weights, rate, momentum);
  sgd_step(parameters.subspan(layer.bias_begin(), d_bias.size()), velocity.subspan(layer.bias_begin(), d_bias.size()),
           d_bias, rate, momentum);
}

weft::Task<EpochReport> Trainer::run_epoch(std::size_t epoch) {
  const std::size_t samples = data_.train.size();
  const std::size_t batch_size = std::min(options_.batch, samples);
  epoch_order(order_, options_.seed, epoch);
  loss_sum_ = 0.0;
  std::size_t steps = 0;
  weft::Duration communication{};
  weft::Duration hidden{};
  const Clock::time_point begin = Clock::now();
  for (std::size_t first = 0; first < samples; first += batch_size) {
    gradients_.begin_step();
    enqueue_batch(Range{first, std::min(first + batch_size, samples)});
    co_await gradients_.step();
    enqueue_update();
    communication += gradients_.timing().communication;
    hidden += gradients_.timing().hidden;
    ++steps;
  }
  co_await stream_.synchronize();
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - begin;

  const Range part = part_of(data_.test.size(), rank_of(world_), ranks_of(world_));
  stream_.launch([this, part] { test_ = model_.evaluate(data_.test, part.first, part.last); });
  co_await stream_.synchronize();

  std::array<double, 4> sums = {loss_sum_, static_cast<double>(test_.correct),
                                static_cast<double>(communication.count()), static_cast<double>(hidden.count())};
  co_await weft::coll::all_reduce(world_, std::span<double>(sums), weft::coll::sum);
  EpochReport report;
  report.loss = sums[0] / static_cast<double>(samples);
  report.accuracy = sums[1] / static_cast<double>(data_.test.size());
  report.step_ms = elapsed.count() / static_cast<double>(steps);
  if (world_.size() > 1 && sums[2] > 0.0) report.hidden = sums[3] / sums[2];
  co_return report;
}

weft::Task<std::uint64_t> Trainer::agreed_fingerprint() {
  const std::uint64_t own = fingerprint(std::as_const(model_).parameters());
  std::string subject = "parameters";
  std::vector<SharedValue> values;
  values.push_back(hash("the trained parameters", own));
  co_await expect_agreement(world_, std::move(subject), std::move(values));
  co_return own;
}

weft::Task<void> train(weft::Communicator& world, const Options* options, const Split* data) {
  const auto trainer = std::make_unique<Trainer>(world, *data, *options);
  co_await trainer->agree();
  const bool speaks = world.rank() == 0;
  for (std::size_t epoch = 1; epoch <= options->epochs; ++epoch) {
    const EpochReport report = co_await trainer->run_epoch(epoch);
    if (!speaks) continue;
    std::printf("epoch %zu loss %.8f accuracy %.4f step_ms %.2f hidden %.2f\n", epoch, report.loss, report.accuracy,
                report.step_ms, report.hidden);
    std::fflush(stdout);
  }
  const std::uint64_t parameters = co_await trainer->agreed_fingerprint();
  if (!speaks) co_return;
  std::printf("parameters %016" PRIx64 "\n", parameters);
  std::fflush(stdout);
}

}  // namespace digits
