// How gradients are laid out in one flat buffer and cut into buckets, the units of communication. A pure function of
// values that all ranks share, because ranks that cut differently would reduce different things.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::gpu {

/// A parameter tensor: its name, which stands in messages, and its number of f32 elements.
struct ParameterInfo {
  std::string name;
  std::size_t count = 0;
};

/// Where a gradient lies. Units: floats from the beginning of the flat buffer.
struct GradientPlace {
  std::size_t begin = 0;  ///< a multiple of kGradientAlignmentBytes
  std::size_t count = 0;
  std::size_t bucket = 0;
};

/// Gradients that travel together: `last_parameter` down to `first_parameter`, padding between them. Units: floats.
struct GradientBucket {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< of its last gradient, without the padding behind it
  std::size_t first_parameter = 0;
  std::size_t last_parameter = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return (end - begin) * sizeof(float); }
};

struct BucketPlan {
  std::vector<GradientPlace> gradients;  ///< by parameter
  std::vector<GradientBucket> buckets;   ///< in launch order
  std::size_t floats = 0;                ///< of the flat buffer
};

inline constexpr std::size_t kGradientAlignmentBytes = 64;  // a cache line, and the widest vector register

/// Cuts in reverse order of registration, in which a backward pass computes gradients: the last parameter stands first
/// in the buffer and in bucket 0. A bucket takes the next gradient as long as it stays within its cap (padding
/// counted); one that is larger than the cap gets a bucket of its own. A gradient of no elements goes with its
/// predecessor. `first_bucket_bytes` is the cap of bucket 0: a small one starts communication early.
/// Precondition: the caps are not 0. Errors: throws Error(invalid_argument) when the sizes overflow.
[[nodiscard]] BucketPlan cut_buckets(std::span<const ParameterInfo> parameters, std::size_t first_bucket_bytes,
                                     std::size_t bucket_bytes);

/// A number for parameters[0..i] together, for each i: two lists agree up to where these numbers agree.
/// The same on every machine.
[[nodiscard]] std::vector<std::uint64_t> fingerprints(std::span<const ParameterInfo> parameters);

/// FNV-1a over 8 bytes, least significant first.
[[nodiscard]] std::uint64_t mix_fingerprint(std::uint64_t fingerprint, std::uint64_t value) noexcept;

}  // namespace weft::gpu
