// DLPack structs <-> the descriptor, without Python.
#pragma once

#include <string>
#include <utility>

#include "dlbridge/dlpack.h"
#include "dlbridge/errors.h"
#include "dlbridge/tensor.h"
#include "dlbridge/thread_exit.h"
#include "dlbridge/validate.h"

namespace dlbridge {

// Reads a DLTensor that somebody else keeps alive: fills everything of `out` but the owner and the ordering token.
// `source` is not modified. byte_offset is folded into data where the device has plain addresses.
inline Status decode_dltensor(const DLTensor& source, std::uint64_t flags, Tensor& out) {
  const DTypeInfo* dtype = find_dtype(source.dtype);
  if (dtype == nullptr) [[unlikely]]
    return refused("dtype " + dtype_name(source.dtype) +
                   " is not one that dlbridge knows (DLPack 1.3 with lanes=1). "
                   "View or cast the array to a plain dtype first");
  const DeviceTypeInfo* device = find_device_type(source.device.device_type);
  if (device == nullptr) [[unlikely]]
    return refused("device type " + std::to_string(source.device.device_type) +
                   " is not one of DLPack 1.3's. Copy the array to a known device first");
  if (source.ndim > 0 && source.ndim <= kMaxDims && source.shape == nullptr) [[unlikely]]
    return malformed("shape is null with ndim " + std::to_string(source.ndim) +
                     "; only a 0-d tensor may have no shape. The producer's struct is damaged");
  out.set_dtype(*dtype);
  out.dl.device = source.device;
  out.dl.data = source.data;
  out.dl.byte_offset = source.byte_offset;
  out.flags = flags & (is_subbyte(source.dtype) ? kKnownFlags : kKnownFlags & ~kFlagPadded);
  if (is_host(source.device)) out.dl.device.device_id = 0;  // DLPack: CPU and pinned memory have device_id 0
  DLBRIDGE_TRY(build_layout<StrideUnit::kElements>(out, source.ndim, source.shape, source.strides));
  if (source.byte_offset != 0 && device->direct_address) {
    std::uintptr_t address;
    if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(source.data), source.byte_offset, &address))
      return overflow("byte_offset " + std::to_string(source.byte_offset) +
                      " leaves the address space. The producer's struct is damaged");
    out.dl.data = out.size == 0 ? nullptr : reinterpret_cast<void*>(address);
    out.dl.byte_offset = 0;
  }
  return {};
}

namespace detail {
template <class Managed>
void release_managed(void* context) noexcept {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter != nullptr)  // DLPack: the deleter may be NULL
    outlive_thread_exit([managed] { managed->deleter(managed); });
}
}  // namespace detail

// Takes the managed tensor, always: on failure its deleter has run when this returns.
inline Status import_managed(DLManagedTensor* managed, Tensor& out) {
  Owner owner(managed, detail::release_managed<DLManagedTensor>);
  DLBRIDGE_TRY(decode_dltensor(managed->dl_tensor, 0, out));
  out.owner = std::move(owner);
  return {};
}

inline Status import_managed(DLManagedTensorVersioned* managed, Tensor& out) {
  Owner owner(managed, detail::release_managed<DLManagedTensorVersioned>);
  // DLPack 1.1: on a major mismatch the consumer must call the deleter, and read no field after `flags`.
  if (managed->version.major != kDLPackVersion.major)
    return refused("the producer's DLPack version is " + std::to_string(managed->version.major) + "." +
                   std::to_string(managed->version.minor) + ", dlbridge speaks " +
                   std::to_string(kDLPackVersion.major) + "." + std::to_string(kDLPackVersion.minor) +
                   "; a different major version has another layout. Ask the producer for max_version=(1, 3)");
  DLBRIDGE_TRY(decode_dltensor(managed->dl_tensor, managed->flags, out));
  out.owner = std::move(owner);
  return {};
}

namespace detail {
// One allocation holds the struct that travels and the tensor that it describes.
template <class Managed>
struct Holder {
  Managed managed;
  Tensor tensor;
  static void destroy(Managed* self) { delete static_cast<Holder*>(self->manager_ctx); }
};

template <class Managed>
Managed* hold(Tensor&& tensor) {
  auto* holder = new Holder<Managed>{{}, std::move(tensor)};
  holder->managed.dl_tensor = holder->tensor.dl;
  holder->managed.manager_ctx = holder;
  holder->managed.deleter = &Holder<Managed>::destroy;
  return &holder->managed;
}
}  // namespace detail

// Gives the tensor away as a managed struct; the receiver calls its deleter once. Throws std::bad_alloc, and then
// the tensor is still the caller's.
inline DLManagedTensorVersioned* export_managed(Tensor&& tensor) {
  const std::uint64_t flags = tensor.flags;
  DLManagedTensorVersioned* managed = detail::hold<DLManagedTensorVersioned>(std::move(tensor));
  managed->version = kDLPackVersion;
  managed->flags = flags;
  return managed;
}

// The legacy struct has no flags: the caller refuses read-only and padded tensors before (DLPack; array API).
inline DLManagedTensor* export_legacy(Tensor&& tensor) { return detail::hold<DLManagedTensor>(std::move(tensor)); }

}  // namespace dlbridge
