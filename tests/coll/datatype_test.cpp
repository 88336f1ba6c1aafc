#include "weft/coll/datatype.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string_view>

#include "weft/coll/reduce_op.hpp"

namespace {

using namespace weft::coll;

TEST(Datatype, EveryDtypeHasASizeAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Dtype dtype : kAllDtypes) {
    EXPECT_TRUE(is_valid(dtype));
    EXPECT_GT(size_of(dtype), 0u);
    EXPECT_NE(to_string(dtype), "unknown dtype");
    names.insert(to_string(dtype));
  }
  EXPECT_EQ(names.size(), std::size(kAllDtypes));
}

TEST(Datatype, AValueFromOutsideIsRecognised) {
  const auto foreign = static_cast<Dtype>(200);
  EXPECT_FALSE(is_valid(foreign));
  EXPECT_EQ(size_of(foreign), 0u);
  EXPECT_EQ(to_string(foreign), "unknown dtype");
}

// Expect: types map to their Dtype.
static_assert(dtype_of<float> == Dtype::f32 && dtype_of<double> == Dtype::f64);
static_assert(dtype_of<weft::f16> == Dtype::f16 && dtype_of<weft::bf16> == Dtype::bf16);
static_assert(dtype_of<std::int32_t> == Dtype::i32 && dtype_of<std::uint32_t> == Dtype::u32);
static_assert(dtype_of<long> == Dtype::i64 && dtype_of<long long> == Dtype::i64);
static_assert(dtype_of<unsigned long> == Dtype::u64 && dtype_of<unsigned long long> == Dtype::u64);
static_assert(dtype_of<std::int8_t> == Dtype::i8 && dtype_of<std::uint8_t> == Dtype::u8);
static_assert(dtype_of<std::int16_t> == Dtype::i16 && dtype_of<std::uint16_t> == Dtype::u16);
static_assert(!Reducible<bool> && !Reducible<char> && !Reducible<std::byte> && !Reducible<long double>);
static_assert(!Reducible<const float> && !Reducible<float*>);
static_assert(size_of(dtype_of<weft::f16>) == sizeof(weft::f16) && size_of(dtype_of<double>) == sizeof(double));

TEST(ReduceOp, EveryReductionHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const ReduceOp op : kAllReduceOps) {
    EXPECT_TRUE(is_valid(op));
    EXPECT_NE(to_string(op), "unknown reduction");
    names.insert(to_string(op));
  }
  EXPECT_EQ(names.size(), std::size(kAllReduceOps));
  EXPECT_FALSE(is_valid(static_cast<ReduceOp>(4)));
  EXPECT_EQ(to_string(static_cast<ReduceOp>(4)), "unknown reduction");
}

}  // namespace
