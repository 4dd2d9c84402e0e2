// Eigen's unsupported Tensor module: TensorMap over dense memory, Tensor moved in. Host memory, any rank.
#pragma once

#include <unsupported/Eigen/CXX11/Tensor>

#include <cstdint>
#include <type_traits>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
// TensorMap has no strides: dense in the order of its type, which for the default ColMajor is Fortran's.
template <class X, class T>
Status describe_eigen_tensor(const X& x, T* data, Tensor& out) {
  constexpr int kRank = X::NumIndices;
  std::int64_t shape[kRank + 1];
  std::int64_t strides[kRank + 1];
  for (int i = 0; i < kRank; ++i) shape[i] = as(x.dimension(static_cast<std::size_t>(i)));
  std::int64_t dense = 1;
  for (int k = 0; k < kRank; ++k) {
    const int axis = static_cast<int>(X::Layout) == static_cast<int>(Eigen::RowMajor) ? kRank - 1 - k : k;
    strides[axis] = dense;
    dense *= shape[axis] > 1 ? shape[axis] : 1;
  }
  return describe_memory(out, data, kCpuDevice, kRank, shape, strides);
}

template <class X>
constexpr caps eigen_tensor_caps(std::string_view name, bool is_const, result_kind result) {
  return {.name = name,
          .dtypes = dtypes(dtype_of_v<typename X::Scalar>),
          .devices = kOnHost,
          .min_rank = X::NumIndices,
          .max_rank = X::NumIndices,
          .strides = static_cast<int>(X::Layout) == static_cast<int>(Eigen::RowMajor) ? stride_rule::c_contig
                                                                                      : stride_rule::f_contig,
          .read_only = is_const,
          .source = result == result_kind::view ? source_kind::view : source_kind::container,
          .result = result};
}
}  // namespace detail

template <class Plain, int Options, template <class> class MakePointer>
struct converter<Eigen::TensorMap<Plain, Options, MakePointer>> {
  using X = Eigen::TensorMap<Plain, Options, MakePointer>;
  using T = std::conditional_t<std::is_const_v<Plain>, const typename Plain::Scalar, typename Plain::Scalar>;
  static constexpr caps capabilities =
      detail::eigen_tensor_caps<X>(std::is_const_v<Plain> ? "Eigen::TensorMap<const Tensor>" : "Eigen::TensorMap",
                                   std::is_const_v<T>, result_kind::view);

  static Status describe(const X& x, Tensor& out) {
    return detail::describe_eigen_tensor(x, const_cast<T*>(x.data()), out);
  }
  static X to(Tensor& t, const options&) {
    typename X::Dimensions dimensions;
    for (int i = 0; i < X::NumIndices; ++i)
      dimensions[static_cast<std::size_t>(i)] = static_cast<typename X::Index>(t.dl.shape[i]);
    return X(static_cast<T*>(t.dl.data), dimensions);
  }
};

template <class Scalar, int Rank, int Options, class Index>
struct converter<Eigen::Tensor<Scalar, Rank, Options, Index>> {
  using X = Eigen::Tensor<Scalar, Rank, Options, Index>;
  static constexpr caps capabilities = [] {
    caps c = detail::eigen_tensor_caps<X>("Eigen::Tensor", true, result_kind::copy);
    return c;
  }();
  static Status describe(X& x, Tensor& out) { return detail::describe_eigen_tensor(x, x.data(), out); }
  static Status describe(const X& x, Tensor& out) { return detail::describe_eigen_tensor(x, x.data(), out); }
  static X to(Tensor& t, const options& o) { return X(converter<Eigen::TensorMap<const X>>::to(t, o)); }
};

}  // namespace dlbridge
