// OpenCV 4 and newer: cv::Mat, sharing memory and owner both ways; cv::cuda::GpuMat, a view with its owner beside it.
// Channels are the trailing dimension of a tensor of rank 3 and more.
#pragma once

#include <opencv2/core.hpp>
#include <opencv2/core/cuda.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"

namespace dlbridge {

namespace detail {
struct CvDepth {
  int depth;
  DType dtype;
};
// By OpenCV's macros, since OpenCV 5 renumbers nothing but adds some.
inline constexpr CvDepth kCvDepths[] = {
    {CV_8U, DType::kUInt8},      {CV_8S, DType::kInt8},     {CV_16U, DType::kUInt16},  {CV_16S, DType::kInt16},
    {CV_32S, DType::kInt32},     {CV_32F, DType::kFloat32}, {CV_64F, DType::kFloat64}, {CV_16F, DType::kFloat16},
#if defined(CV_16BF)
    {CV_16BF, DType::kBFloat16}, {CV_Bool, DType::kBool},   {CV_64U, DType::kUInt64},  {CV_64S, DType::kInt64},
    {CV_32U, DType::kUInt32},
#endif
};
constexpr DTypeSet cv_dtypes() {
  DTypeSet set = 0;
  for (const CvDepth& row : kCvDepths) set |= dtypes(row.dtype);
  return set;
}
constexpr int cv_depth(DType id) {
  for (const CvDepth& row : kCvDepths)
    if (row.dtype == id) return row.depth;
  return -1;
}
inline const DTypeInfo* cv_dtype(int depth) {
  for (const CvDepth& row : kCvDepths)
    if (row.depth == depth) return &info(row.dtype);
  return nullptr;
}

inline constexpr int kCvMaxDims = CV_VERSION_MAJOR >= 5 ? 10 : 32;

// How a tensor looks in OpenCV: the spatial axes, and channels in the element type.
struct CvShape {
  int dims = 0;
  int channels = 1;
  int sizes[kCvMaxDims];          // `dims` of them
  std::size_t steps[kCvMaxDims];  // bytes; the last one is the pixel
};

[[noreturn, gnu::cold]] inline void throw_cv(const caps& c, const std::string& expected, const Tensor& t,
                                             const char* hint) {
  throw_conversion("to", c,
                   {ErrorCode::kMalformed, "expected " + expected + ", got " + describe(t) + ". Hint: " + hint});
}

// The tensor has passed the validator: dense but for the outermost stride.
inline CvShape cv_shape(const Tensor& t, const caps& c) {
  CvShape s;
  const std::int32_t spatial = t.dl.ndim >= 3 ? t.dl.ndim - 1 : t.dl.ndim;
  if (spatial < t.dl.ndim) {
    const std::int64_t channels = t.dl.shape[spatial];
    if (channels < 1 || channels > CV_CN_MAX)
      throw_cv(c, "1 to " + std::to_string(CV_CN_MAX) + " channels in the last axis", t, "add an axis of extent 1");
    s.channels = static_cast<int>(channels);
  }
  for (std::int32_t i = 0; i < spatial; ++i)
    if (t.dl.shape[i] > std::numeric_limits<int>::max())
      throw_cv(c, "extents that fit in an int", t, "split the tensor");
  std::int64_t dense = t.itemsize() * s.channels;
  s.dims = spatial < 2 ? 2 : spatial;
  for (int k = s.dims; k-- > 0;) {
    const bool real = k < spatial;  // a vector is a column: its second axis is made up
    s.sizes[k] = real ? static_cast<int>(t.dl.shape[k]) : 1;
    const bool outermost = k == 0 && real && t.dl.shape[0] > 1 && t.size > 0;
    s.steps[k] = static_cast<std::size_t>(outermost ? t.dl.strides[0] * t.itemsize() : dense);
    dense *= s.sizes[k] > 1 ? s.sizes[k] : 1;
  }
  return s;
}

// Ends the life of the tensor behind a Mat with the last Mat that shares it. Memory that such a Mat needs later
// (create() with another size) is OpenCV's own.
class CvTensorAllocator final : public cv::MatAllocator {
 public:
  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* step, cv::AccessFlag flags,
                         cv::UMatUsageFlags usage) const override {
    return cv::Mat::getStdAllocator()->allocate(dims, sizes, type, data, step, flags, usage);
  }
  bool allocate(cv::UMatData* data, cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    return cv::Mat::getStdAllocator()->allocate(data, flags, usage);
  }
  void deallocate(cv::UMatData* data) const override {
    const std::unique_ptr<Tensor> kept(static_cast<Tensor*>(data->userdata));
    delete data;
  }
  static CvTensorAllocator& instance() {
    static CvTensorAllocator allocator;
    return allocator;
  }
};
}  // namespace detail

template <>
struct converter<cv::Mat> {
  static constexpr caps capabilities{.name = "cv::Mat",
                                     .dtypes = detail::cv_dtypes(),
                                     .devices = kOnHost,
                                     .min_rank = 1,
                                     .max_rank = detail::kCvMaxDims,
                                     .strides = stride_rule::pitched,
                                     .source = source_kind::handle,
                                     .result = result_kind::owner};

  static Status owned(const cv::Mat& x) {
    if (x.u != nullptr || x.empty()) return {};
    return refused("this cv::Mat was made from a pointer and owns nothing, so nothing would keep the memory. Hint: "
                   "from(borrow(mat, keepalive)), or mat.clone()");
  }

  static Status describe(const cv::Mat& x, Tensor& out) {
    const DTypeInfo* dtype = detail::cv_dtype(x.depth());
    if (dtype == nullptr)
      return refused("expected a depth that DLPack has, got depth " + std::to_string(x.depth()) +
                     ". Hint: mat.convertTo()");
    std::int64_t shape[detail::kCvMaxDims + 1];
    std::int64_t strides[detail::kCvMaxDims + 1];
    const int dims = x.dims < 2 ? 2 : x.dims;
    for (int i = 0; i < dims; ++i) {  // a Mat that was never made has no dims
      shape[i] = i < x.dims ? x.size[i] : 0;
      strides[i] = i < x.dims ? detail::as(x.step[i]) : dtype->itemsize;
    }
    int rank = dims;
    if (x.channels() > 1) {
      shape[rank] = x.channels();
      strides[rank++] = dtype->itemsize;
    }
    out.set_dtype(*dtype);
    out.dl.data = x.data;
    return build_layout<StrideUnit::kBytes>(out, rank, shape, strides);
  }

  static cv::Mat to(Tensor&& t, const options&) {
    const detail::CvShape s = detail::cv_shape(t, capabilities);
    const int type = CV_MAKETYPE(detail::cv_depth(t.dtype().id), s.channels);
    if (t.size == 0) return cv::Mat(s.dims, s.sizes, type);  // OpenCV takes no null data
    cv::Mat out = s.dims == 2 ? cv::Mat(s.sizes[0], s.sizes[1], type, t.dl.data, s.steps[0])
                              : cv::Mat(s.dims, s.sizes, type, t.dl.data, s.steps);
    if (!t.owner) {
      t = Tensor();
      return out;
    }
    auto kept = std::make_unique<Tensor>();
    auto* data = new cv::UMatData(&detail::CvTensorAllocator::instance());
    *kept = std::move(t);  // from here on nothing throws
    data->currAllocator = &detail::CvTensorAllocator::instance();
    data->data = data->origdata = out.data;
    data->size = static_cast<std::size_t>(out.dataend - out.datastart);
    data->refcount = 1;
    data->userdata = kept.release();
    out.u = data;
    return out;
  }
};

// Which device a GpuMat is on, OpenCV does not record; the driver is asked.
template <>
struct converter<cv::cuda::GpuMat> {
  static constexpr caps capabilities{.name = "cv::cuda::GpuMat",
                                     .dtypes = detail::cv_dtypes(),
                                     .devices = kOnCuda,
                                     .min_rank = 1,
                                     .max_rank = 3,
                                     .strides = stride_rule::pitched,
                                     .source = source_kind::handle,
                                     .result = result_kind::view};

  static Status owned(const cv::cuda::GpuMat& x) {
    if (x.refcount != nullptr || x.empty()) return {};
    return refused("this GpuMat was made from a pointer and owns nothing, so nothing would keep the memory. Hint: "
                   "from(borrow(mat, keepalive)), or mat.clone()");
  }

  static Status describe(const cv::cuda::GpuMat& x, Tensor& out) {
    const DTypeInfo* dtype = detail::cv_dtype(x.depth());
    if (dtype == nullptr) return refused("expected a depth that DLPack has, got depth " + std::to_string(x.depth()));
    const std::int64_t shape[3] = {x.rows, x.cols, x.channels()};
    const std::int64_t strides[3] = {detail::as(x.step), detail::as(x.elemSize()), dtype->itemsize};
    out.set_dtype(*dtype);
    out.dl.data = x.data;
    out.dl.device = {kDLCUDA, 0};
    if (!x.empty()) DLBRIDGE_TRY(cuda::device_of_pointer(x.data, out.dl.device));
    return build_layout<StrideUnit::kBytes>(out, x.channels() > 1 ? 3 : 2, shape, strides);
  }

  static cv::cuda::GpuMat to(Tensor& t, const options&) {
    const detail::CvShape s = detail::cv_shape(t, capabilities);
    const int type = CV_MAKETYPE(detail::cv_depth(t.dtype().id), s.channels);
    return cv::cuda::GpuMat(s.sizes[0], s.sizes[1], type, t.dl.data, s.steps[0]);
  }
};

}  // namespace dlbridge
