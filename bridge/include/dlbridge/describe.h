// Descriptors of memory that C++ code names by pointer, extents and strides: what converters are made of.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dlbridge/cuda_device.h"
#include "dlbridge/dtype.h"
#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"
#include "dlbridge/validate.h"

namespace dlbridge {

inline constexpr DLDevice kCpuDevice{kDLCPU, 0};

// Fills everything of `out` but the owner and the token. `strides` in elements; null: C order. A null `data` is fine
// when an extent is 0.
DLBRIDGE_CHECKED inline Status describe_memory(Tensor& out, const DTypeInfo& dtype, const void* data, DLDevice device,
                                               std::int64_t ndim, const std::int64_t* shape,
                                               const std::int64_t* strides, bool readonly) {
  out.set_dtype(dtype);
  out.dl.data = const_cast<void*>(data);
  out.dl.device = device;
  out.flags = readonly ? kFlagReadOnly : 0;
  return build_layout<StrideUnit::kElements>(out, ndim, shape, strides);
}

// The same with the element type of the pointer; const elements are read-only.
template <class T>
DLBRIDGE_CHECKED Status describe_memory(Tensor& out, T* data, DLDevice device, std::int64_t ndim,
                                        const std::int64_t* shape, const std::int64_t* strides) {
  return describe_memory(out, info(dtype_of_v<T>), data, device, ndim, shape, strides, std::is_const_v<T>);
}

// Where a pointer of unknown origin lives: the CPU unless the CUDA driver is in use and knows it.
DLBRIDGE_CHECKED inline Status locate(const void* pointer, DLDevice& out) {
  out = kCpuDevice;
  if (pointer == nullptr || !cuda::available()) return {};
  cuda::detail::PointerFacts facts;
  DLBRIDGE_TRY(cuda::check(cuda::detail::query_pointer(pointer, facts), "cuPointerGetAttributes"));
  return facts.memory_type == 0 ? Status() : cuda::device_of_pointer(pointer, out);
}

namespace detail {
// Casts an integral extent, stride or count of any framework, in every sign.
template <class To = std::int64_t, class From>
constexpr To as(From value) noexcept {
  return static_cast<To>(value);
}

// Strides as a framework with strictly positive ones wants them: those of axes of extent 1, and all of an empty
// tensor, are never used and may be anything here, so they become those of a dense tensor.
template <int Rank>
[[gnu::noinline]] void replace_unused_strides(const std::int64_t* shape, std::int64_t* strides) noexcept {
  bool empty = false;
  for (int i = 0; i < Rank; ++i) empty |= shape[i] == 0;
  std::int64_t dense = 1;
  for (int i = Rank - 1; i >= 0; --i) {
    if (empty || shape[i] == 1) strides[i] = dense;
    dense = strides[i] * (shape[i] > 1 ? shape[i] : 1);
    if (dense < 1) dense = 1;
  }
}
template <int Rank>
[[gnu::always_inline]] inline void usable_strides(const std::int64_t* shape, const std::int64_t* strides,
                                                  std::int64_t* out) noexcept {
  bool all_used = true;
  for (int i = 0; i < Rank; ++i) {
    all_used &= shape[i] > 1;
    out[i] = strides[i];
  }
  if (!all_used) [[unlikely]]
    replace_unused_strides<Rank>(shape, out);
}
}  // namespace detail

}  // namespace dlbridge
