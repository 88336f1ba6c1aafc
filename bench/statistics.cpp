#include "statistics.hpp"

#include <algorithm>
#include <cmath>

#include "weft/runtime/assert.hpp"

namespace bench {

double median(std::vector<double> values) {
  WEFT_ASSERT(!values.empty(), "a median of nothing");
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_deviation(const std::vector<double>& values) {
  const double center = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values)
    distances.push_back(std::fabs(value - center));
  return median(std::move(distances));
}

double percentile(std::vector<double> values, double share) {
  WEFT_ASSERT(!values.empty() && share > 0 && share <= 1, "a percentile of nothing, or outside of (0, 1]");
  // 0.99 * 100 is a little more than 99 in binary; the rank must not jump because of it.
  const double exact = share * static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::ceil(exact - 1e-9));
  const std::size_t index = std::min(std::max<std::size_t>(rank, 1), values.size()) - 1;
  std::sort(values.begin(), values.end());
  return values[index];
}

Summary summarize(std::span<const double> values) {
  const std::vector<double> copy(values.begin(), values.end());
  Summary summary;
  summary.median = median(copy);
  summary.p99 = percentile(copy, 0.99);
  summary.min = *std::min_element(copy.begin(), copy.end());
  summary.deviation = median_deviation(copy);
  return summary;
}

Summary summarize_repeats(std::span<const Summary> repeats) {
  std::vector<double> medians;
  std::vector<double> tails;
  std::vector<double> minima;
  for (const Summary& repeat : repeats) {
    medians.push_back(repeat.median);
    tails.push_back(repeat.p99);
    minima.push_back(repeat.min);
  }
  Summary summary;
  summary.deviation = median_deviation(medians);
  summary.median = median(std::move(medians));
  summary.p99 = median(std::move(tails));
  summary.min = *std::min_element(minima.begin(), minima.end());
  return summary;
}

}  // namespace bench
