// Host arrays of any layout for the tests of the front end.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ndarray/core/array.h"

namespace dlbridge::nd::testing_arrays {

using Extents = std::vector<std::int64_t>;

inline std::string text(std::span<const std::int64_t> numbers) { return shape_text(numbers); }
inline Extents shape_list(const Tensor& t) { return {t.dl.shape, t.dl.shape + t.dl.ndim}; }
inline Extents stride_list(const Tensor& t) { return {t.dl.strides, t.dl.strides + t.dl.ndim}; }

inline void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

inline Tensor dense(DType dtype, Dims shape, Order order = Order::kC) {
  Tensor out;
  expect_ok(make_array(out, dtype, shape, {kDLCPU, 0}, order));
  return out;
}

// An array with these strides (in elements, of any sign), whose storage has room for all of its elements.
inline Tensor strided(DType dtype, Dims shape, Dims strides) {
  std::int64_t low = 0, high = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::int64_t reach = shape[k] == 0 ? 0 : (shape[k] - 1) * strides[k];
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t room[1] = {high - low + 1};
  const Tensor memory = dense(dtype, room);
  Tensor out;
  expect_ok(make_view(memory, shape, strides, -low, out));
  return out;
}

template <class T>
void fill_iota(const Tensor& t, T first = T(0)) {
  std::iota(static_cast<T*>(t.dl.data), static_cast<T*>(t.dl.data) + t.size, first);  // dense arrays
}

// The elements in C order, whatever the layout.
template <class T>
std::vector<T> elements(const Tensor& t) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < t.size; ++i) {
    std::int64_t rest = i, offset = 0;
    for (int k = t.dl.ndim - 1; k >= 0; --k) {
      offset += rest % t.dl.shape[k] * t.dl.strides[k];
      rest /= t.dl.shape[k];
    }
    out.push_back(static_cast<const T*>(t.dl.data)[offset]);
  }
  return out;
}

}  // namespace dlbridge::nd::testing_arrays
