// xtensor: adaptors over a tensor's memory, any strides; xarray and xtensor moved in. Host memory.
#pragma once

// Newer releases sort their headers into folders.
#if __has_include(<xtensor/containers/xadapt.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
template <class T>
using XBuffer = xt::xbuffer_adaptor<T*, xt::no_ownership, std::allocator<std::remove_const_t<T>>>;
}
// Views that take every layout; `T` const: read-only ones.
template <class T, std::size_t Rank>
using XTensorView = xt::xtensor_adaptor<detail::XBuffer<T>, Rank, xt::layout_type::dynamic>;
template <class T>
using XArrayView = xt::xarray_adaptor<detail::XBuffer<T>, xt::layout_type::dynamic, std::vector<std::size_t>>;

namespace detail {
template <class X, class T>
Status describe_xtensor(const X& x, T* data, Tensor& out) {
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxDims];
  const std::size_t rank = x.dimension();
  if (rank > static_cast<std::size_t>(kMaxDims)) return bad_ndim(as(rank));
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = as(x.shape()[i]);
    strides[i] = as(x.strides()[i]);
  }
  return describe_memory(out, data, kCpuDevice, as(rank), shape, strides);
}

template <class T>
constexpr caps xtensor_caps(std::string_view name, std::int32_t rank, result_kind result) {
  return {.name = name,
          .dtypes = dtypes(dtype_of_v<T>),
          .devices = kOnHost,
          .min_rank = rank == dyn ? 0 : rank,
          .max_rank = rank == dyn ? kMaxDims : rank,
          .strides = stride_rule::any,
          .read_only = result == result_kind::copy || std::is_const_v<T>,
          .source = result == result_kind::copy ? source_kind::container : source_kind::view,
          .result = result};
}

template <class View, class T, int Rank>
[[gnu::always_inline]] inline View make_xtensor_view(const TensorView<T, Rank>& v) {
  typename View::shape_type shape{};
  typename View::strides_type strides{};
  const auto rank = static_cast<std::size_t>(v.rank());
  if constexpr (requires { shape.resize(rank); }) shape.resize(rank), strides.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t extent = v.dims().extents[i];
    shape[i] = as<typename View::shape_type::value_type>(extent);
    // xtensor broadcasts an axis of extent 1 by stepping with its stride: it must be 0.
    strides[i] = extent == 1 ? 0 : as<typename View::strides_type::value_type>(v.dims().stride_elems[i]);
  }
  return View(XBuffer<T>(v.data(), static_cast<std::size_t>(v.size())), std::move(shape), std::move(strides));
}
}  // namespace detail

template <class T, std::size_t Rank>
struct converter<xt::xtensor_adaptor<xt::xbuffer_adaptor<T*, xt::no_ownership, std::allocator<std::remove_const_t<T>>>,
                                     Rank, xt::layout_type::dynamic>> {
  using X = XTensorView<T, Rank>;
  static constexpr caps capabilities =
      detail::xtensor_caps<T>(std::is_const_v<T> ? "xt::xtensor_adaptor<const T>" : "xt::xtensor_adaptor",
                              static_cast<std::int32_t>(Rank), result_kind::view);
  static Status describe(const X& x, Tensor& out) { return detail::describe_xtensor(x, const_cast<T*>(x.data()), out); }
  static X to(TensorView<T, static_cast<int>(Rank)> v, const options&) { return detail::make_xtensor_view<X>(v); }
};

template <class T>
struct converter<xt::xarray_adaptor<xt::xbuffer_adaptor<T*, xt::no_ownership, std::allocator<std::remove_const_t<T>>>,
                                    xt::layout_type::dynamic, std::vector<std::size_t>>> {
  using X = XArrayView<T>;
  static constexpr caps capabilities = detail::xtensor_caps<T>(
      std::is_const_v<T> ? "xt::xarray_adaptor<const T>" : "xt::xarray_adaptor", dyn, result_kind::view);
  static Status describe(const X& x, Tensor& out) { return detail::describe_xtensor(x, const_cast<T*>(x.data()), out); }
  static X to(TensorView<T, dyn> v, const options&) { return detail::make_xtensor_view<X>(v); }
};

template <class Storage, std::size_t Rank, xt::layout_type L, class Tag>
struct converter<xt::xtensor_container<Storage, Rank, L, Tag>> {
  using X = xt::xtensor_container<Storage, Rank, L, Tag>;
  using T = typename X::value_type;
  static constexpr caps capabilities =
      detail::xtensor_caps<T>("xt::xtensor", static_cast<std::int32_t>(Rank), result_kind::copy);
  static Status describe(X& x, Tensor& out) { return detail::describe_xtensor(x, x.data(), out); }
  static Status describe(const X& x, Tensor& out) { return detail::describe_xtensor(x, x.data(), out); }
  static X to(TensorView<const T, static_cast<int>(Rank)> v, const options&) {
    return X(detail::make_xtensor_view<XTensorView<const T, Rank>>(v));
  }
};

template <class Storage, xt::layout_type L, class Shape, class Tag>
struct converter<xt::xarray_container<Storage, L, Shape, Tag>> {
  using X = xt::xarray_container<Storage, L, Shape, Tag>;
  using T = typename X::value_type;
  static constexpr caps capabilities = detail::xtensor_caps<T>("xt::xarray", dyn, result_kind::copy);
  static Status describe(X& x, Tensor& out) { return detail::describe_xtensor(x, x.data(), out); }
  static Status describe(const X& x, Tensor& out) { return detail::describe_xtensor(x, x.data(), out); }
  static X to(TensorView<const T, dyn> v, const options&) {
    return X(detail::make_xtensor_view<XArrayView<const T>>(v));
  }
};

}  // namespace dlbridge
