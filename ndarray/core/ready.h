// Arrays on the host as loops of the host read them: one element behind the other.
#pragma once

#include <algorithm>

#include "dlbridge/validate.h"
#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

// On the host, dense in C order, and aligned: views of packed records are not.
inline bool lies_ready(const Tensor& x) noexcept { return is_host(x.dl.device) && is_c_contiguous(x) && is_aligned(x); }

inline bool same_shape(const Tensor& a, const Tensor& b) noexcept {
  return std::ranges::equal(shape_of(a), shape_of(b));
}

template <class T>
T* elements(const Tensor& x) noexcept {
  return static_cast<T*>(x.dl.data);
}

// The array itself where it lies so and is of `dtype`, else a copy that is.
inline Status ready_as(DType dtype, const Tensor& x, Tensor& copy, const Tensor*& ready) {
  ready = &x;
  if (dtype_of(x) == dtype && lies_ready(x)) return {};
  DLBRIDGE_TRY(copy_as(x, dtype, CopyOrder::kC, copy));
  ready = &copy;
  return {};
}

}  // namespace dlbridge::nd
