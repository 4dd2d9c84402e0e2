// Armadillo: Mat and Cube over a tensor's memory in Fortran order, Col and Row over dense elements; all are moved in.
// Host memory.
#pragma once

#include <armadillo>

#include <cstdint>
#include <string_view>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
template <class X, std::int32_t kRank>
struct armadillo_converter {
  using T = typename X::elem_type;

  static constexpr caps make_caps(std::string_view name) {
    return {.name = name,
            .dtypes = dtypes(dtype_of_v<T>),
            .devices = kOnHost,
            .min_rank = kRank,
            .max_rank = kRank,
            .strides = stride_rule::f_contig,
            .source = source_kind::container,
            .result = result_kind::view};
  }

  // Armadillo's mem_state: 1 and 2 are memory that was given to the constructor, which the object does not own.
  static Status owned(const X& x) {
    if (x.mem_state != 1 && x.mem_state != 2) return {};
    return refused("expected elements of its own, got memory that the constructor was given. Hint: "
                   "from(borrow(x, keepalive))");
  }

  template <class Object>
  static Status describe(Object& x, Tensor& out) {
    std::int64_t shape[3] = {as(x.n_elem), 0, 0};
    if constexpr (kRank > 1) shape[0] = as(x.n_rows), shape[1] = as(x.n_cols);
    if constexpr (kRank > 2) shape[2] = as(x.n_slices);
    const std::int64_t strides[3] = {1, shape[0], shape[0] * shape[1]};
    return describe_memory(out, x.memptr(), kCpuDevice, kRank, shape, strides);
  }

  // `strict`: a change of its size is an error, not another piece of memory.
  static X to(Tensor& t, const options&) {
    constexpr bool kCopies = false, kStrict = true;
    auto* data = static_cast<T*>(t.dl.data);
    const auto extent = [&t](int axis) { return as<arma::uword>(t.dl.shape[axis]); };
    if constexpr (kRank == 1) return X(data, extent(0), kCopies, kStrict);
    else if constexpr (kRank == 2) return X(data, extent(0), extent(1), kCopies, kStrict);
    else return X(data, extent(0), extent(1), extent(2), kCopies, kStrict);
  }
};
}  // namespace detail

template <class T>
struct converter<arma::Mat<T>> : detail::armadillo_converter<arma::Mat<T>, 2> {
  static constexpr caps capabilities = converter::make_caps("arma::Mat");
};
template <class T>
struct converter<arma::Col<T>> : detail::armadillo_converter<arma::Col<T>, 1> {
  static constexpr caps capabilities = converter::make_caps("arma::Col");
};
template <class T>
struct converter<arma::Row<T>> : detail::armadillo_converter<arma::Row<T>, 1> {
  static constexpr caps capabilities = converter::make_caps("arma::Row");
};
template <class T>
struct converter<arma::Cube<T>> : detail::armadillo_converter<arma::Cube<T>, 3> {
  static constexpr caps capabilities = converter::make_caps("arma::Cube");
};

}  // namespace dlbridge
