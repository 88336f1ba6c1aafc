// Whether all ranks hold the same: what they were started with before the first step, what they have learnt after the
// last one. Ranks that differ would train on silently and wrongly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/communicator.hpp"
#include "weft/runtime/task.hpp"

namespace digits {

/// Something that must be the same on all ranks.
struct SharedValue {
  std::string name;     ///< "--epochs"
  std::string text;     ///< its value on this rank, for people: "30"
  std::uint64_t value;  ///< what is compared: the value itself or a hash of it
};

/// Collective: ends when all ranks have compared `values`, which stand in the same order everywhere.
/// Errors: weft::Error mismatch, on every rank, whose operation is `subject` and which names each value that differs
/// and what it is here; those of all_reduce.
[[nodiscard]] weft::Task<void> expect_agreement(weft::Communicator& world, std::string subject,
                                                std::vector<SharedValue> values);

}  // namespace digits
