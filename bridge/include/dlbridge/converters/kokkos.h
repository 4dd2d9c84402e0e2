// Kokkos: unmanaged Views over a tensor's memory, with the owner beside them; managed Views by their own count.
#pragma once

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
template <class T, int Rank>
struct kokkos_data : kokkos_data<T*, Rank - 1> {};
template <class T>
struct kokkos_data<T, 0> {
  using type = T;
};

template <class Space>
constexpr DeviceSet kokkos_devices() {
  DeviceSet set = 0;
  if constexpr (std::is_same_v<Space, Kokkos::HostSpace>) set = kOnHost;
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::CudaSpace>) set = kOnCuda;
  if constexpr (std::is_same_v<Space, Kokkos::CudaUVMSpace>) set = devices(kDLCUDAManaged);
  if constexpr (std::is_same_v<Space, Kokkos::CudaHostPinnedSpace>) set = devices(kDLCUDAHost);
#endif
  return set;
}
template <class Space>
inline constexpr DLDevice kKokkosDevice{(kokkos_devices<Space>() & kOnCpu) != 0                    ? kDLCPU
                                        : (kokkos_devices<Space>() & devices(kDLCUDA)) != 0        ? kDLCUDA
                                        : (kokkos_devices<Space>() & devices(kDLCUDAManaged)) != 0 ? kDLCUDAManaged
                                                                                                   : kDLCUDAHost,
                                        0};
}  // namespace detail

// The View that takes every layout. `T` const: a read-only one.
template <class T, int Rank, class Space = Kokkos::HostSpace>
using KokkosView = Kokkos::View<typename detail::kokkos_data<T, Rank>::type, Kokkos::LayoutStride, Space,
                                Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class Data, class... Properties>
struct converter<Kokkos::View<Data, Properties...>> {
  using X = Kokkos::View<Data, Properties...>;
  using T = std::remove_pointer_t<typename X::pointer_type>;
  using Layout = typename X::array_layout;
  using Space = typename X::memory_space;
  static constexpr int kRank = static_cast<int>(X::rank);
  static constexpr bool kStrided = std::is_same_v<Layout, Kokkos::LayoutStride>;
  static constexpr bool kRight = std::is_same_v<Layout, Kokkos::LayoutRight>;
  static_assert(kStrided || kRight || std::is_same_v<Layout, Kokkos::LayoutLeft>,
                "dlbridge knows LayoutRight, LayoutLeft and LayoutStride");
  static_assert(detail::kokkos_devices<Space>() != 0, "dlbridge knows HostSpace and the CUDA spaces of Kokkos");
  static constexpr caps capabilities{.name = std::is_const_v<T> ? "Kokkos::View<const T>" : "Kokkos::View",
                                     .dtypes = dtypes(dtype_of_v<T>),
                                     .devices = detail::kokkos_devices<Space>(),
                                     .min_rank = kRank,
                                     .max_rank = kRank,
                                     .strides = kStrided ? stride_rule::positive
                                                : kRight ? stride_rule::c_contig
                                                         : stride_rule::f_contig,
                                     .read_only = std::is_const_v<T>,
                                     .source = source_kind::handle,
                                     .result = result_kind::view};

  static Status owned(const X& x) {
    if (x.use_count() > 0 || x.size() == 0) return {};
    return refused("this View is unmanaged and owns nothing, so nothing would keep the memory. Hint: "
                   "from(borrow(view, keepalive))");
  }

  static Status describe(const X& x, Tensor& out) {
    std::int64_t shape[kRank + 1] = {};
    std::int64_t strides[kRank + 9] = {};  // Kokkos writes one more than the rank
    if constexpr (kRank > 0) {
      x.stride(strides);
      for (int i = 0; i < kRank; ++i) shape[i] = detail::as(x.extent(static_cast<std::size_t>(i)));
    }
    DLDevice device = detail::kKokkosDevice<Space>;
    if (device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged) DLBRIDGE_TRY(locate(x.data(), device));
    return describe_memory(out, x.data(), device, kRank, shape, strides);
  }

  using View = TensorView<T, kRank, any_layout, any_device>;
  static X to(View v, const options&) {
    for (int i = 0; i < kRank; ++i) check_static(i, v);
    return X(v.data(), layout_of(v, std::make_index_sequence<kStrided ? 2 * kRank : kRank>{}));
  }

 private:
  // By the layout's constructor, which fills its eight axes once. LayoutStride's takes each extent with its stride.
  template <std::size_t... I>
  static Layout layout_of(const View& v, std::index_sequence<I...>) {
    std::size_t given[2 * kRank + 1];
    if constexpr (kStrided) {
      std::int64_t usable[kRank + 1];
      detail::usable_strides<kRank>(v.dims().extents, v.dims().stride_elems, usable);
      for (int i = 0; i < kRank; ++i) given[2 * i + 1] = static_cast<std::size_t>(usable[i]);
    }
    for (int i = 0; i < kRank; ++i) given[kStrided ? 2 * i : i] = static_cast<std::size_t>(v.extent(i));
    return Layout(given[I]...);
  }
  // Extents that the View's type fixes: View<float*[3]>.
  static void check_static(int axis, const View& v) {
    const auto fixed =
        axis < static_cast<int>(X::rank_dynamic) ? -1 : detail::as(X::static_extent(static_cast<unsigned>(axis)));
    if (fixed < 0 || fixed == v.extent(axis)) return;
    detail::throw_conversion(
        "to", capabilities,
        {ErrorCode::kMalformed, "expected extent " + std::to_string(fixed) + " on axis " + std::to_string(axis) +
                                    ", got " + dlbridge::describe(v.descriptor()) +
                                    ". Hint: use dlbridge::KokkosView<T, rank>"});
  }
};

}  // namespace dlbridge
