#include "agreement.hpp"

#include <cstddef>
#include <span>

#include "weft/coll/all_reduce.hpp"
#include "weft/runtime/error.hpp"

namespace digits {

weft::Task<void> expect_agreement(weft::Communicator& world, std::string subject, std::vector<SharedValue> values) {
  // The largest complement is the complement of the smallest value: one reduction finds both ends.
  std::vector<std::uint64_t> ends;
  for (const SharedValue& shared : values) {
    ends.push_back(shared.value);
    ends.push_back(~shared.value);
  }
  co_await weft::coll::all_reduce(world, std::span(ends), weft::coll::max);
  std::string differing;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (ends[2 * i] == ~ends[2 * i + 1]) continue;
    differing += (differing.empty() ? "" : ", ") + values[i].name + " (here " + values[i].text + ")";
  }
  if (differing.empty()) co_return;
  throw weft::Error(weft::Errc::mismatch, subject, "ranks of this job differ in " + differing);
}

}  // namespace digits
