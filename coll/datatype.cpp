#include "weft/coll/datatype.hpp"

namespace weft::coll {

std::string_view to_string(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::i8: return "i8";
    case Dtype::u8: return "u8";
    case Dtype::i16: return "i16";
    case Dtype::u16: return "u16";
    case Dtype::i32: return "i32";
    case Dtype::u32: return "u32";
    case Dtype::i64: return "i64";
    case Dtype::u64: return "u64";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::f32: return "f32";
    case Dtype::f64: return "f64";
  }
  return "unknown dtype";
}

}  // namespace weft::coll
