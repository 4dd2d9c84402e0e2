#include "ndarray/runtime/caching_pool.h"

#include <memory>
#include <vector>

#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {

struct PoolRegistry {
  std::mutex mutex;
  std::vector<DevicePool*> pools[cuda::kMaxDevices];
};
PoolRegistry& pool_registry() noexcept {
  static auto* made = new PoolRegistry;  // immortal, as the pools are
  return *made;
}

}  // namespace

DevicePool& CachingPool::make(int device) {
  const std::lock_guard lock(mutex_);
  std::atomic<DevicePool*>& slot = pools_[static_cast<std::size_t>(device)];
  if (DevicePool* made = slot.load(std::memory_order_acquire)) return *made;
  auto pool = std::make_unique<DevicePool>(kind_, device);
  PoolRegistry& registry = pool_registry();
  const std::lock_guard registry_lock(registry.mutex);
  registry.pools[device].push_back(pool.get());
  slot.store(pool.get(), std::memory_order_release);
  return *pool.release();
}

void forget_capture(int device, std::uint64_t capture, StreamHandle stream) noexcept {
  if (!is_running()) return;
  std::vector<DevicePool*> pools;
  try {
    const std::lock_guard lock(pool_registry().mutex);
    pools = pool_registry().pools[device];
  } catch (...) {
    return;  // out of memory: the graph's blocks stay reserved
  }
  for (DevicePool* pool : pools) pool->forget_capture(capture, stream);
}

CachingPool& default_pool() noexcept {
  static auto* pool = new CachingPool(MemoryKind::kDevice);
  return *pool;
}

CachingPool& default_pinned_pool() noexcept {
  static auto* pool = new CachingPool(MemoryKind::kPinned);
  return *pool;
}

}  // namespace dlbridge::nd
