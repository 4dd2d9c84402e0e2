// Elements of every dtype by way of complex doubles, for the tests of the kernels, of the host and of CUDA.
#pragma once

#include <complex>
#include <cstring>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::testing_cases {

using Value = std::complex<double>;

// What a double holds exactly stays so; integers wrap.
inline Value value_at(DType dtype, const void* p) {
  return visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        T x;
        std::memcpy(&x, p, sizeof(T));
        const auto z = cast<complex<double>>(x);
        return Value(z.real(), z.imag());
      },
      Value{});
}
inline void put_value(DType dtype, void* p, Value value) {
  visit_dtype<kAllSet>(
      dtype,
      [&]<class T>() {
        const T x = cast<T>(complex<double>(value.real(), value.imag()));
        std::memcpy(p, &x, sizeof(T));
        return 0;
      },
      0);
}

}  // namespace dlbridge::nd::testing_cases
