// Several ranks' bucket transports in one reactor, without a network: what one rank brings is added to what the others
// bring, operation by operation, in each rank's own order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "weft/gpu/bucket_transport.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::gpu {

class TransportHub {
 public:
  explicit TransportHub(std::size_t ranks) : next_(ranks) {}

  /// What happened, in order of time.
  std::vector<std::size_t> started;
  std::size_t in_flight = 0;
  std::size_t most_in_flight = 0;
  /// Called by reduce() before it waits for the others; may throw.
  std::function<void(std::size_t bucket)> on_reduce;
  /// Reductions wait for this besides the other ranks.
  Event gate;
  int yields = 0;
  Duration default_timeout{};

  [[nodiscard]] std::unique_ptr<BucketTransport> transport(std::size_t rank) {
    return std::make_unique<Transport>(*this, rank);
  }

 private:
  struct Operation {
    std::size_t arrived = 0;
    std::vector<float> sum;
    std::vector<std::uint64_t> largest;
    Event complete;
  };

  class Transport final : public BucketTransport {
   public:
    Transport(TransportHub& hub, std::size_t rank) : hub_(hub), rank_(rank) {}

    Task<void> reduce(std::span<float> values, std::size_t bucket) override {
      Operation& operation = hub_.arrive(rank_);
      hub_.started.push_back(bucket);
      hub_.most_in_flight = std::max(hub_.most_in_flight, ++hub_.in_flight);
      const Landing landing(hub_);
      if (hub_.on_reduce) hub_.on_reduce(bucket);
      operation.sum.resize(std::max(operation.sum.size(), values.size()));
      EXPECT_EQ(operation.sum.size(), values.size()) << "ranks reduce different buckets";
      for (std::size_t i = 0; i < values.size(); ++i)
        operation.sum[i] += values[i];
      co_await hub_.meet(operation);
      std::copy_n(operation.sum.begin(), values.size(), values.begin());
    }

    Task<void> agree_max(std::span<std::uint64_t> values) override {
      Operation& operation = hub_.arrive(rank_);
      operation.largest.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        operation.largest[i] = std::max(operation.largest[i], values[i]);
      }
      co_await hub_.meet(operation);
      std::copy_n(operation.largest.begin(), values.size(), values.begin());
    }

    Duration default_timeout() const noexcept override { return hub_.default_timeout; }

   private:
    struct Landing {
      explicit Landing(TransportHub& to) noexcept : hub(to) {}
      ~Landing() { --hub.in_flight; }
      TransportHub& hub;
    };
    TransportHub& hub_;
    std::size_t rank_;
  };

  Operation& arrive(std::size_t rank) {
    const std::size_t number = next_[rank]++;
    while (operations_.size() <= number)
      operations_.emplace_back();
    return operations_[number];
  }

  Task<void> meet(Operation& operation) {
    if (++operation.arrived == next_.size()) operation.complete.set();
    co_await operation.complete.wait();
    co_await gate.wait();
    for (int i = 0; i < yields; ++i)
      co_await yield();
  }

  std::vector<std::size_t> next_;  ///< by rank
  std::deque<Operation> operations_;
};

}  // namespace weft::gpu
