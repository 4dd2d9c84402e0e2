#include "ndarray/core/scalar.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

namespace {

template <class T>
T value_as(const Scalar& s) noexcept {
  if constexpr (is_complex_v<T>) {
    return T(static_cast<real_t<T>>(s.re), static_cast<real_t<T>>(s.im));
  } else if constexpr (is_half_v<T>) {
    return cast<T>(s.re);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(s.re);
  } else {
    const bool integral = s.kind <= ScalarKind::kInt;
    if constexpr (std::is_same_v<T, bool>) return integral && !s.huge ? s.i != 0 : s.re != 0 || s.im != 0;
    else return integral ? static_cast<T>(s.i) : cast<T>(s.re);
  }
}

std::string name_of(DType dtype) { return std::string(dlbridge::info(dtype).name); }

std::string int_text(const Scalar& s) {
  if (s.huge) return "past 64 bits";
  return s.above_int64 ? std::to_string(static_cast<std::uint64_t>(s.i)) : std::to_string(s.i);
}

[[gnu::cold]] Status out_of_bounds(const std::string& number, DType dtype) {
  return overflow("Python " + number + " is out of bounds for " + name_of(dtype) +
                  ". Convert the array first: x.astype('int64'), x.astype('float64')");
}

// Whether int(x) is a value of an integer dtype.
bool fits_truncated(double x, DType dtype) noexcept {
  const double whole = std::trunc(x);
  const auto bits = static_cast<int>(itemsize(dtype) * 8) - (is_unsigned(dtype) ? 0 : 1);
  const double end = std::ldexp(1.0, bits);
  return whole < end && whole >= (is_unsigned(dtype) ? 0.0 : -end);
}

Status check_python_float(double x, DType dtype) {
  if (std::isnan(x)) [[unlikely]]
    return malformed("a Python float that is NaN cannot be converted to " + name_of(dtype) + ", an integer");
  if (fits_truncated(x, dtype)) return {};
  return out_of_bounds("float " + std::to_string(x), dtype);
}

Status check_python_number(const Scalar& s, DType dtype) {
  if (is_bool(dtype)) return {};
  switch (s.kind) {
    case ScalarKind::kBool: return {};
    case ScalarKind::kInt:
      if (s.huge && std::isinf(s.re)) [[unlikely]]
        return out_of_bounds("integer past float64", dtype);
      return fits(s, dtype) ? Status{} : out_of_bounds("integer " + int_text(s), dtype);
    case ScalarKind::kFloat: return is_integer(dtype) ? check_python_float(s.re, dtype) : Status{};
    case ScalarKind::kComplex: break;
  }
  if (is_complex(dtype)) return {};
  return {ErrorCode::kWrongType, "a Python complex number cannot be converted to " + name_of(dtype) +
                                     ", which has no imaginary part. Give its real part: z.real"};
}

}  // namespace

bool fits(const Scalar& s, DType dtype) noexcept {
  if (s.kind != ScalarKind::kInt || !is_integer(dtype)) return true;
  if (s.huge) return false;
  const auto bits = static_cast<unsigned>(itemsize(dtype) * 8);
  if (s.above_int64) return dtype == DType::kUInt64;
  if (is_unsigned(dtype)) return s.i >= 0 && (bits == 64 || s.i < (std::int64_t{1} << bits));
  return bits == 64 || (s.i >= -(std::int64_t{1} << (bits - 1)) && s.i < (std::int64_t{1} << (bits - 1)));
}

Status write_scalar(const Scalar& s, DType dtype, ScalarValue& out) {
  if (!s.strong) DLBRIDGE_TRY(check_python_number(s, dtype));
  visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        const T value = value_as<T>(s);
        std::memcpy(out.bytes, &value, sizeof(T));
        return 0;
      },
      0);
  return {};
}

Scalar read_scalar(const void* data, DType dtype) noexcept {
  return visit_dtype<kAllSet>(dtype, [&]<class T>() { return read_scalar<T>(data); }, Scalar{});
}

}  // namespace dlbridge::nd
