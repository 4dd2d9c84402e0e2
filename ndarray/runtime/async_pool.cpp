#include "ndarray/runtime/async_pool.h"

#include <limits>
#include <string>

#include "dlbridge/device_memory.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/streams.h"
#include "ndarray/runtime/upstream.h"

namespace dlbridge::nd {

namespace {

// The stream that stands for the storage's: "the per-thread stream" is not the same one on the thread that frees, and
// the legacy stream is behind them all.
CUstream lasting(StreamHandle stream) noexcept {
  return cuda::detail::as_stream(stream == kPerThreadStream || stream == 0 ? kLegacyStream : stream);
}

Status create_pool(int device, CUmemoryPool& out) {
  MemPoolProps props{};
  props.allocation_type = kMemAllocationPinned;
  props.location = {kMemLocationDevice, device};
  DLBRIDGE_TRY(cuda::check(driver().mem_pool_create(&out, &props), "cuMemPoolCreate"));
  std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
  return cuda::check(driver().mem_pool_set_attribute(out, kPoolReleaseThreshold, &keep_all), "cuMemPoolSetAttribute");
}

// Unlike cuMemAlloc's, a pool's memory is open to the other devices only where its owner says so.
Status open_to_peers(CUmemoryPool pool, int device) {
  for (int peer = 0; peer < cuda::device_count(); ++peer) {
    int can = 0;
    const auto ask = cuda::functions().device_can_access_peer;
    if (peer == device || ask(&can, peer, device) != cuda::kSuccess || can == 0) continue;
    const MemAccess access{{kMemLocationDevice, peer}, kMemAccessReadWrite};
    DLBRIDGE_TRY(cuda::check(driver().mem_pool_set_access(pool, &access, 1), "cuMemPoolSetAccess"));
  }
  return {};
}

}  // namespace

Status AsyncPool::pool_of(int device, CUmemoryPool& out) {
  std::atomic<CUmemoryPool>& slot = pools_[static_cast<std::size_t>(device)];
  out = slot.load(std::memory_order_acquire);
  if (out != nullptr || !cuda::detail::has_memory_pools(device)) return {};
  const std::lock_guard lock(mutex_);
  out = slot.load(std::memory_order_acquire);
  if (out != nullptr) return {};
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  if (caches_) DLBRIDGE_TRY(create_pool(device, out));
  else DLBRIDGE_TRY(cuda::check(driver().device_get_default_mem_pool(&out, device), "cuDeviceGetDefaultMemPool"));
  DLBRIDGE_TRY(open_to_peers(out, device));
  slot.store(out, std::memory_order_release);
  return {};
}

CUresult AsyncPool::allocate_once(int device, Storage& storage, CUmemoryPool pool) noexcept {
  if (pool == nullptr) return allocate_upstream(MemoryKind::kDevice, device, storage.bytes, storage.data);
  CUdeviceptr address = 0;
  const cuda::detail::RelaxedCapture relaxed;
  const StreamHandle stream = storage.stream == 0 ? kLegacyStream : storage.stream;
  const CUresult result =
      driver().mem_alloc_from_pool_async(&address, storage.bytes, pool, cuda::detail::as_stream(stream));
  storage.data = reinterpret_cast<void*>(address);
  return result;
}

Status AsyncPool::allocate(Storage& storage) {
  DLBRIDGE_TRY(require_runtime());
  const int device = storage.device.device_id;
  if (storage.stream != 0 && capture_of(storage.stream))
    return refused("a CUDA graph is being captured, and memory of the driver's pool would belong to one launch of it. "
                   "Allocate before the capture begins, or use the default MemoryPool");
  CUmemoryPool pool = nullptr;
  DLBRIDGE_TRY(pool_of(device, pool));
  cuda::DeviceGuard guard;  // the default streams are those of the current context
  DLBRIDGE_TRY(guard.enter(device));
  release_late(device);
  CUresult result = allocate_once(device, storage, pool);
  if (result == cuda::kOutOfMemoryResult) {
    collect_garbage();
    {
      const Unlocked unlocked;  // what is freed behind pending work comes back when that is done
      if (storage.stream != 0) static_cast<void>(cuda::functions().stream_synchronize(lasting(storage.stream)));
      if (pool != nullptr) static_cast<void>(driver().mem_pool_trim_to(pool, 0));
    }
    result = allocate_once(device, storage, pool);
  }
  if (result == cuda::kOutOfMemoryResult) {
    std::size_t used = 0;
    if (!used_bytes(device, used).ok()) used = 0;
    return {ErrorCode::kOutOfMemory, std::to_string(storage.bytes) + " bytes are not available on cuda:" +
                                         std::to_string(device) + ": the driver's pool has " + std::to_string(used) +
                                         " bytes in use. Free arrays, here or in other libraries"};
  }
  return cuda::check(result, pool != nullptr ? "cuMemAllocFromPoolAsync" : "cuMemAlloc");
}

void AsyncPool::release(Storage& storage) noexcept {
  if (!is_running()) return;
  const int device = storage.device.device_id;
  CUcontext context = nullptr;
  cuda::DeviceGuard guard;
  try {
    if (!cuda::primary_context(device, context).ok() || !guard.enter_context(context).ok()) return;
    if (storage.stream != 0 && capture_of(storage.stream)) {  // a free would become part of the graph
      const std::lock_guard lock(mutex_);
      late_.emplace_back(device, storage.data);
      return;
    }
  } catch (...) {
    return;  // no memory to remember it
  }
  release_late(device);
  free_behind(device, storage.data, lasting(storage.stream));
}

// The device is current.
void AsyncPool::free_behind(int device, void* data, CUstream stream) noexcept {
  const cuda::detail::RelaxedCapture relaxed;
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  if (pools_[static_cast<std::size_t>(device)].load(std::memory_order_acquire) != nullptr)
    static_cast<void>(cuda::functions().mem_free_async(address, stream));
  else static_cast<void>(cuda::functions().mem_free(address));
}

void AsyncPool::release_late(int device) noexcept {
  if (open_captures() != 0) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(late_, [&](const std::pair<int, void*>& block) {
    if (block.first != device) return false;
    free_behind(device, block.second, lasting(kLegacyStream));
    return true;
  });
}

Status AsyncPool::read(int device, int attribute, std::size_t& out) {
  DLBRIDGE_TRY(require_runtime());
  CUmemoryPool pool = nullptr;
  DLBRIDGE_TRY(pool_of(device, pool));
  std::uint64_t value = 0;
  if (pool != nullptr)
    DLBRIDGE_TRY(cuda::check(driver().mem_pool_get_attribute(pool, attribute, &value), "cuMemPoolGetAttribute"));
  out = static_cast<std::size_t>(value);
  return {};
}

Status AsyncPool::used_bytes(int device, std::size_t& out) { return read(device, kPoolUsedCurrent, out); }
Status AsyncPool::total_bytes(int device, std::size_t& out) { return read(device, kPoolReservedCurrent, out); }

Status AsyncPool::free_all_blocks(int device) {
  DLBRIDGE_TRY(require_runtime());
  CUmemoryPool pool = nullptr;
  DLBRIDGE_TRY(pool_of(device, pool));
  if (pool == nullptr) return {};
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  const Unlocked unlocked;
  DLBRIDGE_TRY(cuda::check(driver().ctx_synchronize(), "cuCtxSynchronize"));
  return cuda::check(driver().mem_pool_trim_to(pool, 0), "cuMemPoolTrimTo");
}

AsyncPool& uncached_pool() noexcept {
  static auto* pool = new AsyncPool(false);
  return *pool;
}

}  // namespace dlbridge::nd
