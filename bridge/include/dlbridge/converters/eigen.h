// Eigen: Map over a tensor's memory, any strides; Matrix, Array and Vector moved in. Host memory, rank 2 (vectors: 1).
#pragma once

#include <Eigen/Core>

#include <cstdint>
#include <string>
#include <type_traits>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

// Maps that take every layout. `T` const: a read-only map.
namespace detail {
template <class T, class Plain>
using EigenPlain = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
}
template <class T, int Rows = Eigen::Dynamic, int Cols = Eigen::Dynamic>
using EigenMap =
    Eigen::Map<detail::EigenPlain<T, Eigen::Matrix<std::remove_const_t<T>, Rows, Cols,
                                                   Cols == 1 && Rows != 1 ? Eigen::ColMajor : Eigen::RowMajor>>,
               Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class T, int Size = Eigen::Dynamic>
using EigenVectorMap = Eigen::Map<detail::EigenPlain<T, Eigen::Matrix<std::remove_const_t<T>, Size, 1>>,
                                  Eigen::Unaligned, Eigen::InnerStride<Eigen::Dynamic>>;

namespace detail {
// `x`: a Matrix, an Array or a Map; in Eigen's terms inner runs along a row of a row-major object.
template <class X, class T>
Status describe_eigen(const X& x, T* data, Tensor& out) {
  const std::int64_t inner = as(x.innerStride());
  const std::int64_t outer = as(x.outerStride());
  if constexpr (X::IsVectorAtCompileTime) {
    const std::int64_t shape[1] = {as(x.size())};
    return describe_memory(out, data, kCpuDevice, 1, shape, &inner);
  } else {
    const std::int64_t shape[2] = {as(x.rows()), as(x.cols())};
    const std::int64_t strides[2] = {X::IsRowMajor ? outer : inner, X::IsRowMajor ? inner : outer};
    return describe_memory(out, data, kCpuDevice, 2, shape, strides);
  }
}

// A stride that the Map's type fixes: 0 means the natural one.
template <class Stride>
constexpr stride_rule eigen_rule(bool row_major, bool vector) {
  constexpr bool kInnerDense = Stride::InnerStrideAtCompileTime == 0 || Stride::InnerStrideAtCompileTime == 1;
  constexpr bool kOuterNatural = Stride::OuterStrideAtCompileTime == 0;
  if (vector) return kInnerDense ? stride_rule::c_contig : stride_rule::any;
  if (kInnerDense && kOuterNatural) return row_major ? stride_rule::c_contig : stride_rule::f_contig;
  // Dense rows of a row-major map are `pitched`; what a column-major one may have is checked in to().
  return kInnerDense && row_major ? stride_rule::pitched : stride_rule::any;
}

[[noreturn, gnu::cold]] inline void throw_eigen_fixed(const caps& c, const char* what, std::int64_t fixed,
                                                      const Tensor& t) {
  throw_conversion("to", c,
                   {ErrorCode::kMalformed, std::string("expected ") + what + " " + std::to_string(fixed) +
                                               ", which the Map's type fixes, got " + describe(t) +
                                               ". Hint: use dlbridge::EigenMap<T>, which takes every layout"});
}
}  // namespace detail

template <class Plain, int Options, class Stride>
struct converter<Eigen::Map<Plain, Options, Stride>> {
  using X = Eigen::Map<Plain, Options, Stride>;
  using T = std::conditional_t<std::is_const_v<Plain>, const typename X::Scalar, typename X::Scalar>;
  static constexpr bool kVector = X::IsVectorAtCompileTime;
  static constexpr bool kRowMajor = X::IsRowMajor;
  static constexpr caps capabilities{.name = std::is_const_v<Plain> ? "Eigen::Map<const Matrix>" : "Eigen::Map",
                                     .dtypes = dtypes(dtype_of_v<T>),
                                     .devices = kOnHost,
                                     .min_rank = kVector ? 1 : 2,
                                     .max_rank = kVector ? 1 : 2,
                                     .strides = detail::eigen_rule<Stride>(kRowMajor, kVector),
                                     .alignment = static_cast<std::uint32_t>(Options & 0xff),
                                     .read_only = std::is_const_v<T>,
                                     .source = source_kind::view,
                                     .result = result_kind::view};

  static Status describe(const X& x, Tensor& out) { return detail::describe_eigen(x, const_cast<T*>(x.data()), out); }

  using View = TensorView<T, kVector ? 1 : 2>;
  static X to(View v, const options&) {
    if constexpr (kVector) {
      check_fixed("size", X::SizeAtCompileTime, v.extent(0), v);
      return X(v.data(), v.extent(0), stride(v.stride(0), v.stride(0), v));
    } else {
      check_fixed("rows", X::RowsAtCompileTime, v.extent(0), v);
      check_fixed("cols", X::ColsAtCompileTime, v.extent(1), v);
      const std::int64_t outer = v.stride(kRowMajor ? 0 : 1);
      const std::int64_t inner = v.stride(kRowMajor ? 1 : 0);
      return X(v.data(), v.extent(0), v.extent(1), stride(outer, inner, v));
    }
  }

 private:
  static void check_fixed(const char* what, std::int64_t fixed, std::int64_t got, const View& v) {
    if (fixed != Eigen::Dynamic && fixed != got) detail::throw_eigen_fixed(capabilities, what, fixed, v.descriptor());
  }
  // InnerStride and OuterStride take one number, Stride<> two.
  static Stride stride(std::int64_t outer, std::int64_t inner, const View& v) {
    constexpr int kInner = Stride::InnerStrideAtCompileTime;
    constexpr int kOuter = Stride::OuterStrideAtCompileTime;
    const bool used = v.size() > 1;
    if (!kVector && used && kInner != Eigen::Dynamic) {
      const std::int32_t axis = kRowMajor ? 1 : 0;
      if (v.extent(axis) > 1) check_fixed("inner stride", kInner == 0 ? 1 : kInner, inner, v);
    }
    if (kVector && used && kInner != Eigen::Dynamic) check_fixed("inner stride", kInner == 0 ? 1 : kInner, inner, v);
    if (!kVector && used && kOuter != Eigen::Dynamic && v.extent(kRowMajor ? 0 : 1) > 1) {
      // Eigen's natural outer stride: what the inner one spans.
      const std::int64_t natural = inner * v.extent(kRowMajor ? 1 : 0);
      if (const std::int64_t fixed = kOuter == 0 ? natural : kOuter; fixed != outer)
        detail::throw_eigen_fixed(capabilities, "outer stride", fixed, v.descriptor());
    }
    if constexpr (std::is_constructible_v<Stride, Eigen::Index, Eigen::Index>)
      return Stride(kOuter == Eigen::Dynamic ? outer : kOuter, kInner == Eigen::Dynamic ? inner : kInner);
    else if constexpr (std::is_constructible_v<Stride, Eigen::Index> && kInner == Eigen::Dynamic) return Stride(inner);
    else if constexpr (std::is_constructible_v<Stride, Eigen::Index>) return Stride(outer);
    else return Stride();
  }
};

namespace detail {
template <class X>
struct eigen_plain_converter {
  using T = typename X::Scalar;
  static constexpr caps make_caps(std::string_view name) {
    return {.name = name,
            .dtypes = dtypes(dtype_of_v<T>),
            .devices = kOnHost,
            .min_rank = X::IsVectorAtCompileTime ? 1 : 2,
            .max_rank = X::IsVectorAtCompileTime ? 1 : 2,
            .strides = stride_rule::any,
            .read_only = true,
            .source = source_kind::container,
            .result = result_kind::copy};
  }
  static Status describe(X& x, Tensor& out) { return describe_eigen(x, x.data(), out); }
  static Status describe(const X& x, Tensor& out) { return describe_eigen(x, x.data(), out); }
  static X to(TensorView<const T, X::IsVectorAtCompileTime ? 1 : 2> v, const options& o) {
    using Map = Eigen::Map<const X, Eigen::Unaligned,
                           std::conditional_t<X::IsVectorAtCompileTime, Eigen::InnerStride<Eigen::Dynamic>,
                                              Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>>;
    return X(converter<Map>::to(v, o));
  }
};
}  // namespace detail

template <class T, int Rows, int Cols, int Options, int MaxRows, int MaxCols>
struct converter<Eigen::Matrix<T, Rows, Cols, Options, MaxRows, MaxCols>>
    : detail::eigen_plain_converter<Eigen::Matrix<T, Rows, Cols, Options, MaxRows, MaxCols>> {
  static constexpr caps capabilities = converter::make_caps("Eigen::Matrix");
};
template <class T, int Rows, int Cols, int Options, int MaxRows, int MaxCols>
struct converter<Eigen::Array<T, Rows, Cols, Options, MaxRows, MaxCols>>
    : detail::eigen_plain_converter<Eigen::Array<T, Rows, Cols, Options, MaxRows, MaxCols>> {
  static constexpr caps capabilities = converter::make_caps("Eigen::Array");
};

}  // namespace dlbridge
