// What a collective call is, in the 32 bits that travel with each of its messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/coll/datatype.hpp"
#include "weft/coll/reduce_op.hpp"
#include "weft/net/message.hpp"

namespace weft::coll {

enum class Collective : std::uint8_t { barrier = 1, broadcast = 2, all_reduce = 3 };

/// kind: 4 bits, dtype: 4, op: 3, fingerprint of count, root and algorithm: 21. Two calls that differ in anything but
/// the fingerprint always differ; in the fingerprint alone, all but one in two million.
[[nodiscard]] std::uint32_t make_signature(Collective kind, Dtype dtype, ReduceOp op, std::size_t count, Rank root,
                                           std::uint32_t algorithm) noexcept;

/// "all_reduce of f32, sum (count, root or algorithm: #1a2b3)".
[[nodiscard]] std::string describe_signature(std::uint32_t signature);

}  // namespace weft::coll
