// Layout arithmetic on validated descriptors: contiguity, extents in memory, overlap. Strides are in elements.
#pragma once

#include <cstdint>

#include "dlbridge/tensor.h"

namespace dlbridge {

namespace detail {
// A value in a register of its own. Compilers join reads and writes of neighbours, and what is read at once but was
// written in parts, just now, is there only when the parts have left for memory: ten times as late.
template <class T>
[[gnu::always_inline]] inline T alone(T value) noexcept {
#if !defined(__CUDACC__)
  __asm__("" : "+r"(value));
#endif
  return value;
}
}  // namespace detail

inline bool has_zero_extent(const DLTensor& t) noexcept {
  for (std::int32_t i = 0; i < t.ndim; ++i)
    if (t.shape[i] == 0) return true;
  return false;
}

// The stride of an axis of extent 1, and every stride of an empty tensor, is never used and does not matter (DLPack;
// NumPy's relaxed strides).
inline bool is_c_contiguous(const DLTensor& t) noexcept {
  std::int64_t expected = 1;
  for (std::int32_t i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return has_zero_extent(t);
    expected *= t.shape[i];
  }
  return true;
}

inline bool is_f_contiguous(const DLTensor& t) noexcept {
  std::int64_t expected = 1;
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return has_zero_extent(t);
    expected *= t.shape[i];
  }
  return true;
}

// True where the elements fill one block without gaps or overlap, in any order of axes: a transposed array. One copy
// of the block then is a copy of the tensor, strides kept.
inline bool is_permuted_dense(const DLTensor& t) noexcept {
  std::int64_t expected = 1;
  bool used[kMaxDims] = {};
  for (std::int32_t round = 0; round < t.ndim; ++round) {
    std::int32_t next = -1;
    for (std::int32_t i = 0; i < t.ndim && next < 0; ++i)
      if (!used[i] && (t.shape[i] == 1 || t.strides[i] == expected)) next = i;
    if (next < 0) return false;
    used[next] = true;
    expected *= t.shape[next];
  }
  return true;
}

inline bool has_negative_stride(const DLTensor& t) noexcept {
  for (std::int32_t i = 0; i < t.ndim; ++i)
    if (t.shape[i] > 1 && t.strides[i] < 0) return !has_zero_extent(t);
  return false;
}

// True where one element is reached by two indices along one axis (a broadcast): writing through it is a trap.
inline bool has_zero_stride(const DLTensor& t) noexcept {
  for (std::int32_t i = 0; i < t.ndim; ++i)
    if (t.shape[i] > 1 && t.strides[i] == 0) return !has_zero_extent(t);
  return false;
}

// First and one-past-last element index that the tensor touches, relative to `data`; {0, 0} when empty.
struct ElementSpan {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
inline ElementSpan element_span(const DLTensor& t) noexcept {
  ElementSpan span{0, 1};
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 0) return {0, 0};
    const std::int64_t reach = (t.shape[i] - 1) * t.strides[i];
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

inline void fill_c_strides(DLTensor& t) noexcept {
  std::int64_t stride = 1;
  for (std::int32_t i = t.ndim - 1; i >= 0; --i) {
    t.strides[i] = stride;
    stride *= t.shape[i] > 1 ? t.shape[i] : 1;
  }
}

}  // namespace dlbridge
