#include "ndarray/runtime/upstream.h"

#include "dlbridge/device_memory.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

CUresult allocate_upstream(MemoryKind kind, int device, std::size_t bytes, void*& out) noexcept {
  CUcontext context = nullptr;
  if (!cuda::primary_context(device, context).ok()) return cuda::kInvalidContext;
  cuda::DeviceGuard guard;
  if (!guard.enter_context(context).ok()) return cuda::kInvalidContext;
  const cuda::detail::RelaxedCapture relaxed;
  CUdeviceptr address = 0;
  CUresult result;
  switch (kind) {
    case MemoryKind::kPinned: return driver().mem_host_alloc(&out, bytes, kHostAllocPortable);
    case MemoryKind::kManaged: result = driver().mem_alloc_managed(&address, bytes, kMemAttachGlobal); break;
    default: result = cuda::functions().mem_alloc(&address, bytes);
  }
  out = reinterpret_cast<void*>(address);
  return result;
}

void free_upstream(MemoryKind kind, int device, void* data) noexcept {
  CUcontext context = nullptr;
  if (!is_running() || !cuda::primary_context(device, context).ok()) return;
  cuda::DeviceGuard guard;
  if (!guard.enter_context(context).ok()) return;
  const cuda::detail::RelaxedCapture relaxed;
  if (kind == MemoryKind::kPinned) {
    // The driver frees pinned memory without a look at the work that still copies from it.
    static_cast<void>(driver().ctx_synchronize());
    static_cast<void>(driver().mem_free_host(data));
  } else {
    static_cast<void>(cuda::functions().mem_free(reinterpret_cast<CUdeviceptr>(data)));
  }
}

const char* upstream_function(MemoryKind kind) noexcept {
  constexpr const char* kNames[] = {"cuMemAlloc", "cuMemAllocManaged", "cuMemHostAlloc"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace dlbridge::nd
