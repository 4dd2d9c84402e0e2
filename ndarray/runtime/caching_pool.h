// The caching pool as a memory resource of arrays, over device, managed or pinned memory: a DevicePool for each device.
// Memory that an array gives back goes through release() to DevicePool::release(); device_pool_arenas.cpp says when
// another stream, or the driver, gets it.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "ndarray/runtime/device_pool.h"
#include "ndarray/runtime/storage.h"

namespace dlbridge::nd {

// One DevicePool a device, made on first use. A resource lives until the end of the process: storages name it.
class CachingPool final : public MemoryResource {
 public:
  explicit CachingPool(MemoryKind kind) noexcept : kind_(kind) {}

  Status allocate(Storage& storage) override {
    DevicePool* pool = pools_[static_cast<std::size_t>(storage.device.device_id)].load(std::memory_order_acquire);
    if (pool == nullptr) [[unlikely]]
      pool = &make(storage.device.device_id);
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
  // The last who could ask for the pool's cache is gone; arrays may name the pool forever.
  void retire() {
    for (std::atomic<DevicePool*>& slot : pools_)
      if (DevicePool* pool = slot.load(std::memory_order_acquire)) pool->retire();
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

}  // namespace dlbridge::nd
