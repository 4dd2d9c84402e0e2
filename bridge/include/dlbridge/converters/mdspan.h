// std::mdspan where the standard library has it, cuda::std::mdspan where CCCL is on the include path. Views both ways.
#pragma once

#include <version>

#if defined(__cpp_lib_mdspan)
#include <mdspan>
#elif __has_include(<mdspan>)
#include <mdspan>
#endif
#if __has_include(<cuda/std/mdspan>)
#include <cuda/std/mdspan>
#define DLBRIDGE_HAS_CUDA_MDSPAN 1
#endif

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

#if !defined(__cpp_lib_mdspan) && !defined(DLBRIDGE_HAS_CUDA_MDSPAN)
#error \
    "dlbridge/converters/mdspan.h: neither std::mdspan (libc++ 18, libstdc++ 15) nor cuda::std::mdspan (CCCL) is here"
#endif

namespace dlbridge {

namespace detail {
// One body for the two libraries: Right, Left and Strided are their layouts, Array their std::array.
template <class Mdspan, class Right, class Left, class Strided, class Array, DeviceSet kDevices>
struct mdspan_converter {
  using T = typename Mdspan::element_type;
  using Extents = typename Mdspan::extents_type;
  using Index = typename Extents::index_type;
  using Layout = typename Mdspan::layout_type;
  static constexpr std::size_t kRank = Extents::rank();
  static constexpr bool kStrided = std::is_same_v<Layout, Strided>;
  static_assert(kStrided || std::is_same_v<Layout, Right> || std::is_same_v<Layout, Left>,
                "dlbridge knows layout_right, layout_left and layout_stride");

  static constexpr caps make_caps(std::string_view name) {
    return {.name = name,
            .dtypes = dtypes(dtype_of_v<T>),
            .devices = kDevices,
            .min_rank = static_cast<std::int32_t>(kRank),
            .max_rank = static_cast<std::int32_t>(kRank),
            .strides = kStrided                        ? stride_rule::positive
                       : std::is_same_v<Layout, Right> ? stride_rule::c_contig
                                                       : stride_rule::f_contig,
            .read_only = std::is_const_v<T>,
            .source = source_kind::view,
            .result = result_kind::view};
  }

  static Status describe(const Mdspan& x, Tensor& out) {
    std::int64_t shape[kRank + 1];
    std::int64_t strides[kRank + 1];
    for (std::size_t i = 0; i < kRank; ++i) {
      shape[i] = as(x.extent(i));
      strides[i] = as(x.stride(i));
    }
    DLDevice device = kCpuDevice;
    if constexpr ((kDevices & kOnCuda) != 0) DLBRIDGE_TRY(locate(x.data_handle(), device));
    return describe_memory(out, x.data_handle(), device, as(kRank), shape, strides);
  }

  using View = TensorView<T, static_cast<int>(kRank), any_layout, any_device>;
  static Mdspan make(const View& v, const caps& c) {
    Array extents{};
    for (std::size_t i = 0; i < kRank; ++i) {
      extents[i] = index(v.dims().extents[i], c);
      if constexpr (kRank > 0) check_static(i, v, c);
    }
    if constexpr (!kStrided) {
      return Mdspan(v.data(), typename Layout::template mapping<Extents>(Extents(extents)));
    } else {
      Array strides{};
      std::int64_t usable[kRank + 1];
      usable_strides<static_cast<int>(kRank)>(v.dims().extents, v.dims().stride_elems, usable);
      for (std::size_t i = 0; i < kRank; ++i) strides[i] = index(usable[i], c);
      return Mdspan(v.data(), typename Layout::template mapping<Extents>(Extents(extents), strides));
    }
  }

 private:
  static Index index(std::int64_t value, const caps& c) {
    if (value > static_cast<std::int64_t>(std::numeric_limits<Index>::max()) && sizeof(Index) < 8)
      throw_conversion("to", c,
                       {ErrorCode::kOverflow, "the extent or stride " + std::to_string(value) +
                                                  " does not fit in the index_type of the mdspan. Hint: use "
                                                  "extents of std::int64_t"});
    return static_cast<Index>(value);
  }
  static void check_static(std::size_t axis, const View& v, const caps& c) {
    constexpr auto kDynamic = std::numeric_limits<std::size_t>::max();
    const auto fixed = static_cast<std::size_t>(Extents::static_extent(axis));
    if (fixed == kDynamic || fixed == static_cast<std::size_t>(v.dims().extents[axis])) return;
    throw_conversion(
        "to", c,
        {ErrorCode::kMalformed, "expected extent " + std::to_string(fixed) + " on axis " + std::to_string(axis) +
                                    ", got " + describe_view(v) + ". Hint: use dextents, or reshape in the producer"});
  }
  static std::string describe_view(const View& v) { return dlbridge::describe(v.descriptor()); }
};
}  // namespace detail

#if defined(__cpp_lib_mdspan)
template <class T, class Extents, class Layout>
struct converter<std::mdspan<T, Extents, Layout, std::default_accessor<T>>> {
  using X = std::mdspan<T, Extents, Layout, std::default_accessor<T>>;
  using Body = detail::mdspan_converter<X, std::layout_right, std::layout_left, std::layout_stride,
                                        std::array<typename Extents::index_type, Extents::rank()>, kOnHost>;
  static constexpr caps capabilities = Body::make_caps("std::mdspan");
  static Status describe(const X& x, Tensor& out) { return Body::describe(x, out); }
  static X to(typename Body::View v, const options&) { return Body::make(v, capabilities); }
};
#endif

#if defined(DLBRIDGE_HAS_CUDA_MDSPAN)
// Its pointers may be of either side: the type does not say, kernels take it as well as host code.
template <class T, class Extents, class Layout>
struct converter<::cuda::std::mdspan<T, Extents, Layout, ::cuda::std::default_accessor<T>>> {
  using X = ::cuda::std::mdspan<T, Extents, Layout, ::cuda::std::default_accessor<T>>;
  using Body =
      detail::mdspan_converter<X, ::cuda::std::layout_right, ::cuda::std::layout_left, ::cuda::std::layout_stride,
                               ::cuda::std::array<typename Extents::index_type, Extents::rank()>, kOnHost | kOnCuda>;
  static constexpr caps capabilities = Body::make_caps("cuda::std::mdspan");
  static Status describe(const X& x, Tensor& out) { return Body::describe(x, out); }
  static X to(typename Body::View v, const options&) { return Body::make(v, capabilities); }
};
#endif

}  // namespace dlbridge
