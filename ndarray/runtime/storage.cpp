#include "ndarray/runtime/storage.h"

#include <array>
#include <new>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "ndarray/runtime/caching_pool.h"
#include "ndarray/runtime/host_pool.h"
#include "ndarray/runtime/storage_list.h"

namespace dlbridge::nd {

namespace {

// Slot 0 is the host's, slot 1 + i CUDA device i's.
constexpr std::size_t kSlots = 1 + static_cast<std::size_t>(cuda::kMaxDevices);
std::array<std::atomic<MemoryResource*>, kSlots> resources{};
thread_local std::array<MemoryResource*, kSlots> thread_resources{};
std::atomic<bool> any_thread_resources{false};  // once there was one: a thread's own variables cost a call to look at

std::size_t slot_of(DLDevice device) noexcept {
  return is_cuda(device) ? 1 + static_cast<std::size_t>(device.device_id) : 0;
}

void release_memory(Storage* storage) noexcept {
  if (storage->resource != nullptr && storage->bytes != 0) storage->resource->release(*storage);
}

[[gnu::cold, gnu::noinline]] MemoryResource& make_resource(DLDevice device) {
  MemoryResource* made = is_cuda(device) ? static_cast<MemoryResource*>(&default_pool()) : &host_pool();
  MemoryResource* expected = nullptr;
  resources[slot_of(device)].compare_exchange_strong(expected, made, std::memory_order_acq_rel);
  return *made;
}

[[gnu::noinline]] MemoryResource* thread_resource(std::size_t slot) noexcept { return thread_resources[slot]; }

}  // namespace

MemoryResource& current_resource(DLDevice device) {
  const std::size_t slot = slot_of(device);
  if (any_thread_resources.load(std::memory_order_relaxed)) [[unlikely]]
    if (MemoryResource* own = thread_resource(slot); own != nullptr) return *own;
  if (MemoryResource* set = resources[slot].load(std::memory_order_acquire); set != nullptr) [[likely]]
    return *set;
  return make_resource(device);
}

void set_resource(DLDevice device, MemoryResource* resource) noexcept {
  resources[slot_of(device)].store(resource, std::memory_order_release);
}

MemoryResource* set_thread_resource(DLDevice device, MemoryResource* resource) noexcept {
  if (resource != nullptr) any_thread_resources.store(true, std::memory_order_relaxed);
  return std::exchange(thread_resources[slot_of(device)], resource);
}

Status allocate_storage(MemoryResource& resource, DLDevice device, std::size_t bytes, StreamHandle stream,
                        Storage*& out) {
  Storage* storage = new_storage();
  if (storage == nullptr) return {ErrorCode::kOutOfMemory, "no memory for the bookkeeping of an array"};
  storage->stream.store(stream);
  storage->device = device;
  storage->bytes = bytes;
  storage->resource = &resource;
  if (bytes != 0)
    if (Status status = resource.allocate(*storage); !status.ok()) [[unlikely]] {
      free_storage(storage);
      return status;
    }
  out = storage;
  return {};
}

Status allocate_storage(DLDevice device, std::size_t bytes, StreamHandle stream, Storage*& out) {
  return allocate_storage(current_resource(device), device, bytes, stream, out);
}

Storage* adopt_storage(DLDevice device, void* data, std::size_t bytes, StreamHandle stream, Owner&& owner) {
  Storage* storage = new_storage();
  if (storage == nullptr) return nullptr;
  storage->stream.store(stream);
  storage->device = device;
  storage->data = data;
  storage->bytes = bytes;
  storage->foreign = std::move(owner);
  return storage;
}

void release(Storage* storage) noexcept {
  if (storage->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  release_memory(storage);
  free_storage(storage);
}

void release_storage_owner(void* storage) noexcept { release(static_cast<Storage*>(storage)); }

Status acquire_slowly(Storage& storage, StreamHandle stream) {
  if (const StreamHandle before = storage.stream; before != 0) {
    cuda::detail::Capture capture = cuda::detail::Capture::kNone;
    DLBRIDGE_TRY(cuda::detail::capture_state(stream, capture));
    if (capture == cuda::detail::Capture::kNone)
      DLBRIDGE_TRY(cuda::order(stream, Ordering::on_stream(before), storage.device.device_id));
  }
  storage.stream.store(stream);
  return {};
}

}  // namespace dlbridge::nd
