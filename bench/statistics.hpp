// Samples of a measurement and what is said about them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bench {

/// Times in microseconds per operation. Has its memory before the clock runs: add() never allocates.
class Samples {
 public:
  explicit Samples(std::size_t capacity) { values_.reserve(capacity); }

  /// `elapsed_ns` for `operations` operations. Dropped when the samples are full.
  void add(double elapsed_ns, std::size_t operations) noexcept {
    if (values_.size() < values_.capacity()) values_.push_back(elapsed_ns * 1e-3 / static_cast<double>(operations));
  }
  void clear() noexcept { values_.clear(); }
  [[nodiscard]] std::span<double> values() noexcept { return values_; }

 private:
  std::vector<double> values_;
};

/// The middle one in order; the mean of the middle two for an even number. Precondition: not empty.
[[nodiscard]] double median(std::vector<double> values);

/// Median of the distances from the median: a spread that one outlier does not move. Precondition: not empty.
[[nodiscard]] double median_deviation(const std::vector<double>& values);

/// The smallest value that at least `share` (above 0, up to 1) of all values do not exceed: nearest rank, so it is
/// always one of the values. Precondition: not empty.
[[nodiscard]] double percentile(std::vector<double> values, double share);

struct Summary {
  double median = 0;
  double p99 = 0;
  double min = 0;
  double deviation = 0;  ///< median deviation
};

/// Of one repeat. Precondition: not empty.
[[nodiscard]] Summary summarize(std::span<const double> values);

/// Of several repeats: the medians of their medians and p99, the least of their minima, and how far their medians are
/// apart. Precondition: not empty.
[[nodiscard]] Summary summarize_repeats(std::span<const Summary> repeats);

}  // namespace bench
