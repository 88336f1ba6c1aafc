// Whether all ranks registered the same parameters and options: found out once, before the first gradient travels,
// because ranks that disagree would add up gradients of different parameters.
#pragma once

#include <span>

#include "weft/gpu/bucket_options.hpp"
#include "weft/gpu/bucket_transport.hpp"
#include "weft/gpu/gradient_bucket.hpp"

namespace weft::gpu {

/// Collective. One reduction of 4 numbers where all ranks agree, a second one of 2 numbers a parameter to find where
/// they differ first.
/// Lifetime: everything until the task ends. Errors: throws Error(mismatch) on all ranks, naming what this one has;
/// those of the transport.
[[nodiscard]] Task<void> agree_on_parameters(BucketTransport& transport, std::span<const ParameterInfo> parameters,
                                             BucketOptions options);

}  // namespace weft::gpu
