// The memory resources of the ndarray on CUDA: the caching pool, over device, managed or pinned memory, and the
// driver's own stream-ordered pool.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ndarray/core/storage.h"
#include "ndarray/runtime/device_pool.h"

namespace dlbridge::nd {

// One DevicePool a device, made on first use. A resource lives until the end of the process: storages name it.
class CachingPool final : public MemoryResource {
 public:
  explicit CachingPool(MemoryKind kind) noexcept : kind_(kind) {}

  Status allocate(Storage& storage) override {
    DevicePool* pool = pools_[static_cast<std::size_t>(storage.device.device_id)].load(std::memory_order_acquire);
    if (pool == nullptr) [[unlikely]] pool = &make(storage.device.device_id);
    return pool->allocate(storage);
  }
  void release(Storage& storage) noexcept override {
    pools_[static_cast<std::size_t>(storage.device.device_id)].load(std::memory_order_acquire)->release(storage);
  }

  MemoryKind kind() const noexcept { return kind_; }
  // `device` is one of the driver's.
  DevicePool& on(int device) {
    DevicePool* pool = pools_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
    return pool != nullptr ? *pool : make(device);
  }

 private:
  DevicePool& make(int device);

  const MemoryKind kind_;
  std::mutex mutex_;
  std::array<std::atomic<DevicePool*>, cuda::kMaxDevices> pools_{};
};

CachingPool& default_pool() noexcept;         // device memory; what arrays use where nobody chose
CachingPool& default_pinned_pool() noexcept;  // page-locked host memory: kDLCUDAHost

// Tells every caching pool that the graph of this capture is gone (DevicePool::forget_capture).
void forget_capture(int device, std::uint64_t capture, StreamHandle stream) noexcept;

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
