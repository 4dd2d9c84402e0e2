// OpenCV in Python: its matrices are NumPy's arrays, as far as a cv::Mat can say them, and on CUDA a cuda::GpuMat. It
// guards read-only arrays itself.
#include "dlbridge/cuda_device.h"
#include "frameworks/framework.h"

namespace dlbridge::frameworks {

namespace {

bool is_a(PyTypeObject* type, const char* name) noexcept {
  const py::Ref base = py::loaded_global("cv2", name);
  return base && PyType_Check(base.get()) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.get())) != 0;
}
bool is_matrix(PyTypeObject* type, const DLPackExchangeAPI*) noexcept { return is_a(type, "cuda_GpuMat"); }
bool is_nd_matrix(PyTypeObject* type, const DLPackExchangeAPI*) noexcept { return is_a(type, "cuda_GpuMatND"); }

// OpenCV 5.0 says device 0 whatever the memory, and ignores the stream that it is given: its functions work on the
// legacy default stream unless they are told another.
bool order(PyObject*, py::ReadCall& call, py::TensorObject* self) {
  Tensor& tensor = self->tensor;
  if (!is_cuda(tensor.dl.device) || tensor.size == 0) return true;
  call.refusal = cuda::device_of_pointer(tensor.dl.data, tensor.dl.device);
  tensor.ready = Ordering::on_stream(kLegacyStream);
  return call.refusal.ok();
}

// OpenCV 5.0 gives a GpuMatND's strides in bytes. Dense ones of elements wider than a byte show it.
bool order_nd(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  const Tensor& tensor = self->tensor;
  const std::int32_t last = tensor.dl.ndim - 1;
  const auto itemsize = static_cast<std::int64_t>(tensor.itemsize());
  if (itemsize > 1 && last >= 0 && tensor.dl.strides[last] == itemsize) {
    call.refuse(ErrorCode::kRefused,
                "a cv2.cuda.GpuMatND gives its strides in bytes, and DLPack counts elements, so that they would lead "
                "out of its memory. Use a GpuMat, or an OpenCV where that is mended");
    return false;
  }
  return order(object, call, self);
}

constexpr ArrayKind kArrays[] = {{.recognises = is_matrix, .order = order},
                                 {.recognises = is_nd_matrix, .order = order_nd}};

constexpr DTypeSet kDepths =
    dtypes(DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16) | kFloats;
constexpr char kNote[] = "OpenCV's matrices have no such type; cast it, for example to int32 or uint8.";

// Wider integers are narrowed in silence.
constexpr Consumer kTakes[] = {{.takes = {.dtypes = kDepths,
                                          .devices = kOnHost,
                                          .min_rank = 1,
                                          .max_rank = 32,
                                          .strides = stride_rule::pitched,
                                          .read_only = true},
                                .enter = "numpy",
                                .note = kNote},
                               {.takes = {.dtypes = kDepths,
                                          .devices = kOnCuda,
                                          .min_rank = 2,
                                          .max_rank = 3,
                                          .strides = stride_rule::pitched,
                                          .result = result_kind::copy},
                                .enter = "opencv_gpu",
                                .copies = "a GpuMat keeps no memory alive but its own",
                                .note = kNote}};
constexpr const char* kNames[] = {"cv2"};

}  // namespace

extern constinit const Framework kOpencv{
    .name = "opencv", .module = "cv2", .aliases = kNames, .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
