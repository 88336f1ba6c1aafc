#include "weft/gpu/bucket_agreement.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace weft::gpu {
namespace {

constexpr const char* kOperation = "bucket agreement";

// A maximum is all that is needed: the smallest of x is the complement of the largest of ~x. A pair holds both.
constexpr std::size_t kPair = 2;

void put_pair(std::span<std::uint64_t> values, std::size_t index, std::uint64_t value) noexcept {
  values[kPair * index] = value;
  values[kPair * index + 1] = ~value;
}

bool same_everywhere(std::span<const std::uint64_t> values, std::size_t index) noexcept {
  return values[kPair * index] == ~values[kPair * index + 1];
}

[[noreturn]] void throw_other_count(std::size_t here, std::uint64_t fewest, std::uint64_t most) {
  throw Error(Errc::mismatch, kOperation,
              "this rank registered " + std::to_string(here) + " parameters, the others from " +
                  std::to_string(fewest) + " to " + std::to_string(most));
}

[[noreturn]] void throw_other_parameter(const ParameterInfo& parameter, std::size_t index) {
  throw Error(Errc::mismatch, kOperation,
              "ranks registered different parameters; the first difference is at parameter " + std::to_string(index) +
                  ", which on this rank is '" + parameter.name + "' with " + std::to_string(parameter.count) +
                  " elements");
}

[[noreturn]] void throw_other_options(const BucketOptions& options) {
  throw Error(Errc::mismatch, kOperation,
              "ranks registered the same parameters with different options; this rank has bucket_bytes " +
                  std::to_string(options.bucket_bytes) + ", first_bucket_bytes " +
                  std::to_string(options.first_bucket_bytes) + ", op " + std::string(coll::to_string(options.op)));
}

std::uint64_t fingerprint_of(const BucketOptions& options) noexcept {
  std::uint64_t fingerprint = mix_fingerprint(0, options.bucket_bytes);
  fingerprint = mix_fingerprint(fingerprint, options.first_bucket_bytes);
  return mix_fingerprint(fingerprint, static_cast<std::uint64_t>(options.op));
}

}  // namespace

// Every decision below is made of reduced values only, so that all ranks take the same way.
Task<void> agree_on_parameters(BucketTransport& transport, std::span<const ParameterInfo> parameters,
                               BucketOptions options) {
  const std::vector<std::uint64_t> prefixes = fingerprints(parameters);
  std::uint64_t whole = fingerprint_of(options);
  if (!prefixes.empty()) whole = mix_fingerprint(whole, prefixes.back());

  std::array<std::uint64_t, 2 * kPair> summary{};
  put_pair(summary, 0, parameters.size());
  put_pair(summary, 1, whole);
  co_await transport.agree_max(std::span<std::uint64_t>(summary));
  if (!same_everywhere(summary, 0)) throw_other_count(parameters.size(), ~summary[1], summary[0]);
  if (same_everywhere(summary, 1)) co_return;

  std::vector<std::uint64_t> details(kPair * prefixes.size());
  for (std::size_t i = 0; i < prefixes.size(); ++i)
    put_pair(details, i, prefixes[i]);
  co_await transport.agree_max(std::span<std::uint64_t>(details));
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    if (!same_everywhere(details, i)) throw_other_parameter(parameters[i], i);
  }
  throw_other_options(options);
}

}  // namespace weft::gpu
