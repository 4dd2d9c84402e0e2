// What the device tests of reductions, scans and sorts share: device memory, a workspace, and timing.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "ndarray/kernels/functions.h"

#define REQUIRE_CUDA(call)                                                                            \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(2);                                                                                   \
    }                                                                                                 \
  } while (false)

namespace dlbridge::nd::rows_check {

inline int failures = 0;
inline long checks = 0;

// `--small`: every fifth check, and none of more than a megabyte of input; for compute-sanitizer, under which a kernel
// takes a hundred times as long.
inline bool small = false;
inline bool is_skipped(std::size_t bytes) {
  static long asked = 0;
  return small && (asked++ % 5 != 0 || bytes > (std::size_t{1} << 20));
}
inline bool has_option(int argc, char** argv, const char* option) {
  return std::any_of(argv + 1, argv + argc, [option](const char* given) { return std::strcmp(given, option) == 0; });
}

inline void fail(const char* what) {
  std::printf("FAIL %s\n", what);
  if (++failures >= 40) std::exit(1);
}

class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    REQUIRE_CUDA(cudaMalloc(&memory_, bytes == 0 ? 1 : bytes));
  }
  ~DeviceBuffer() { cudaFree(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* get() const { return memory_; }
  void upload(const void* from) { REQUIRE_CUDA(cudaMemcpy(memory_, from, bytes_, cudaMemcpyHostToDevice)); }
  void download(void* to) const { REQUIRE_CUDA(cudaMemcpy(to, memory_, bytes_, cudaMemcpyDeviceToHost)); }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

// One block of memory, filled with junk, handed out piece by piece until reset().
class Arena {
 public:
  explicit Arena(std::size_t bytes) : memory_(bytes), bytes_(bytes) {
    REQUIRE_CUDA(cudaMemset(memory_.get(), 0xa5, bytes));
  }
  Workspace workspace() { return {&Arena::allocate, this}; }
  void reset() { used_ = 0; }

 private:
  static void* allocate(void* context, std::size_t bytes) {
    Arena& self = *static_cast<Arena*>(context);
    const std::size_t rounded = (bytes + 255) / 256 * 256;
    if (self.used_ + rounded > self.bytes_) return nullptr;
    void* const p = static_cast<char*>(self.memory_.get()) + self.used_;
    self.used_ += rounded;
    return p;
  }
  DeviceBuffer memory_;
  std::size_t bytes_;
  std::size_t used_ = 0;
};

// Milliseconds of one call, the median of 21 after two to warm up.
inline double time_ms(Arena& arena, const std::function<int()>& call) {
  cudaEvent_t begin, end;
  REQUIRE_CUDA(cudaEventCreate(&begin));
  REQUIRE_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 23; ++i) {
    arena.reset();
    REQUIRE_CUDA(cudaEventRecord(begin));
    const int status = call();
    REQUIRE_CUDA(cudaEventRecord(end));
    REQUIRE_CUDA(cudaEventSynchronize(end));
    if (status != 0) {
      std::printf("status %d (%s)\n", status, cuda_kernels::error_text(status));
      return 0;
    }
    float ms = 0;
    REQUIRE_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms);
  }
  REQUIRE_CUDA(cudaEventDestroy(begin));
  REQUIRE_CUDA(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

inline void report(const char* row, double bytes, double ms) {
  std::printf("%-52s %9.4f ms %8.0f GB/s\n", row, ms, ms > 0 ? bytes / ms / 1e6 : 0);
}

}  // namespace dlbridge::nd::rows_check
