// Python's and NumPy's scalars as operands.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "dlbridge/errors.h"
#include "ndarray/core/promotion.h"
#include "ndarray/kernels/api.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

struct Scalar {
  ScalarKind kind = ScalarKind::kInt;
  bool strong = false;       // a NumPy scalar: `dtype` takes part in promotion as an array's would
  bool huge = false;         // an int past 64 bits: `re` is its value, rounded
  bool above_int64 = false;  // an int of 2^63 to 2^64 - 1: `i` holds its bits
  DType dtype = DType::kInt64;
  std::int64_t i = 0;     // bool and int
  double re = 0, im = 0;  // float and complex; for an int its value, rounded

  static Scalar of_bool(bool v) noexcept {
    return {ScalarKind::kBool, false, false, false, DType::kBool, v, double(v), 0};
  }
  static Scalar of_int(std::int64_t v) noexcept {
    return {ScalarKind::kInt, false, false, false, DType::kInt64, v, static_cast<double>(v), 0};
  }
  static Scalar of_float(double v) noexcept {
    return {ScalarKind::kFloat, false, false, false, DType::kFloat64, 0, v, 0};
  }
  static Scalar of_complex(double re, double im) noexcept {
    return {ScalarKind::kComplex, false, false, false, DType::kComplex128, 0, re, im};
  }
};

// Whether an int scalar is a value of an integer dtype; true for any other pair.
bool fits(const Scalar& scalar, DType dtype) noexcept;

// The scalar in the memory format of `dtype`. This is where all of the ndarray's scalars become elements: a Python
// number as Python converts it, so that an int out of bounds is an OverflowError (NEP 50), for an integer dtype a NaN a
// ValueError, and a complex number for a real one a TypeError; a NumPy scalar by a cast, as an array of it.
Status write_scalar(const Scalar& scalar, DType dtype, ScalarValue& out);

// The element at `data` (host memory) as a scalar.
template <class T>
Scalar read_scalar(const void* data) noexcept {
  stored_t<T> stored;
  std::memcpy(&stored, data, sizeof(T));
  const T value = cast<T>(stored);
  if constexpr (is_complex_v<T>) {
    return Scalar::of_complex(static_cast<double>(value.real()), static_cast<double>(value.imag()));
  } else if constexpr (is_float_v<T>) {
    return Scalar::of_float(static_cast<double>(cast<double>(value)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return Scalar::of_bool(value);
  } else {
    Scalar s = Scalar::of_int(static_cast<std::int64_t>(value));
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      s.above_int64 = value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      s.re = static_cast<double>(value);
    }
    return s;
  }
}
Scalar read_scalar(const void* data, DType dtype) noexcept;

}  // namespace dlbridge::nd
