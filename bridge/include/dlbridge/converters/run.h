// What containers of one run of elements in host memory have in common: std::vector, std::array, thrust::host_vector.
#pragma once

#include <cstddef>
#include <string_view>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge::detail {

template <class T>
Status describe_run(T* data, std::size_t count, Tensor& out) {
  const std::int64_t extent = as(count);
  return describe_memory(out, data, kCpuDevice, 1, &extent, nullptr);
}

// Elements of a rank-1 tensor, any stride.
template <class T>
void copy_elements(const TensorView<const T, 1>& v, T* to) noexcept {
  for (std::int64_t i = 0; i < v.extent(0); ++i) to[i] = v(i);
}

template <class T>
constexpr caps run_caps(std::string_view name) {
  return {.name = name,
          .dtypes = dtypes(dtype_of_v<T>),
          .devices = kOnHost,
          .min_rank = 1,
          .max_rank = 1,
          .strides = stride_rule::any,
          .read_only = true,
          .source = source_kind::container,
          .result = result_kind::copy};
}

// Of a container X that is made with a size: moved in, copied out. An empty one is not asked for its data, which
// Thrust's find by their first element.
template <class X>
struct run_converter {
  using T = typename X::value_type;
  template <class Vector>
  static Status describe(Vector& x, Tensor& out) {
    return describe_run(x.empty() ? nullptr : x.data(), x.size(), out);
  }
  static X to(TensorView<const T, 1> v, const options&) {
    X out(static_cast<std::size_t>(v.size()));
    if (!v.empty()) copy_elements(v, out.data());
    return out;
  }
};

}  // namespace dlbridge::detail
