// TensorRT: a tensor's address, extents and type as an execution context wants them. TensorRT never owns: the tensor
// must live until enqueueV3() and what it queued are done. Tested against a minimal fake of TensorRT's headers only.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>
#include <limits>
#include <string>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
struct TrtType {
  nvinfer1::DataType trt;
  DType dtype;
};
inline constexpr TrtType kTrtTypes[] = {
    {nvinfer1::DataType::kFLOAT, DType::kFloat32},    {nvinfer1::DataType::kHALF, DType::kFloat16},
    {nvinfer1::DataType::kINT8, DType::kInt8},        {nvinfer1::DataType::kINT32, DType::kInt32},
    {nvinfer1::DataType::kBOOL, DType::kBool},        {nvinfer1::DataType::kUINT8, DType::kUInt8},
    {nvinfer1::DataType::kFP8, DType::kFloat8E4M3FN}, {nvinfer1::DataType::kBF16, DType::kBFloat16},
    {nvinfer1::DataType::kINT64, DType::kInt64},
};
constexpr DTypeSet trt_dtypes() {
  DTypeSet set = 0;
  for (const TrtType& row : kTrtTypes) set |= dtypes(row.dtype);
  return set;
}
}  // namespace detail

// One binding in linear format.
struct TensorRTBinding {
  void* address = nullptr;
  nvinfer1::Dims dims{};
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;

  // Gives it to a context under the engine's name for it. An input's extents are set, an output's compared where the
  // context knows them already. Throws Error; a refused binding changes nothing that the context had for that name.
  void bind(nvinfer1::IExecutionContext& context, const char* name) const {
    const nvinfer1::ICudaEngine& engine = context.getEngine();
    const nvinfer1::TensorIOMode mode = engine.getTensorIOMode(name);
    if (mode == nvinfer1::TensorIOMode::kNONE) refuse(name, "a tensor of the engine", "an unknown name");
    if (engine.getTensorDataType(name) != type)
      refuse(name, "data type " + std::to_string(static_cast<int>(engine.getTensorDataType(name))),
             "data type " + std::to_string(static_cast<int>(type)));
    if (engine.getTensorFormat(name) != nvinfer1::TensorFormat::kLINEAR)
      refuse(name, "a tensor in linear format", "a vectorised format; a strided tensor cannot express it");
    if (mode == nvinfer1::TensorIOMode::kINPUT && !context.setInputShape(name, dims))
      refuse(name, "extents of the optimisation profile", "extents that setInputShape() refuses");
    if (!context.setTensorAddress(name, address)) refuse(name, "an address TensorRT takes", "one it refuses");
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(const char* name, const std::string& expected, const std::string& got) {
    throw Error(ErrorCode::kRefused, std::string("bind: '") + name + "': expected " + expected + ", got " + got);
  }
};

template <>
struct converter<TensorRTBinding> {
  static constexpr caps capabilities{.name = "TensorRTBinding",
                                     .dtypes = detail::trt_dtypes(),
                                     .devices = kOnCuda,
                                     .max_rank = nvinfer1::Dims::MAX_DIMS,
                                     .strides = stride_rule::c_contig,
                                     .alignment = 256,  // setTensorAddress: at least 256 bytes
                                     .source = source_kind::view,
                                     .result = result_kind::view};

  static Status describe(const TensorRTBinding& x, Tensor& out) {
    std::int64_t shape[nvinfer1::Dims::MAX_DIMS];
    for (std::int32_t i = 0; i < x.dims.nbDims && i < nvinfer1::Dims::MAX_DIMS; ++i) shape[i] = x.dims.d[i];
    for (const detail::TrtType& row : detail::kTrtTypes) {
      if (row.trt != x.type) continue;
      DLDevice device{kDLCUDA, 0};
      if (x.address != nullptr) DLBRIDGE_TRY(cuda::device_of_pointer(x.address, device));
      return describe_memory(out, info(row.dtype), x.address, device, x.dims.nbDims, shape, nullptr, false);
    }
    return refused("expected a data type of DLPack, got TensorRT's " + std::to_string(static_cast<int>(x.type)) +
                   " (packed int4 and fp4 are not supported here)");
  }

  static TensorRTBinding to(Tensor& t, const options&) {
    TensorRTBinding out;
    out.address = t.dl.data;
    out.dims.nbDims = t.dl.ndim;
    for (std::int32_t i = 0; i < t.dl.ndim; ++i) {
      out.dims.d[i] = static_cast<std::remove_reference_t<decltype(out.dims.d[0])>>(t.dl.shape[i]);
      if (out.dims.d[i] != t.dl.shape[i])
        detail::throw_conversion(
            "to", capabilities,
            {ErrorCode::kOverflow, "an extent of " + describe_text(t) + " does not fit TensorRT's Dims"});
    }
    for (const detail::TrtType& row : detail::kTrtTypes)
      if (row.dtype == t.dtype().id) out.type = row.trt;
    return out;
  }

 private:
  static std::string describe_text(const Tensor& t) { return dlbridge::describe(t); }
};

}  // namespace dlbridge
