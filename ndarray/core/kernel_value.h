// The bytes that a scalar is passed to a user kernel as.
#pragma once

#include <cstdint>

#include "ndarray/core/scalar.h"

namespace dlbridge::nd {

struct alignas(16) KernelValue {
  enum class Origin : std::uint8_t { kFixed, kInt, kFloat, kComplex };  // the last three: a Python scalar, undeclared
  unsigned char bytes[16];  // nothing is set before set(): launches make many
  std::uint32_t size;
  Origin origin;

  template <class T>
  void set(T value, Origin from = Origin::kFixed) noexcept {
    static_assert(sizeof(T) <= sizeof bytes);
    __builtin_memcpy(bytes, &value, sizeof(T));
    size = sizeof(T);
    origin = from;
  }
};

// The errors of all three go behind "argument 2 ".

// A NumPy scalar as its dtype; a Python scalar as the widest of its kind, which narrow() fits to the kernel.
Status value_of(const Scalar& scalar, KernelValue& out);
// As the dtype that the kernel's source declares. A Python scalar takes it; a NumPy scalar must be one of `allowed`, or
// an integer that fits.
Status value_as(const Scalar& scalar, DType declared, DTypeSet allowed, KernelValue& out);
// To the bytes of the compiled kernel's own parameter.
Status narrow(KernelValue& value, std::uint32_t bytes);

}  // namespace dlbridge::nd
