// NumPy 2's type promotion (NEP 50) as constexpr tables: https://numpy.org/doc/stable/reference/arrays.promotion.html
// bfloat16, which NumPy lacks, promotes by the same rule: to the smallest type that holds both.
#pragma once

#include <array>
#include <cstddef>

#include "dlbridge/dtype.h"
#include "ndarray/kernels/ops.h"

namespace dlbridge::nd {

inline constexpr DType kDefaultInt = DType::kInt64;
inline constexpr DType kDefaultFloat = DType::kFloat64;
inline constexpr DType kDefaultComplex = DType::kComplex128;

constexpr bool is_bool(DType t) noexcept { return t == DType::kBool; }
constexpr bool is_signed(DType t) noexcept { return contains(kSignedSet, t); }
constexpr bool is_unsigned(DType t) noexcept { return contains(kUnsignedSet, t); }
constexpr bool is_integer(DType t) noexcept { return contains(kIntSet, t); }
constexpr bool is_float(DType t) noexcept { return contains(kFloatSet, t); }
constexpr bool is_complex(DType t) noexcept { return contains(kComplexSet, t); }
constexpr std::int64_t itemsize(DType t) noexcept { return dlbridge::info(t).itemsize; }

namespace detail {
constexpr DType signed_of_size(int bytes) noexcept {
  return bytes == 1 ? DType::kInt8 : bytes == 2 ? DType::kInt16 : bytes == 4 ? DType::kInt32 : DType::kInt64;
}

// The float that holds an integer type's values as NumPy sees it: 8 bits fit float16, 16 bits float32.
constexpr DType float_for_integer(DType t) noexcept {
  if (is_bool(t) || itemsize(t) == 1) return DType::kFloat16;
  return itemsize(t) == 2 ? DType::kFloat32 : DType::kFloat64;
}

constexpr DType promote_integers(DType a, DType b) noexcept {
  if (is_signed(a) == is_signed(b)) return itemsize(a) >= itemsize(b) ? a : b;
  const DType s = is_signed(a) ? a : b;
  const DType u = is_signed(a) ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  return itemsize(u) == 8 ? DType::kFloat64 : signed_of_size(static_cast<int>(itemsize(u)) * 2);
}

constexpr DType promote_floats(DType a, DType b) noexcept {
  if (a == b) return a;
  if (itemsize(a) == itemsize(b)) return DType::kFloat32;  // float16 and bfloat16: neither holds the other
  return itemsize(a) > itemsize(b) ? a : b;
}

constexpr DType complex_of(DType real) noexcept {
  return real == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

constexpr DType promote_rule(DType a, DType b) noexcept {
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_complex(a) || is_complex(b)) return complex_of(promote_rule(real_part(a), real_part(b)));
  const DType fa = is_integer(a) ? (itemsize(a) == 1 ? b : float_for_integer(a)) : a;
  const DType fb = is_integer(b) ? (itemsize(b) == 1 ? a : float_for_integer(b)) : b;
  return promote_floats(fa, fb);
}

inline constexpr std::size_t kTableSize = static_cast<std::size_t>(DType::kComplex128) + 1;

consteval std::array<std::array<DType, kTableSize>, kTableSize> make_promotions() {
  std::array<std::array<DType, kTableSize>, kTableSize> table{};
  for (std::size_t i = 0; i < kTableSize; ++i)
    for (std::size_t j = 0; j < kTableSize; ++j) {
      const auto a = static_cast<DType>(i), b = static_cast<DType>(j);
      table[i][j] = contains(kAllSet, a) && contains(kAllSet, b) ? promote_rule(a, b) : DType::kBool;
    }
  return table;
}
inline constexpr auto kPromotions = make_promotions();
}  // namespace detail

constexpr bool is_supported(DType t) noexcept {
  return static_cast<std::size_t>(t) < detail::kTableSize && contains(kAllSet, t);
}

// Both are supported.
constexpr DType promote(DType a, DType b) noexcept {
  return detail::kPromotions[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
}

// A Python scalar has a kind and no width (NEP 50): it takes the array's dtype where that can hold its kind.
enum class ScalarKind : std::uint8_t { kBool, kInt, kFloat, kComplex };

constexpr DType promote(DType array, ScalarKind scalar) noexcept {
  switch (scalar) {
    case ScalarKind::kBool: return array;
    case ScalarKind::kInt: return is_bool(array) ? kDefaultInt : array;
    case ScalarKind::kFloat: return is_float(array) || is_complex(array) ? array : kDefaultFloat;
    case ScalarKind::kComplex:
      if (is_complex(array)) return array;
      return is_float(array) ? detail::complex_of(array) : kDefaultComplex;
  }
  return array;
}
constexpr DType default_dtype(ScalarKind scalar) noexcept {
  constexpr DType kDefaults[] = {DType::kBool, kDefaultInt, kDefaultFloat, kDefaultComplex};
  return kDefaults[static_cast<std::size_t>(scalar)];
}

// The dtypes of an operation's kernel.
struct KernelTypes {
  DType compute;
  DType result;
};

// What an operation computes in and returns for operands of the promoted dtype; false where it has no such loop.
constexpr bool resolve(const OpInfo& op, DType promoted, KernelTypes& out) noexcept {
  DType compute = promoted;
  const bool integral = is_bool(promoted) || is_integer(promoted);
  if (op.rule == TypeRule::kFloat && integral) compute = detail::float_for_integer(promoted);
  if (op.rule == TypeRule::kTrueDivide && integral) compute = DType::kFloat64;
  if (!contains(op.dtypes, compute) && is_bool(compute)) compute = DType::kInt8;
  if (!contains(op.dtypes, compute)) return false;
  out = {compute, result_dtype(op.rule, compute)};
  return true;
}

static_assert(promote(DType::kInt8, DType::kUInt8) == DType::kInt16);
static_assert(promote(DType::kUInt64, DType::kInt8) == DType::kFloat64);
static_assert(promote(DType::kFloat16, DType::kInt16) == DType::kFloat32);
static_assert(promote(DType::kFloat16, DType::kUInt8) == DType::kFloat16);
static_assert(promote(DType::kFloat32, DType::kInt32) == DType::kFloat64);
static_assert(promote(DType::kComplex64, DType::kInt32) == DType::kComplex128);
static_assert(promote(DType::kComplex64, DType::kInt16) == DType::kComplex64);
static_assert(promote(DType::kFloat16, DType::kBFloat16) == DType::kFloat32);
static_assert(promote(DType::kFloat16, ScalarKind::kComplex) == DType::kComplex64);

}  // namespace dlbridge::nd
