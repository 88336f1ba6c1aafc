// Compiled once per instruction set (Highway includes this file again for each) and chosen at run time.
//
// A kernel is a class of static functions over one vector of accumulators:
//   kBytes    size of an element in memory
//   load      memory -> accumulators (widens f16 and bf16, maps floats to ordered integers for min and max)
//   apply     accumulators op accumulators
//   divide    where the element type can: accumulators / divisor
//   store     accumulators -> memory: rounds, and makes every NaN the one canonical NaN
// The loops below know nothing of types or operations. Bits do not depend on the instruction set because each kernel is
// made of operations that IEEE 754 or integer arithmetic define exactly, and because no product is ever followed by a
// sum, so that no compiler can fuse the two.

// The fallback for a CPU without any vector unit is plain scalar code, with every compiler: Highway's emulated vectors
// would be slower here and take most of this file's compile time.
#define HWY_BROKEN_EMU128 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/coll/reduce_kernels_simd.cpp"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weft/coll/reduce_kernels_simd.hpp"

#if defined(__FAST_MATH__)
#error "Weft's reductions promise IEEE 754 results: compile without -ffast-math"
#endif

// Whether this instruction set converts between f16 and f32, to nearest even and with subnormals.
#undef WEFT_NATIVE_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define WEFT_NATIVE_F16 1
#else
#define WEFT_NATIVE_F16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::coll {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Memory is read and written as bytes, since not even the alignment of the element type is promised.
template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof(value));
  return hn::Set(d, value);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
#endif
}

template <class D>
HWY_INLINE void store_bytes(D, hn::Vec<D> vector, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> value = hn::GetLane(vector);
  std::memcpy(to, &value, sizeof(value));
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, vector), bytes, reinterpret_cast<std::uint8_t*>(to));
#endif
}

template <class DF>
HWY_INLINE hn::Vec<DF> with_canonical_nan(DF df, hn::Vec<DF> v) {
  using Bits = hwy::MakeUnsigned<hn::TFromD<DF>>;
  constexpr Bits kCanonical = sizeof(Bits) == 8 ? static_cast<Bits>(0x7ff8000000000000u) : Bits{0x7fc00000u};
  const hn::RebindToUnsigned<DF> du;
  return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(df, hn::Set(du, kCanonical)), v);
}

// Sums of integers; T is unsigned, so that overflow wraps for signed elements too.
template <typename T>
struct IntegerSum {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr bool kDivides = false;
  static HWY_INLINE V load(const std::byte* from) { return load_bytes(D(), from); }
  static HWY_INLINE V apply(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE void store(V v, std::byte* to) { store_bytes(D(), v, to); }
};

template <typename T, ReduceOp kOp>
struct IntegerExtreme {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr bool kDivides = false;
  static HWY_INLINE V load(const std::byte* from) { return load_bytes(D(), from); }
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (kOp == ReduceOp::min) {
      return hn::Min(a, b);
    } else {
      return hn::Max(a, b);
    }
  }
  static HWY_INLINE void store(V v, std::byte* to) { store_bytes(D(), v, to); }
};

template <typename T>
struct FloatSum {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr bool kDivides = true;
  static HWY_INLINE V load(const std::byte* from) { return load_bytes(D(), from); }
  static HWY_INLINE V apply(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V divide(V v, std::uint32_t divisor) { return hn::Div(v, hn::Set(D(), static_cast<T>(divisor))); }
  static HWY_INLINE void store(V v, std::byte* to) { store_bytes(D(), with_canonical_nan(D(), v), to); }
};

// f16 and bf16 in memory, f32 in registers.
using DF32 = hn::ScalableTag<float>;
using DU32 = hn::RebindToUnsigned<DF32>;
using DI32 = hn::RebindToSigned<DF32>;
using DHalf = hn::Rebind<std::uint16_t, DF32>;
using VF32 = hn::Vec<DF32>;
using VU32 = hn::Vec<DU32>;

// The low 16 bits of each lane, which are all that a lane holds.
HWY_INLINE void store_halves(VU32 v, std::byte* to) {
  store_bytes(DHalf(), hn::DemoteTo(DHalf(), hn::BitCast(DI32(), v)), to);
}

HWY_INLINE VU32 if_greater(VU32 magnitude, std::uint32_t bound, VU32 yes, VU32 no) {
  const DI32 di;  // magnitudes have no sign bit, so the comparison of signed integers is right, and cheaper
  const auto greater = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<std::int32_t>(bound)));
  return hn::BitCast(DU32(), hn::IfThenElse(greater, hn::BitCast(di, yes), hn::BitCast(di, no)));
}

struct Bf16 {
  static HWY_INLINE VF32 load(const std::byte* from) {
    const VU32 words = hn::PromoteTo(DU32(), load_bytes(DHalf(), from));
    return hn::BitCast(DF32(), hn::ShiftLeft<16>(words));
  }
  static HWY_INLINE void store(VF32 v, std::byte* to) {
    const DU32 du;
    const VU32 word = hn::BitCast(du, with_canonical_nan(DF32(), v));
    const VU32 odd = hn::And(hn::ShiftRight<16>(word), hn::Set(du, 1u));
    store_halves(hn::ShiftRight<16>(hn::Add(hn::Add(word, hn::Set(du, 0x7fffu)), odd)), to);
  }
};

struct F16 {
#if WEFT_NATIVE_F16
  using DF16 = hn::Rebind<hwy::float16_t, DF32>;
  static HWY_INLINE VF32 load(const std::byte* from) {
    return hn::PromoteTo(DF32(), hn::BitCast(DF16(), load_bytes(DHalf(), from)));
  }
  static HWY_INLINE void store(VF32 v, std::byte* to) {
    const auto halves = hn::DemoteTo(DF16(), with_canonical_nan(DF32(), v));
    store_bytes(DHalf(), hn::BitCast(DHalf(), halves), to);
  }
#else
  static HWY_INLINE VF32 load(const std::byte* from) {
    const DF32 df;
    const DU32 du;
    const VU32 half = hn::PromoteTo(du, load_bytes(DHalf(), from));
    const VU32 magnitude = hn::And(half, hn::Set(du, 0x7fffu));
    const VU32 rebias = hn::Set(du, 112u << 23);
    const VU32 normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
    // A subnormal is its fraction times 2^-24, exactly. Infinity and NaN take the top exponent of f32.
    const VF32 fraction = hn::ConvertTo(df, hn::BitCast(DI32(), magnitude));
    const VU32 subnormal = hn::BitCast(du, hn::Mul(fraction, hn::Set(df, 0x1p-24f)));
    const VU32 finite = if_greater(magnitude, 0x03ffu, normal, subnormal);
    const VU32 word = if_greater(magnitude, 0x7bffu, hn::Add(normal, rebias), finite);
    return hn::BitCast(df, hn::Or(word, hn::ShiftLeft<16>(hn::Sub(half, magnitude))));
  }
  static HWY_INLINE void store(VF32 v, std::byte* to) {
    const DF32 df;
    const DU32 du;
    const VU32 word = hn::BitCast(du, v);
    const VU32 magnitude = hn::And(word, hn::Set(du, 0x7fffffffu));
    const VU32 odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    const VU32 rebias_and_round = hn::Set(du, 0x0fffu - (112u << 23));
    const VU32 normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, rebias_and_round), odd));
    // Below 2^-14: the spacing of f32 numbers at 0.5 is 2^-24, so this sum rounds to a multiple of it, to nearest even.
    const VF32 sum = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
    const VU32 subnormal = hn::Sub(hn::BitCast(du, sum), hn::Set(du, 0x3f000000u));
    const VU32 finite = if_greater(magnitude, 0x387fffffu, normal, subnormal);
    const VU32 extended = if_greater(magnitude, 0x477fffffu, hn::Set(du, 0x7c00u), finite);
    const VU32 sign = hn::And(hn::ShiftRight<16>(word), hn::Set(du, 0x8000u));
    store_halves(if_greater(magnitude, 0x7f800000u, hn::Set(du, 0x7e00u), hn::Or(extended, sign)), to);
  }
#endif
};

template <class Format>
struct HalfSum {
  using D = DF32;
  using V = VF32;
  static constexpr std::size_t kBytes = 2;
  static constexpr bool kDivides = true;
  static HWY_INLINE V load(const std::byte* from) { return Format::load(from); }
  static HWY_INLINE V apply(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V divide(V v, std::uint32_t divisor) {
    return hn::Div(v, hn::Set(D(), static_cast<float>(divisor)));
  }
  static HWY_INLINE void store(V v, std::byte* to) { Format::store(v, to); }
};

// Minimum and maximum of floats by their bits. Flipping the magnitude of negative numbers turns the order of IEEE 754
// into the order of signed integers, -0 < +0 included; a NaN becomes the integer that wins. Infinity names the format.
template <typename TI, TI kInfinity, ReduceOp kOp>
struct FloatExtreme {
  using D = hn::ScalableTag<TI>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(TI);
  static constexpr bool kDivides = false;
  static constexpr TI kMagnitude = std::numeric_limits<TI>::max();
  static constexpr TI kWinner = kOp == ReduceOp::min ? std::numeric_limits<TI>::min() : kMagnitude;
  // The quiet bit is the top bit of the fraction: half the lowest bit of the exponent.
  static constexpr TI kCanonicalNan = static_cast<TI>(kInfinity | (((kInfinity ^ kMagnitude) + 1) >> 1));

  static HWY_INLINE V flip_negatives(V v) {
    return hn::Xor(v, hn::And(hn::BroadcastSignBit(v), hn::Set(D(), kMagnitude)));
  }
  static HWY_INLINE V replace_nan(V bits, V replacement, V otherwise) {
    const V magnitude = hn::And(bits, hn::Set(D(), kMagnitude));
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(D(), kInfinity)), replacement, otherwise);
  }
  static HWY_INLINE V load(const std::byte* from) {
    const V bits = load_bytes(D(), from);
    return replace_nan(bits, hn::Set(D(), kWinner), flip_negatives(bits));
  }
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (kOp == ReduceOp::min) {
      return hn::Min(a, b);
    } else {
      return hn::Max(a, b);
    }
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    const V bits = flip_negatives(v);
    store_bytes(D(), replace_nan(bits, hn::Set(D(), kCanonicalNan), bits), to);
  }
};

// Fewer elements than a vector holds: through a buffer of whole vectors, so that nothing outside is touched.
struct Tail {
  HWY_ALIGN std::byte bytes[HWY_MAX_BYTES] = {};
};

template <class K>
HWY_INLINE typename K::V load_tail(const std::byte* from, std::size_t count) {
  Tail tail;
  std::memcpy(tail.bytes, from, count * K::kBytes);
  return K::load(tail.bytes);
}

template <class K>
HWY_INLINE void store_tail(typename K::V v, std::byte* to, std::size_t count) {
  Tail tail;
  K::store(v, tail.bytes);
  std::memcpy(to, tail.bytes, count * K::kBytes);
}

struct Combine {
  std::byte* out;
  const std::byte* left;
  const std::byte* right;
  std::size_t count;

  template <class K>
  void run() const {
    const std::size_t lanes = hn::Lanes(typename K::D());
    const std::size_t step = lanes * K::kBytes;
    std::size_t at = 0;  // bytes
    std::size_t remaining = count;
    // All loads of a round come before its stores, which is what allows `out` to be an input.
    for (; remaining >= 4 * lanes; remaining -= 4 * lanes, at += 4 * step) {
      const auto v0 = K::apply(K::load(left + at), K::load(right + at));
      const auto v1 = K::apply(K::load(left + at + step), K::load(right + at + step));
      const auto v2 = K::apply(K::load(left + at + 2 * step), K::load(right + at + 2 * step));
      const auto v3 = K::apply(K::load(left + at + 3 * step), K::load(right + at + 3 * step));
      K::store(v0, out + at);
      K::store(v1, out + at + step);
      K::store(v2, out + at + 2 * step);
      K::store(v3, out + at + 3 * step);
    }
    for (; remaining >= lanes; remaining -= lanes, at += step) {
      K::store(K::apply(K::load(left + at), K::load(right + at)), out + at);
    }
    if (remaining != 0) {
      const auto v = K::apply(load_tail<K>(left + at, remaining), load_tail<K>(right + at, remaining));
      store_tail<K>(v, out + at, remaining);
    }
  }
};

template <class K>
HWY_INLINE typename K::V divided(typename K::V v, std::uint32_t divisor) {
  if constexpr (K::kDivides) {
    return divisor == 0 ? v : K::divide(v, divisor);
  } else {
    return v;
  }
}

struct Fold {
  std::byte* out;
  std::span<const std::byte* const> inputs;
  std::size_t skip_bytes;
  std::size_t count;
  std::uint32_t divisor;

  // Four accumulators stay in registers while all inputs pass by: `out` is written once, and each visit to an input
  // reads whole cache lines.
  template <class K>
  void run() const {
    const std::size_t lanes = hn::Lanes(typename K::D());
    const std::size_t step = lanes * K::kBytes;
    std::size_t at = 0;  // bytes
    std::size_t remaining = count;
    for (; remaining >= 4 * lanes; remaining -= 4 * lanes, at += 4 * step) {
      const std::byte* from = inputs[0] + skip_bytes + at;
      auto v0 = K::load(from);
      auto v1 = K::load(from + step);
      auto v2 = K::load(from + 2 * step);
      auto v3 = K::load(from + 3 * step);
      for (std::size_t k = 1; k < inputs.size(); ++k) {
        from = inputs[k] + skip_bytes + at;
        v0 = K::apply(v0, K::load(from));
        v1 = K::apply(v1, K::load(from + step));
        v2 = K::apply(v2, K::load(from + 2 * step));
        v3 = K::apply(v3, K::load(from + 3 * step));
      }
      K::store(divided<K>(v0, divisor), out + at);
      K::store(divided<K>(v1, divisor), out + at + step);
      K::store(divided<K>(v2, divisor), out + at + 2 * step);
      K::store(divided<K>(v3, divisor), out + at + 3 * step);
    }
    for (; remaining >= lanes; remaining -= lanes, at += step) {
      auto v = K::load(inputs[0] + skip_bytes + at);
      for (std::size_t k = 1; k < inputs.size(); ++k) {
        v = K::apply(v, K::load(inputs[k] + skip_bytes + at));
      }
      K::store(divided<K>(v, divisor), out + at);
    }
    if (remaining != 0) {
      auto v = load_tail<K>(inputs[0] + skip_bytes + at, remaining);
      for (std::size_t k = 1; k < inputs.size(); ++k) {
        v = K::apply(v, load_tail<K>(inputs[k] + skip_bytes + at, remaining));
      }
      store_tail<K>(divided<K>(v, divisor), out + at, remaining);
    }
  }
};

template <class Loop>
void run_sum(Dtype dtype, const Loop& loop) {
  switch (dtype) {
    case Dtype::i8:
    case Dtype::u8: return loop.template run<IntegerSum<std::uint8_t>>();
    case Dtype::i16:
    case Dtype::u16: return loop.template run<IntegerSum<std::uint16_t>>();
    case Dtype::i32:
    case Dtype::u32: return loop.template run<IntegerSum<std::uint32_t>>();
    case Dtype::i64:
    case Dtype::u64: return loop.template run<IntegerSum<std::uint64_t>>();
    case Dtype::f16: return loop.template run<HalfSum<F16>>();
    case Dtype::bf16: return loop.template run<HalfSum<Bf16>>();
    case Dtype::f32: return loop.template run<FloatSum<float>>();
    case Dtype::f64: return loop.template run<FloatSum<double>>();
  }
}

template <ReduceOp kOp, class Loop>
void run_extreme(Dtype dtype, const Loop& loop) {
  switch (dtype) {
    case Dtype::i8: return loop.template run<IntegerExtreme<std::int8_t, kOp>>();
    case Dtype::u8: return loop.template run<IntegerExtreme<std::uint8_t, kOp>>();
    case Dtype::i16: return loop.template run<IntegerExtreme<std::int16_t, kOp>>();
    case Dtype::u16: return loop.template run<IntegerExtreme<std::uint16_t, kOp>>();
    case Dtype::i32: return loop.template run<IntegerExtreme<std::int32_t, kOp>>();
    case Dtype::u32: return loop.template run<IntegerExtreme<std::uint32_t, kOp>>();
    case Dtype::i64: return loop.template run<IntegerExtreme<std::int64_t, kOp>>();
    case Dtype::u64: return loop.template run<IntegerExtreme<std::uint64_t, kOp>>();
    case Dtype::f16: return loop.template run<FloatExtreme<std::int16_t, 0x7c00, kOp>>();
    case Dtype::bf16: return loop.template run<FloatExtreme<std::int16_t, 0x7f80, kOp>>();
    case Dtype::f32: return loop.template run<FloatExtreme<std::int32_t, 0x7f800000, kOp>>();
    case Dtype::f64: return loop.template run<FloatExtreme<std::int64_t, 0x7ff0000000000000, kOp>>();
  }
}

template <class Loop>
void run_loop(Dtype dtype, ReduceOp op, const Loop& loop) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return run_sum(dtype, loop);
    case ReduceOp::min: return run_extreme<ReduceOp::min>(dtype, loop);
    case ReduceOp::max: return run_extreme<ReduceOp::max>(dtype, loop);
  }
}

void run_combine(Dtype dtype, ReduceOp op, std::byte* out, const std::byte* left, const std::byte* right,
                 std::size_t count) {
  run_loop(dtype, op, Combine{out, left, right, count});
}

void run_fold(Dtype dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs,
              std::size_t skip_bytes, std::size_t count, std::uint32_t divisor) {
  run_loop(dtype, op, Fold{out, inputs, skip_bytes, count, divisor});
}

const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::coll
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::coll {

HWY_EXPORT(run_combine);
HWY_EXPORT(run_fold);
HWY_EXPORT(target_name);

namespace detail {

void simd_combine(Dtype dtype, ReduceOp op, std::byte* out, const std::byte* left, const std::byte* right,
                  std::size_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(run_combine)(dtype, op, out, left, right, count);
}

void simd_fold(Dtype dtype, ReduceOp op, std::byte* out, std::span<const std::byte* const> inputs,
               std::size_t skip_bytes, std::size_t count, std::uint32_t divisor) noexcept {
  HWY_DYNAMIC_DISPATCH(run_fold)(dtype, op, out, inputs, skip_bytes, count, divisor);
}

const char* simd_target() noexcept {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

}  // namespace detail
}  // namespace weft::coll
#endif
