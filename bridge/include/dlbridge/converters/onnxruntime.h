// ONNX Runtime's C++ API: Ort::Value over a tensor's memory, with the owner beside it; its own tensors moved in.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
struct OrtType {
  ONNXTensorElementDataType ort;
  DType dtype;
};
inline constexpr OrtType kOrtTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DType::kFloat32},     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DType::kUInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DType::kInt8},         {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DType::kUInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DType::kInt16},       {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DType::kInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DType::kInt64},       {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DType::kBool},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DType::kFloat16},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DType::kFloat64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DType::kUInt32},     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DType::kUInt64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DType::kBFloat16},
};
constexpr DTypeSet ort_dtypes() {
  DTypeSet set = 0;
  for (const OrtType& row : kOrtTypes) set |= dtypes(row.dtype);
  return set;
}
inline ONNXTensorElementDataType ort_type(DType id) {
  for (const OrtType& row : kOrtTypes)
    if (row.dtype == id) return row.ort;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

// The names of ONNX Runtime's own allocators (core/framework/allocator.h).
inline constexpr const char* kOrtCpu = "Cpu";
inline constexpr const char* kOrtCuda = "Cuda";
inline constexpr const char* kOrtCudaPinned = "CudaPinned";

inline Status ort_device(std::string_view allocator, int id, DLDevice& out) {
  if (allocator == kOrtCpu) out = kCpuDevice;
  else if (allocator == kOrtCuda) out = {kDLCUDA, id};
  else if (allocator == kOrtCudaPinned) out = {kDLCUDAHost, 0};
  else
    return refused("expected memory of ONNX Runtime's Cpu, Cuda or CudaPinned allocator, got '" +
                   std::string(allocator) + "'. Hint: bind the output to one of them");
  return {};
}
}  // namespace detail

template <>
struct converter<Ort::Value> {
  static constexpr caps capabilities{.name = "Ort::Value",
                                     .dtypes = detail::ort_dtypes(),
                                     .devices = kOnHost | kOnCuda,
                                     .strides = stride_rule::c_contig,
                                     .source = source_kind::container,
                                     .result = result_kind::view};

  // A Value that was itself made over foreign memory keeps none of it: lend such a one with borrow().
  static Status describe(Ort::Value& x, Tensor& out) {
    if (!x || !x.IsTensor()) return refused("expected a tensor, got an Ort::Value that is empty, a map or a sequence");
    const auto shape_info = x.GetTensorTypeAndShapeInfo();
    const ONNXTensorElementDataType type = shape_info.GetElementType();
    const detail::OrtType* row = nullptr;
    for (const detail::OrtType& candidate : detail::kOrtTypes)
      if (candidate.ort == type) row = &candidate;
    if (row == nullptr)
      return refused("expected numbers, got ONNX element type " + std::to_string(static_cast<int>(type)) +
                     " (strings and the packed types have no DLPack dtype here)");
    const std::vector<std::int64_t> shape = shape_info.GetShape();
    const auto memory = x.GetTensorMemoryInfo();
    DLDevice device = kCpuDevice;
    DLBRIDGE_TRY(detail::ort_device(memory.GetAllocatorName(), memory.GetDeviceId(), device));
    return describe_memory(out, info(row->dtype), x.GetTensorMutableRawData(), device, detail::as(shape.size()),
                           shape.data(), nullptr, false);
  }

  static Ort::Value to(Tensor& t, const options&) {
    const bool on_cuda = is_cuda(t.dl.device);
    const Ort::MemoryInfo memory(on_cuda ? detail::kOrtCuda : detail::kOrtCpu, OrtDeviceAllocator,
                                 on_cuda ? t.dl.device.device_id : 0, OrtMemTypeDefault);
    // ONNX Runtime refuses a null pointer also where there is nothing behind it.
    static std::int64_t nothing = 0;
    void* data = t.size == 0 ? &nothing : t.dl.data;
    return Ort::Value::CreateTensor(memory, data, static_cast<std::size_t>(t.nbytes()), t.dl.shape,
                                    static_cast<std::size_t>(t.dl.ndim), detail::ort_type(t.dtype().id));
  }
};

}  // namespace dlbridge
