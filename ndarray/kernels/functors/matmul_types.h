// What the matrix products of host and device share: the type that products of T are summed in.
#pragma once

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/functors/canonical.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {

// 16-bit floats sum in float32. Integers wrap, so that 32 unsigned bits do for all narrower ones. bool (and, or) counts
// in float32, which never wraps to 0.
template <class T>
using product_sum_t =
    std::conditional_t<is_half_v<T> || std::is_same_v<T, bool>, float,
                       std::conditional_t<(std::is_integral_v<T> && sizeof(T) < 4), std::uint32_t, T>>;

template <class T>
DLBRIDGE_ND_HD inline product_sum_t<T> factor(const T* p) noexcept {
  return cast<product_sum_t<T>>(*p);
}

// sum + a * b, without the recovery of infinities that operator* of complex numbers does.
template <class S>
DLBRIDGE_ND_HD inline S multiply_add(S sum, S a, S b) noexcept {
  if constexpr (is_complex_v<S>)
    return S(sum.real() + a.real() * b.real() - a.imag() * b.imag(),
             sum.imag() + a.real() * b.imag() + a.imag() * b.real());
  else return sum + a * b;
}

// y[i] = sum over k of matrix[i, k] * x[k], for rows that no tile pays for. Strides in elements.
struct MatrixVector {
  std::int64_t batch, rows, k;
  const void* matrix;
  std::int64_t matrix_batch, row, column;
  const void* x;
  std::int64_t x_batch, x_stride;
  void* y;
  std::int64_t y_batch;
};

// True when the product is one of a matrix and a vector; a row vector times a matrix is the transposed one times it.
inline bool as_matrix_vector(const MatmulArgs& a, MatrixVector& out) noexcept {
  if (a.n == 1) {
    out = {a.batch, a.m, a.k, a.a, a.a_batch, a.a_row, a.a_column, a.b, a.b_batch, a.b_row, a.c, a.c_batch};
    return true;
  }
  if (a.m == 1) {
    out = {a.batch, a.n, a.k, a.b, a.b_batch, a.b_column, a.b_row, a.a, a.a_batch, a.a_column, a.c, a.c_batch};
    return true;
  }
  return false;
}

// Calls f.template operator()<T>() with a type that multiplies and adds as `dtype` does.
template <DTypeSet set = kAllSet, class F>
int visit_product(DType dtype, F&& f) {
  return visit_dtype<set & ~kSignedSet>(unsigned_of(dtype), f, kErrorUnsupported);
}

}  // namespace dlbridge::nd
