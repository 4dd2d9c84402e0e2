// A minimal stand-in for TensorRT's headers, for tests: the declarations that the converter uses, with the meaning that
// TensorRT's documentation gives them. Not TensorRT.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace nvinfer1 {

enum class DataType : std::int32_t {
  kFLOAT = 0,
  kHALF = 1,
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,
  kUINT8 = 5,
  kFP8 = 6,
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9,
};
enum class TensorFormat : std::int32_t { kLINEAR = 0, kCHW2 = 1, kHWC8 = 2 };
enum class TensorIOMode : std::int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };

class Dims64 {
 public:
  static constexpr std::int32_t MAX_DIMS = 8;
  std::int32_t nbDims;
  std::int64_t d[MAX_DIMS];
};
using Dims = Dims64;

class ICudaEngine {
 public:
  struct Io {
    TensorIOMode mode = TensorIOMode::kNONE;
    DataType type = DataType::kFLOAT;
    TensorFormat format = TensorFormat::kLINEAR;
  };
  std::map<std::string, Io> io;
  TensorIOMode getTensorIOMode(const char* name) const noexcept { return find(name).mode; }
  DataType getTensorDataType(const char* name) const noexcept { return find(name).type; }
  TensorFormat getTensorFormat(const char* name) const noexcept { return find(name).format; }

 private:
  Io find(const char* name) const {
    const auto at = io.find(name);
    return at == io.end() ? Io{} : at->second;
  }
};

class IExecutionContext {
 public:
  explicit IExecutionContext(const ICudaEngine& engine) : engine_(engine) {}
  std::map<std::string, void*> addresses;
  std::map<std::string, Dims> shapes;
  std::int64_t most_rows = 1 << 20;

  const ICudaEngine& getEngine() const noexcept { return engine_; }
  bool setInputShape(const char* name, const Dims& dims) noexcept {
    if (dims.nbDims > 0 && dims.d[0] > most_rows) return false;
    shapes[name] = dims;
    return true;
  }
  // The address must be a multiple of 256.
  bool setTensorAddress(const char* name, void* data) noexcept {
    if (reinterpret_cast<std::uintptr_t>(data) % 256 != 0) return false;
    addresses[name] = data;
    return true;
  }

 private:
  const ICudaEngine& engine_;
};

}  // namespace nvinfer1
