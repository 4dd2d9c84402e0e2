// The driver's own stream-ordered pool as a memory resource of arrays.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "ndarray/runtime/driver.h"
#include "ndarray/runtime/storage.h"

namespace dlbridge::nd {

// cuMemAllocAsync from a memory pool of the driver's, which caches and orders by itself. Not inside a graph capture.
class AsyncPool final : public MemoryResource {
 public:
  // caches: a pool of our own that keeps what is freed; else the device's default pool, which gives everything back
  // when a stream is synchronised. Where the device has no such pools, that is cuMemAlloc and cuMemFree.
  explicit AsyncPool(bool caches) noexcept : caches_(caches) {}

  Status allocate(Storage& storage) override;
  void release(Storage& storage) noexcept override;

  Status used_bytes(int device, std::size_t& out);
  Status total_bytes(int device, std::size_t& out);
  Status free_all_blocks(int device);  // what no pending work uses goes back to the driver. Blocks

 private:
  Status pool_of(int device, CUmemoryPool& out);
  Status read(int device, int attribute, std::size_t& out);
  CUresult allocate_once(int device, Storage& storage, CUmemoryPool pool) noexcept;
  void free_behind(int device, void* data, CUstream stream) noexcept;
  void release_late(int device) noexcept;

  const bool caches_;
  std::mutex mutex_;
  std::array<std::atomic<CUmemoryPool>, cuda::kMaxDevices> pools_{};
  std::vector<std::pair<int, void*>> late_;  // released inside a capture; freed by the next call outside
};

AsyncPool& uncached_pool() noexcept;  // what set_allocator(None) chooses

}  // namespace dlbridge::nd
