#include "ndarray/core/kernel_value.h"

#include <complex>
#include <cstring>
#include <string>

namespace dlbridge::nd {

namespace {

using Origin = KernelValue::Origin;

std::string name_of(DType t) { return std::string(info(t).name); }

Status set_cast(const Scalar& scalar, DType dtype, KernelValue& out) {
  ScalarValue value;
  DLBRIDGE_TRY(write_scalar(scalar, dtype, value));
  out.set(value);
  out.size = info(dtype).itemsize;
  return {};
}

template <class T>
T read(const KernelValue& value) noexcept {
  T out;
  std::memcpy(&out, value.bytes, sizeof(T));
  return out;
}

}  // namespace

Status value_of(const Scalar& scalar, KernelValue& out) {
  if (scalar.strong) return set_cast(scalar, scalar.dtype, out);
  switch (scalar.kind) {
    case ScalarKind::kBool:
    case ScalarKind::kInt:
      if (scalar.huge) return {ErrorCode::kOverflow, "is an integer past 64 bits"};
      out.set(scalar.i, scalar.above_int64 ? Origin::kFixed : Origin::kInt);
      break;
    case ScalarKind::kFloat: out.set(scalar.re, Origin::kFloat); break;
    case ScalarKind::kComplex: out.set(std::complex<double>(scalar.re, scalar.im), Origin::kComplex); break;
  }
  return {};
}

Status value_as(const Scalar& scalar, DType declared, DTypeSet allowed, KernelValue& out) {
  const bool integral = scalar.kind <= ScalarKind::kInt;
  const ScalarKind widest = is_complex(declared) ? ScalarKind::kComplex
                            : is_float(declared) ? ScalarKind::kFloat
                                                 : ScalarKind::kInt;
  const bool exact = scalar.strong && contains(allowed, scalar.dtype);
  if (scalar.kind > widest || (scalar.strong && !exact && !integral)) [[unlikely]] {
    constexpr const char* kKinds[] = {"bool", "int", "float", "complex"};
    const std::string got =
        scalar.strong ? "numpy." + name_of(scalar.dtype) : kKinds[static_cast<std::size_t>(scalar.kind)];
    return {ErrorCode::kWrongType, "is a " + got + "; the source declares " + name_of(declared) +
                                       ". Convert it first, or make the kernel with check_types=False"};
  }
  if (integral && !exact && !fits(scalar, declared)) [[unlikely]]
    return {ErrorCode::kOverflow, "is an integer out of the range of " + name_of(declared) +
                                      ", which the source declares. Declare a wider type"};
  Scalar exactly = scalar;
  exactly.strong = true;  // the range has been checked
  return set_cast(exactly, declared, out);
}

Status narrow(KernelValue& value, std::uint32_t bytes) {
  if (value.origin == Origin::kInt && bytes < 8) {
    const auto number = read<std::int64_t>(value);
    const std::int64_t limit = std::int64_t{1} << (8 * bytes);
    if (number >= limit || number < -limit / 2)
      return {ErrorCode::kOverflow,
              "is an integer that does not fit the " + std::to_string(bytes) + " bytes of the kernel's parameter"};
    return {};  // little-endian: the low bytes come first
  }
  if (value.origin == Origin::kFloat && bytes == 4) {
    value.set(static_cast<float>(read<double>(value)));
    return {};
  }
  if (value.origin == Origin::kComplex && bytes == 8) {
    value.set(std::complex<float>(read<std::complex<double>>(value)));
    return {};
  }
  return {ErrorCode::kWrongType, "has " + std::to_string(value.size) + " bytes, and the kernel's parameter has " +
                                     std::to_string(bytes) +
                                     ". Give a NumPy scalar of the type that the kernel declares"};
}

}  // namespace dlbridge::nd
