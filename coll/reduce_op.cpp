#include "weft/coll/reduce_op.hpp"

namespace weft::coll {

std::string_view to_string(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::avg: return "avg";
    case ReduceOp::min: return "min";
    case ReduceOp::max: return "max";
  }
  return "unknown reduction";
}

}  // namespace weft::coll
