// Floors of shared memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "floor.hpp"
#include "private_buffer.hpp"
#include "spin.hpp"
#include "weft/coll/reduce_kernels.hpp"

namespace bench {
namespace {

constexpr std::size_t kLinePayload = sizeof(FlagLine::room);

/// Makes the compiler believe that somebody reads what was copied.
void used(const void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

void raise(FlagLine& line, std::uint64_t value) {
  line.value.store(value, std::memory_order_release);
}

void await(FlagLine& line, std::uint64_t value) {
  spin_until([&] { return line.value.load(std::memory_order_acquire) >= value; });
}

class MemoryPingPong final : public Floor {
 public:
  MemoryPingPong(SharedArena& arena, weft::Rank rank, std::size_t bytes)
      : arena_(arena), rank_(rank), bytes_(bytes), private_(bytes) {}

  [[nodiscard]] const char* what() const noexcept override {
    return bytes_ <= kLinePayload ? "one cache line to and fro" : "a flag, and one copy out of shared memory";
  }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    std::uint64_t turn = arena_.take(grains * batch);
    if (rank_ > 1) return;
    FlagLine& mine = arena_.line(rank_);
    FlagLine& other = arena_.line(1 - rank_);
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i) {
        ++turn;
        if (rank_ == 0) put(mine, turn);
        await(other, turn);
        take(other);
        if (rank_ == 1) put(mine, turn);
      }
      if (samples != nullptr) samples->add(now_ns() - begin, 2 * batch);
    }
  }

 private:
  void put(FlagLine& line, std::uint64_t turn) {
    // Larger payloads are where the other rank can read them already.
    if (bytes_ <= kLinePayload) std::memcpy(line.room, private_.data(), bytes_);
    raise(line, turn);
  }
  void take(const FlagLine& line) {
    const std::byte* const from =
        bytes_ <= kLinePayload ? line.room : arena_.data().data() + static_cast<std::size_t>(1 - rank_) * bytes_;
    std::memcpy(private_.data(), from, bytes_);
    used(private_.data());
  }

  SharedArena& arena_;
  weft::Rank rank_;
  std::size_t bytes_;
  PrivateBuffer private_;
};

class MemoryCopy final : public Floor {
 public:
  MemoryCopy(weft::Rank rank, std::size_t bytes) : rank_(rank), from_(bytes), to_(bytes) {}

  [[nodiscard]] const char* what() const noexcept override { return "memcpy of the size, on one core"; }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    if (rank_ != 0) return;
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i) {
        std::memcpy(to_.data(), from_.data(), from_.size());
        used(to_.data());
      }
      if (samples != nullptr) samples->add(now_ns() - begin, batch);
    }
  }

 private:
  weft::Rank rank_;
  PrivateBuffer from_;
  PrivateBuffer to_;
};

class MemoryCells final : public Floor {
 public:
  MemoryCells(SharedArena& arena, weft::Rank rank) : arena_(arena), rank_(rank) {
    // A cell's value tells whether it is new, so what an earlier floor has left there must look old.
    if (rank == 0) std::fill(arena.data().begin(), arena.data().end(), std::byte{0});
  }

  [[nodiscard]] const char* what() const noexcept override {
    return "one cache line a message, written and read in turn";
  }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    std::uint64_t turn = arena_.take(grains * batch);
    if (rank_ > 1) return;
    auto* const cells = reinterpret_cast<FlagLine*>(arena_.data().data());
    FlagLine& acknowledged = arena_.line(1);
    std::uint64_t payload = 0;
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i) {
        ++turn;
        FlagLine& cell = cells[i];
        if (rank_ == 0) {
          std::memcpy(cell.room, &turn, sizeof turn);
          raise(cell, turn);
        } else {
          await(cell, turn);
          std::memcpy(&payload, cell.room, sizeof payload);
          used(&payload);
        }
      }
      if (rank_ == 1) raise(acknowledged, turn);
      if (rank_ == 0) await(acknowledged, turn);
      if (samples != nullptr) samples->add(now_ns() - begin, batch);
    }
  }

 private:
  SharedArena& arena_;
  weft::Rank rank_;
};

class MemorySum final : public Floor {
 public:
  MemorySum(SharedArena& arena, weft::Rank rank, weft::Rank ranks, std::size_t bytes)
      : arena_(arena), rank_(rank), ranks_(ranks), bytes_(bytes), scratch_(kBlockBytes) {
    for (weft::Rank r = 0; r < ranks; ++r)
      inputs_.push_back(buffer(r));
    at_.resize(inputs_.size());
  }

  [[nodiscard]] const char* what() const noexcept override {
    return small() ? "flags, and each rank sums everything straight from shared memory"
                   : "flags, and each rank sums its part straight from shared memory and stores it to all";
  }

  void run(std::size_t grains, std::size_t batch, Samples* samples) override {
    std::uint64_t turn = arena_.take(2 * grains * batch);
    for (std::size_t grain = 0; grain < grains; ++grain) {
      const double begin = now_ns();
      for (std::size_t i = 0; i < batch; ++i) {
        meet(++turn);
        if (small()) {
          ++turn;
          sum(0, bytes_, false);
        } else {
          const auto rank = static_cast<std::size_t>(rank_);
          const auto ranks = static_cast<std::size_t>(ranks_);
          const std::size_t count = bytes_ / sizeof(float);
          sum(count * rank / ranks * sizeof(float), count * (rank + 1) / ranks * sizeof(float), true);
          meet(++turn);
        }
      }
      if (samples != nullptr) samples->add(now_ns() - begin, batch);
    }
  }

 private:
  static constexpr std::size_t kBlockBytes = 16384;  // the sums of a block stay in the first-level cache

  [[nodiscard]] bool small() const noexcept { return bytes_ <= 4096; }
  [[nodiscard]] std::byte* buffer(weft::Rank index) const noexcept {
    return arena_.data().data() + static_cast<std::size_t>(index) * bytes_;
  }

  void meet(std::uint64_t turn) {
    raise(arena_.line(rank_), turn);
    for (weft::Rank r = 0; r < ranks_; ++r)
      await(arena_.line(r), turn);
  }

  void sum(std::size_t begin, std::size_t end, bool store_to_all) {
    for (std::size_t at = begin; at < end; at += kBlockBytes) {
      const std::size_t length = std::min(kBlockBytes, end - at);
      for (std::size_t r = 0; r < inputs_.size(); ++r)
        at_[r] = inputs_[r] + at;
      weft::coll::reduce_ranks(weft::coll::Dtype::f32, weft::coll::sum, scratch_.data(), at_, length / sizeof(float),
                               1);
      if (!store_to_all) {
        used(scratch_.data());
        continue;
      }
      for (weft::Rank r = 0; r < ranks_; ++r)
        std::memcpy(buffer(ranks_ + r) + at, scratch_.data(), length);
    }
  }

  SharedArena& arena_;
  weft::Rank rank_;
  weft::Rank ranks_;
  std::size_t bytes_;
  PrivateBuffer scratch_;
  std::vector<const std::byte*> inputs_;
  std::vector<const std::byte*> at_;
};

}  // namespace

std::unique_ptr<Floor> memory_ping_pong(SharedArena& arena, weft::Rank rank, std::size_t bytes) {
  return std::make_unique<MemoryPingPong>(arena, rank, bytes);
}

std::unique_ptr<Floor> memory_copy(weft::Rank rank, std::size_t bytes) {
  return std::make_unique<MemoryCopy>(rank, bytes);
}

std::unique_ptr<Floor> memory_cells(SharedArena& arena, weft::Rank rank) {
  return std::make_unique<MemoryCells>(arena, rank);
}

std::unique_ptr<Floor> memory_sum(SharedArena& arena, weft::Rank rank, weft::Rank ranks, std::size_t bytes) {
  return std::make_unique<MemorySum>(arena, rank, ranks, bytes);
}

}  // namespace bench
