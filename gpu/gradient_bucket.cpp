#include "weft/gpu/gradient_bucket.hpp"

#include <limits>

#include "weft/runtime/assert.hpp"
#include "weft/runtime/error.hpp"

namespace weft::gpu {
namespace {

constexpr std::size_t kAlignmentFloats = kGradientAlignmentBytes / sizeof(float);
// Half of what size_t can say in bytes, so that sums of two such sizes do not overflow.
constexpr std::size_t kMaxFloats = std::numeric_limits<std::size_t>::max() / sizeof(float) / 2;
constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325u;
constexpr std::uint64_t kFnvPrime = 0x100000001b3u;

std::size_t align(std::size_t floats) noexcept {
  return (floats + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
}

/// Whether a gradient of `count` elements that ends at `end` goes into `bucket`.
bool joins(const GradientBucket& bucket, std::size_t end, std::size_t count, std::size_t cap_bytes) noexcept {
  const bool nothing_yet = bucket.begin == bucket.end;
  return count == 0 || nothing_yet || (end - bucket.begin) * sizeof(float) <= cap_bytes;
}

}  // namespace

BucketPlan cut_buckets(std::span<const ParameterInfo> parameters, std::size_t first_bucket_bytes,
                       std::size_t bucket_bytes) {
  WEFT_ASSERT(first_bucket_bytes != 0 && bucket_bytes != 0, "cut_buckets: a cap of 0 bytes");
  BucketPlan plan;
  plan.gradients.resize(parameters.size());
  for (std::size_t left = parameters.size(); left-- > 0;) {
    const std::size_t count = parameters[left].count;
    if (count > kMaxFloats || plan.floats > kMaxFloats - count) {
      throw Error(Errc::invalid_argument, "gradient buckets",
                  "parameter '" + parameters[left].name + "' has " + std::to_string(count) +
                      " elements; all together do not fit into memory");
    }
    const std::size_t begin = plan.floats;
    const std::size_t end = begin + count;
    const std::size_t cap = plan.buckets.size() <= 1 ? first_bucket_bytes : bucket_bytes;
    if (plan.buckets.empty() || !joins(plan.buckets.back(), end, count, cap)) {
      plan.buckets.push_back(GradientBucket{begin, begin, left, left});
    }
    GradientBucket& bucket = plan.buckets.back();
    if (count != 0) bucket.end = end;
    bucket.first_parameter = left;
    plan.gradients[left] = GradientPlace{begin, count, plan.buckets.size() - 1};
    plan.floats = align(end);
  }
  return plan;
}

std::uint64_t mix_fingerprint(std::uint64_t fingerprint, std::uint64_t value) noexcept {
  for (int byte = 0; byte < 8; ++byte) {
    fingerprint = (fingerprint ^ (value >> (8 * byte) & 0xff)) * kFnvPrime;
  }
  return fingerprint;
}

std::vector<std::uint64_t> fingerprints(std::span<const ParameterInfo> parameters) {
  std::vector<std::uint64_t> result;
  result.reserve(parameters.size());
  std::uint64_t fingerprint = kFnvBasis;
  for (const ParameterInfo& parameter : parameters) {
    fingerprint = mix_fingerprint(fingerprint, parameter.name.size());
    for (const char c : parameter.name) {
      fingerprint = (fingerprint ^ static_cast<unsigned char>(c)) * kFnvPrime;
    }
    fingerprint = mix_fingerprint(fingerprint, parameter.count);
    result.push_back(fingerprint);
  }
  return result;
}

}  // namespace weft::gpu
