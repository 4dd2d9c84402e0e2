// The few declarations of ONNX Runtime's C++ API that the converter uses, over the real library: the PyPI wheel ships
// libonnxruntime without headers. Functions are taken by their place in the OrtApi table, which is ABI and only grows.
// Where the real header is installed, CMake uses that instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
};
enum OrtAllocatorType { OrtInvalidAllocator = -1, OrtDeviceAllocator = 0, OrtArenaAllocator = 1 };
enum OrtMemType { OrtMemTypeCPUInput = -2, OrtMemTypeCPUOutput = -1, OrtMemTypeDefault = 0 };

struct OrtStatus;
struct OrtValue;
struct OrtMemoryInfo;
struct OrtAllocator;
struct OrtTensorTypeAndShapeInfo;
struct OrtApiBase {
  void* const* (*get_api)(std::uint32_t version);
  const char* (*get_version)();
};
extern "C" const OrtApiBase* OrtGetApiBase();

namespace Ort {

class Exception : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace slot {
enum : std::size_t {
  kGetErrorMessage = 2,
  kCreateTensor = 48,
  kCreateTensorWithData = 49,
  kIsTensor = 50,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kCreateMemoryInfo = 68,
  kMemoryInfoGetName = 71,
  kMemoryInfoGetId = 72,
  kGetAllocator = 78,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseValue = 96,
  kReleaseTypeAndShape = 99,
  kGetTensorMemoryInfo = 194,
};
}
template <class Result, class... Args>
Result invoke(std::size_t place, Args... args) {
  static void* const* const table = OrtGetApiBase()->get_api(13);  // the oldest version with every function used
  return reinterpret_cast<Result (*)(Args...)>(table[place])(args...);
}
template <class... Args>
void call(std::size_t place, Args... args) {
  OrtStatus* status = invoke<OrtStatus*>(place, args...);
  if (status == nullptr) return;
  const std::string message = invoke<const char*>(slot::kGetErrorMessage, static_cast<const OrtStatus*>(status));
  invoke<void>(slot::kReleaseStatus, status);
  throw Exception(message);
}

template <class T, std::size_t release>
class Handle {
 public:
  explicit Handle(T* p = nullptr) noexcept : p_(p) {}
  Handle(Handle&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Handle() {
    if (p_ != nullptr) invoke<void>(release, p_);
  }
  operator T*() const noexcept { return p_; }

 protected:
  T* p_;
};

class ConstMemoryInfo {
 public:
  explicit ConstMemoryInfo(const OrtMemoryInfo* p) : p_(p) {}
  std::string GetAllocatorName() const {
    const char* name = nullptr;
    call(slot::kMemoryInfoGetName, p_, &name);
    return name;
  }
  int GetDeviceId() const {
    int id = 0;
    call(slot::kMemoryInfoGetId, p_, &id);
    return id;
  }

 private:
  const OrtMemoryInfo* p_;
};

class MemoryInfo : public Handle<OrtMemoryInfo, slot::kReleaseMemoryInfo> {
 public:
  MemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType memory) {
    call(slot::kCreateMemoryInfo, name, type, id, memory, &p_);
  }
};

class TensorTypeAndShapeInfo : public Handle<OrtTensorTypeAndShapeInfo, slot::kReleaseTypeAndShape> {
 public:
  using Handle::Handle;
  ONNXTensorElementDataType GetElementType() const {
    ONNXTensorElementDataType type{};
    call(slot::kGetTensorElementType, static_cast<const OrtTensorTypeAndShapeInfo*>(p_), &type);
    return type;
  }
  std::vector<std::int64_t> GetShape() const {
    std::size_t rank = 0;
    call(slot::kGetDimensionsCount, static_cast<const OrtTensorTypeAndShapeInfo*>(p_), &rank);
    std::vector<std::int64_t> shape(rank);
    call(slot::kGetDimensions, static_cast<const OrtTensorTypeAndShapeInfo*>(p_), shape.data(), rank);
    return shape;
  }
};

class Value : public Handle<OrtValue, slot::kReleaseValue> {
 public:
  explicit Value(std::nullptr_t) {}
  static Value CreateTensor(const OrtMemoryInfo* memory, void* data, std::size_t bytes, const std::int64_t* shape,
                            std::size_t rank, ONNXTensorElementDataType type) {
    Value out(nullptr);
    call(slot::kCreateTensorWithData, memory, data, bytes, shape, rank, type, &out.p_);
    return out;
  }
  static Value CreateTensor(OrtAllocator* allocator, const std::int64_t* shape, std::size_t rank,
                            ONNXTensorElementDataType type) {
    Value out(nullptr);
    call(slot::kCreateTensor, allocator, shape, rank, type, &out.p_);
    return out;
  }
  bool IsTensor() const {
    int yes = 0;
    call(slot::kIsTensor, static_cast<const OrtValue*>(p_), &yes);
    return yes != 0;
  }
  void* GetTensorMutableRawData() {
    void* data = nullptr;
    call(slot::kGetTensorMutableData, p_, &data);
    return data;
  }
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const {
    OrtTensorTypeAndShapeInfo* out = nullptr;
    call(slot::kGetTensorTypeAndShape, static_cast<const OrtValue*>(p_), &out);
    return TensorTypeAndShapeInfo(out);
  }
  ConstMemoryInfo GetTensorMemoryInfo() const {
    const OrtMemoryInfo* out = nullptr;
    call(slot::kGetTensorMemoryInfo, static_cast<const OrtValue*>(p_), &out);
    return ConstMemoryInfo(out);
  }
};

class AllocatorWithDefaultOptions {
 public:
  AllocatorWithDefaultOptions() { call(slot::kGetAllocator, &p_); }
  operator OrtAllocator*() const noexcept { return p_; }

 private:
  OrtAllocator* p_ = nullptr;
};

}  // namespace Ort
