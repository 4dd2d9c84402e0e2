// What the programs of this folder share: checks, memory on the device, a workspace, timing.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ndarray/kernels/api.h"

#define CUDA_OK(call)                                                                              \
  do {                                                                                             \
    const cudaError_t cuda_ok_code = (call);                                                       \
    if (cuda_ok_code != cudaSuccess) {                                                             \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cuda_ok_code)); \
      std::exit(2);                                                                                \
    }                                                                                              \
  } while (false)

// DEVICE_CHECK(condition[, detail]): counts and names a failure; the value is the condition's.
#define DEVICE_CHECK(...) ::dlbridge::nd::testing::check(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__)

namespace dlbridge::nd::testing {

inline int failures = 0;

inline bool check(const char* file, int line, const char* what, bool holds, const std::string& detail = {}) {
  if (!holds && ++failures < 30) std::printf("%s:%d: %s: %s\n", file, line, what, detail.c_str());
  return holds;
}

using Bytes = std::vector<unsigned char>;

inline Bytes random_bytes(std::mt19937& random, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count));
  for (auto& b : out) b = static_cast<unsigned char>(random());
  return out;
}

// Memory on the device, `offset` bytes behind an aligned address.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size, std::size_t offset = 0) : size_(size), offset_(offset) {
    CUDA_OK(cudaMalloc(&memory_, size + offset + 1));
  }
  DeviceBytes(const void* from, std::size_t size, std::size_t offset = 0) : DeviceBytes(size, offset) {
    if (size > 0) CUDA_OK(cudaMemcpy(data(), from, size, cudaMemcpyHostToDevice));
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(memory_); }

  unsigned char* data() const { return memory_ + offset_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  Bytes get() const {  // waits for all work
    Bytes bytes(size_);
    CUDA_OK(cudaDeviceSynchronize());
    if (size_ > 0) CUDA_OK(cudaMemcpy(bytes.data(), data(), size_, cudaMemcpyDeviceToHost));
    return bytes;
  }

 private:
  unsigned char* memory_ = nullptr;
  std::size_t size_, offset_;
};

// Scratch memory that get() makes available anew: what was allocated before serves again, in order of the one stream.
class DeviceWorkspace {
 public:
  DeviceWorkspace() = default;
  DeviceWorkspace(const DeviceWorkspace&) = delete;
  DeviceWorkspace& operator=(const DeviceWorkspace&) = delete;
  ~DeviceWorkspace() {
    for (const Piece& piece : pieces_) cudaFree(piece.memory);
  }
  Workspace get() {
    next_ = 0;
    return {[](void* context, std::size_t bytes) { return static_cast<DeviceWorkspace*>(context)->allocate(bytes); },
            this};
  }

 private:
  struct Piece {
    void* memory;
    std::size_t bytes;
  };
  void* allocate(std::size_t bytes) {
    if (next_ == pieces_.size()) pieces_.push_back({nullptr, 0});
    Piece& piece = pieces_[next_++];
    if (piece.bytes < bytes || piece.memory == nullptr) {
      CUDA_OK(cudaFree(piece.memory));  // waits for its last use
      piece.bytes = std::max<std::size_t>(bytes, 1);
      CUDA_OK(cudaMalloc(&piece.memory, piece.bytes));
    }
    return piece.memory;
  }
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;
};

// The median of 21 runs after two that warm up.
template <class F>
double milliseconds(F&& f) {
  cudaEvent_t begin, end;
  CUDA_OK(cudaEventCreate(&begin));
  CUDA_OK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 23; ++i) {
    CUDA_OK(cudaEventRecord(begin, cudaStreamLegacy));
    f();
    CUDA_OK(cudaEventRecord(end, cudaStreamLegacy));
    CUDA_OK(cudaEventSynchronize(end));
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms);
  }
  CUDA_OK(cudaEventDestroy(begin));
  CUDA_OK(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <class F>
void bench(const char* name, double bytes, F&& f) {
  const double ms = milliseconds(f);
  std::printf("%-44s %9.3f ms %8.0f GB/s\n", name, ms, bytes / ms * 1e-6);
}

inline bool has_option(int argc, char** argv, const char* option) {
  return std::any_of(argv + 1, argv + argc, [option](const char* given) { return std::strcmp(given, option) == 0; });
}

// The program's exit status; waits for all work first, so that its errors count.
inline int report() {
  CUDA_OK(cudaDeviceSynchronize());
  if (failures == 0) std::printf("all equal\n");
  else std::printf("%d differences\n", failures);
  return failures != 0;
}

}  // namespace dlbridge::nd::testing
