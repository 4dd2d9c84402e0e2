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

// Calls run(first, n, data) for parts of arrays of one shape on the host: n elements of each in C order, from number
// `first` on, one behind the other and of `dtypes`. They are read where they lie, or copied to where they stay in the
// cache; a part is so long that whoever waits for the GIL meanwhile does so a few times. Before run() no call is open.
template <std::size_t kArrays, class Run>
Status in_parts(const Tensor* const (&arrays)[kArrays], const DType (&dtypes)[kArrays], const char* what, Run run) {
  constexpr std::int64_t kPart = std::int64_t{1} << 15;
  const Tensor& like = *arrays[0];
  if (like.size == 0) return {};
  const auto lies_so = [&](std::size_t k) { return dtype_of(*arrays[k]) == dtypes[k] && lies_ready(*arrays[k]); };
  bool all = true;
  for (std::size_t k = 0; k < kArrays; ++k) all = all && lies_so(k);
  const auto ndim = static_cast<std::size_t>(like.dl.ndim);
  const std::int64_t rows = ndim == 0 ? 1 : like.dl.shape[0], row = like.size / rows;
  const std::int64_t step = all || ndim == 0 ? rows : std::clamp<std::int64_t>(kPart / row, 1, rows);
  Tensor copies[kArrays];
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    std::int64_t shape[kMaxDims];
    std::copy_n(like.dl.shape, ndim, shape);
    if (ndim > 0) shape[0] = count;
    const void* data[kArrays];
    for (std::size_t k = 0; k < kArrays; ++k) {
      const Tensor& x = *arrays[k];
      data[k] = elements<const char>(x) + first * row * x.itemsize();
      if (lies_so(k)) continue;
      Tensor part, place;
      DLBRIDGE_TRY(make_view(x, {shape, ndim}, {x.dl.strides, ndim}, ndim == 0 ? 0 : first * x.dl.strides[0], part));
      if (first == 0) DLBRIDGE_TRY(make_array(copies[k], dtypes[k], {shape, ndim}, x.dl.device));
      DLBRIDGE_TRY(make_view(copies[k], {shape, ndim}, {copies[k].dl.strides, ndim}, 0, place));
      DLBRIDGE_TRY(assign(place, {&part, {}}, what));
      data[k] = copies[k].dl.data;
    }
    DLBRIDGE_TRY(run(first * row, count * row, data));
  }
  return {};
}

}  // namespace dlbridge::nd
