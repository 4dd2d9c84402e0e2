// std::vector and std::array (moved in, copied out), std::span (a view both ways). Host memory.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "dlbridge/converters/run.h"

namespace dlbridge {

template <class T, class Allocator>
struct converter<std::vector<T, Allocator>> : detail::run_converter<std::vector<T, Allocator>> {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> packs its elements into bits: use std::vector<char>");
  static constexpr caps capabilities = detail::run_caps<T>("std::vector");
};

template <class T, std::size_t N>
struct converter<std::array<T, N>> {
  static constexpr caps capabilities = [] {
    caps out = detail::run_caps<T>("std::array");
    out.extents = shape<static_cast<std::int64_t>(N)>::kList;
    return out;
  }();
  template <class Array>
  static Status describe(Array& x, Tensor& out) {
    return detail::describe_run(x.data(), N, out);
  }
  static std::array<T, N> to(TensorView<const T, 1> v, const options&) {
    std::array<T, N> out;
    detail::copy_elements(v, out.data());
    return out;
  }
};

template <class T, std::size_t Extent>
struct converter<std::span<T, Extent>> {
  static constexpr std::int64_t kExtent = Extent == std::dynamic_extent ? dyn : static_cast<std::int64_t>(Extent);
  static constexpr caps capabilities{.name = std::is_const_v<T> ? "std::span<const T>" : "std::span",
                                     .dtypes = dtypes(dtype_of_v<T>),
                                     .devices = kOnHost,
                                     .min_rank = 1,
                                     .max_rank = 1,
                                     .extents = shape<kExtent>::kList,
                                     .strides = stride_rule::c_contig,
                                     .read_only = std::is_const_v<T>,
                                     .source = source_kind::view,
                                     .result = result_kind::view};
  static Status describe(const std::span<T, Extent>& x, Tensor& out) {
    return detail::describe_run(x.data(), x.size(), out);
  }
  static std::span<T, Extent> to(Tensor& t, const options&) {
    return std::span<T, Extent>(static_cast<T*>(t.dl.data), static_cast<std::size_t>(t.size));
  }
};

}  // namespace dlbridge
