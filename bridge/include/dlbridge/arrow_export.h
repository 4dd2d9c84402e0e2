// The descriptor -> Arrow's structs: one axis as a primitive array, more as arrow.fixed_shape_tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "dlbridge/arrow_nulls.h"
#include "dlbridge/arrow_type.h"
#include "dlbridge/cuda_order.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"

namespace dlbridge::arrow_c {

namespace detail {
// The child of a moved struct may outlive its parent, and then has nothing of it: its text is static.
inline void release_static_schema(ArrowSchema* s) noexcept { s->release = nullptr; }
inline void fill_schema(ArrowSchema& s, const char* format, const char* name) noexcept {
  s = {};
  s.format = format;
  s.name = name;
  s.release = &release_static_schema;
}

struct ListSchema {
  std::string format;
  std::string metadata;
  ArrowSchema child{};
  ArrowSchema* children[1] = {&child};

  static void release(ArrowSchema* s) noexcept {
    const std::unique_ptr<ListSchema> self(static_cast<ListSchema*>(s->private_data));
    if (self->child.release != nullptr) self->child.release(&self->child);
    s->release = nullptr;
  }
};

// What the release callbacks of an exported array free.
struct ExportedArray {
  Tensor tensor;
  const void* buffers[2] = {nullptr, nullptr};
  cuda::CUevent event = nullptr;

  ~ExportedArray() {
    if (event != nullptr) static_cast<void>(cuda::functions().event_destroy(event));
  }
  static void release(ArrowArray* a) noexcept {
    delete static_cast<ExportedArray*>(a->private_data);
    a->release = nullptr;
  }
};
struct ExportedList {
  const void* buffers[1] = {nullptr};
  ArrowArray child{};
  ArrowArray* children[1] = {&child};

  static void release(ArrowArray* a) noexcept {
    const std::unique_ptr<ExportedList> self(static_cast<ExportedList*>(a->private_data));
    if (self->child.release != nullptr) self->child.release(&self->child);
    a->release = nullptr;
  }
};

// Elements of a row; -1 where lists cannot be that long. Zero extents count.
inline std::int64_t row_size(const DLTensor& t) noexcept {
  std::int64_t size = 1;
  for (std::int32_t i = 1; i < t.ndim; ++i)
    if (__builtin_mul_overflow(size, t.shape[i], &size)) return -1;
  return size <= INT32_MAX ? size : -1;
}

inline void fill_array(ArrowArray& a, ExportedArray* kept, std::int64_t length) noexcept {
  a = {};
  a.length = length;
  a.n_buffers = 2;
  a.buffers = kept->buffers;
  a.private_data = kept;
  a.release = &ExportedArray::release;
}

// An event that happens when the tensor's data is ready.
inline Status record_event(const Tensor& t, cuda::CUevent& event) {
  const int device = t.dl.device.device_id;
  const cuda::Functions& fn = cuda::functions();
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  DLBRIDGE_TRY(cuda::check(fn.event_create(&event, cuda::kEventDisableTiming), "cuEventCreate"));
  StreamHandle relay = 0;
  DLBRIDGE_TRY(cuda::relay_stream(device, relay));
  DLBRIDGE_TRY(cuda::order(relay, t.ready, device));
  return cuda::check(fn.event_record(event, cuda::detail::as_stream(relay)), "cuEventRecord");
}
}  // namespace detail

// Whether Arrow can carry the tensor as it is; `packs`: a bool may become a bitmap of its own.
inline Status check_export(const Tensor& t, bool packs) {
  const DTypeInfo& dtype = t.dtype();
  const bool is_bool = dtype == DType::kBool;
  if (is_bool && !(packs && t.dl.ndim == 1 && is_host(t.dl.device)))
    return refused("dtype bool has a byte for each element, and Arrow's bool a bit. Ask for the packed copy of a 1-d "
                   "host tensor with a requested_schema of bool, or give the bytes as uint8");
  if (!is_bool && dtype.arrow == 0)
    return refused("dtype " + std::string(dtype.name) +
                   " has no Arrow type. Cast it, or view complex numbers as pairs of floats");
  if (t.dl.ndim == 0) return refused("a 0-d tensor has no rows, and an Arrow array has. Reshape it to (1,)");
  if (!is_c_contiguous(t.dl))
    return refused("the tensor is not dense in C order, and Arrow's arrays are. Copy it: asdlpack(x, copy=True)");
  if (detail::row_size(t.dl) < 0)
    return refused("a row has more than 2**31 - 1 elements, which a fixed-size list of Arrow cannot have. Reshape the "
                   "tensor to more rows");
  return {};
}

// For a tensor that check_export() has seen. Throws std::bad_alloc.
inline void export_schema(const Tensor& t, ArrowSchema& out) {
  const char* format = t.dtype() == DType::kBool ? "b" : format_of(t.dtype().id);
  if (t.dl.ndim == 1) return detail::fill_schema(out, format, "");
  auto kept = std::make_unique<detail::ListSchema>();
  kept->format = std::string(detail::kListFormat) + std::to_string(detail::row_size(t.dl));
  kept->metadata = tensor_metadata(t.dl.shape + 1, t.dl.ndim - 1);
  detail::fill_schema(kept->child, format, "item");
  out = {};
  out.format = kept->format.c_str();
  out.name = "";
  out.metadata = kept->metadata.c_str();
  out.n_children = 1;
  out.children = kept->children;
  out.release = &detail::ListSchema::release;
  out.private_data = kept.release();
}

// Takes the tensor; throws std::bad_alloc, and then it is still the caller's. Child arrays stand on their own: they may
// be moved out of their parent.
inline detail::ExportedArray* export_array(Tensor&& t, ArrowArray& out) {
  auto kept = std::make_unique<detail::ExportedArray>();
  auto list = t.dl.ndim > 1 ? std::make_unique<detail::ExportedList>() : nullptr;
  const std::int64_t rows = t.dl.shape[0], size = t.size;
  kept->buffers[1] = t.dl.data;
  kept->tensor = std::move(t);
  if (list == nullptr) {
    detail::fill_array(out, kept.get(), rows);
    return kept.release();
  }
  detail::fill_array(list->child, kept.get(), size);
  out = {};
  out.length = rows;
  out.n_buffers = 1;
  out.n_children = 1;
  out.buffers = list->buffers;
  out.children = list->children;
  out.release = &detail::ExportedList::release;
  out.private_data = list.release();
  return kept.release();
}

// The same with the device, and for CUDA an event of its own for whoever waits (`ordered`). The tensor is consumed also
// where it fails.
inline Status export_device_array(Tensor&& t, bool ordered, ArrowDeviceArray& out) {
  const DLDevice device = t.dl.device;
  out = {};
  out.device_id = is_host(device) ? -1 : device.device_id;
  out.device_type = static_cast<ArrowDeviceType>(device.device_type);
  detail::ExportedArray* const kept = export_array(std::move(t), out.array);
  if (!ordered || !is_cuda(device) || kept->tensor.ready.is_ready()) return {};
  Status status = detail::record_event(kept->tensor, kept->event);
  if (status.ok()) out.sync_event = &kept->event;
  else out.array.release(&out.array);
  return status;
}

// A dense bool tensor's bits, as a copy.
inline Status pack_bools(const Tensor& t, Tensor& out) {
  const std::int64_t bytes = (t.size + 7) / 8;
  DLBRIDGE_TRY(allocate_host({kDLUInt, 8, 1}, 1, &bytes, out));
  detail::pack_bits(static_cast<const std::uint8_t*>(t.dl.data), t.size, static_cast<std::uint8_t*>(out.dl.data));
  return {};
}

}  // namespace dlbridge::arrow_c
