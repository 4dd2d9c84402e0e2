// ArrayFire: af::array, locked while a tensor shares it; copied out, since an af::array frees what it is given. Tested
// against a minimal fake of ArrayFire's headers only.
#pragma once

#include <arrayfire.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
struct AfType {
  af_dtype af;
  DType dtype;
};
inline constexpr AfType kAfTypes[] = {
    {f32, DType::kFloat32}, {c32, DType::kComplex64}, {f64, DType::kFloat64}, {c64, DType::kComplex128},
    {b8, DType::kBool},     {s32, DType::kInt32},     {u32, DType::kUInt32},  {u8, DType::kUInt8},
    {s64, DType::kInt64},   {u64, DType::kUInt64},    {s16, DType::kInt16},   {u16, DType::kUInt16},
    {f16, DType::kFloat16},
};
constexpr DTypeSet af_dtypes() {
  DTypeSet set = 0;
  for (const AfType& row : kAfTypes) set |= dtypes(row.dtype);
  return set;
}
inline const AfType* find_af(af_dtype type) {
  for (const AfType& row : kAfTypes)
    if (row.af == type) return &row;
  return nullptr;
}
inline void check_af(af_err error, const char* what) {
  if (error != AF_SUCCESS)
    throw Error(ErrorCode::kRefused, std::string(what) + " failed with " + af_err_to_string(error));
}

// The lock is given back with the array: until then ArrayFire neither moves nor reuses the memory.
struct LockedArray {
  af::array array;
  static void release(void* context) noexcept {
    auto* self = static_cast<LockedArray*>(context);
    static_cast<void>(af_unlock_array(self->array.get()));
    delete self;
  }
};
}  // namespace detail

template <>
struct converter<af::array> {
  static constexpr caps capabilities{.name = "af::array",
                                     .dtypes = detail::af_dtypes(),
                                     .devices = kOnHost,
                                     .min_rank = 1,
                                     .max_rank = 4,
                                     .strides = stride_rule::f_contig,
                                     .read_only = true,
                                     .source = source_kind::handle,
                                     .result = result_kind::copy};

  // Column-major, trailing extents of 1 dropped. af_get_device_ptr evaluates pending work, makes a sub-array linear
  // and locks the memory.
  static Tensor from(af::array&& x, const options&) {
    const detail::AfType* type = detail::find_af(x.type());
    if (type == nullptr)
      detail::throw_conversion("from", capabilities,
                               {ErrorCode::kRefused, "expected a dtype of DLPack, got af dtype " +
                                                         std::to_string(static_cast<int>(x.type()))});
    void* data = nullptr;
    auto* kept = new detail::LockedArray{std::move(x)};
    if (const af_err error = af_get_device_ptr(&data, kept->array.get()); error != AF_SUCCESS) {
      delete kept;
      detail::check_af(error, "from<af::array>: af_get_device_ptr");
    }
    Tensor out;
    out.owner = Owner(kept, &detail::LockedArray::release);
    detail::check_described(capabilities, describe_locked(kept->array, *type, data, out));
    return out;
  }

  // Into memory of ArrayFire's own; the host waits for the copy, as with af::array's constructor.
  static af::array to(Tensor& t, const options&) {
    const detail::AfType* type = nullptr;
    for (const detail::AfType& row : detail::kAfTypes)
      if (row.dtype == t.dtype().id) type = &row;
    dim_t dims[4] = {1, 1, 1, 1};
    for (std::int32_t i = 0; i < t.dl.ndim; ++i) dims[i] = t.dl.shape[i];
    af_array handle = nullptr;
    detail::check_af(t.size == 0 ? af_create_handle(&handle, 4, dims, type->af)
                                 : af_create_array(&handle, t.dl.data, 4, dims, type->af),
                     "to<af::array>: af_create_array");
    return af::array(handle);
  }

 private:
  static Status describe_locked(const af::array& x, const detail::AfType& type, void* data, Tensor& out) {
    const af::dim4 dims = x.dims();
    std::int64_t rank = 4;
    while (rank > 1 && dims[static_cast<unsigned>(rank - 1)] == 1) --rank;
    std::int64_t shape[4];
    std::int64_t strides[4];
    std::int64_t dense = 1;
    for (std::int64_t i = 0; i < rank; ++i) {
      shape[i] = dims[static_cast<unsigned>(i)];
      strides[i] = dense;
      dense *= shape[i] > 1 ? shape[i] : 1;
    }
    DLDevice device = kCpuDevice;
    const af::Backend backend = af::getBackendId(x);
    if (backend == AF_BACKEND_CUDA) {
      device = {kDLCUDA, 0};
      if (data != nullptr) DLBRIDGE_TRY(cuda::device_of_pointer(data, device));
      af::sync();  // ArrayFire's stream is not in its core headers, so the host waits
    } else if (backend != AF_BACKEND_CPU) {
      return refused("expected ArrayFire's CPU or CUDA back end, got another (OpenCL's memory has no address)");
    }
    return describe_memory(out, info(type.dtype), data, device, rank, shape, strides, false);
  }
};

}  // namespace dlbridge
