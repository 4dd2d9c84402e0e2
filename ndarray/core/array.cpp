#include "ndarray/core/array.h"

#include <algorithm>
#include <limits>
#include <string>

#include "dlbridge/cuda_order.h"

namespace dlbridge::nd {

namespace {

// One blocking stream a thread and device: what CUDA's per-thread default stream is, with a number of its own.
[[gnu::cold, gnu::noinline]] StreamHandle thread_stream(int device) {
  thread_local std::array<StreamHandle, cuda::kMaxDevices> streams{};
  StreamHandle& slot = streams[static_cast<std::size_t>(device)];
  if (slot == 0) {
    cuda::DeviceGuard guard;
    cuda::CUstream made = nullptr;
    if (!guard.enter(device).ok() || cuda::functions().stream_create(&made, 0) != cuda::kSuccess) return kLegacyStream;
    slot = reinterpret_cast<StreamHandle>(made);  // never destroyed: storages of longer-lived arrays name it
  }
  return slot;
}

Status fill_layout(Tensor& out, DType dtype, Dims shape, std::int64_t size) {
  out.reserve_dims(static_cast<std::int32_t>(shape.size()));
  std::copy(shape.begin(), shape.end(), out.dl.shape);
  out.set_dtype(dlbridge::info(dtype));
  out.size = size;
  return {};
}

Status attach_storage(Tensor& out, DLDevice device) {
  Storage* storage = nullptr;
  const StreamHandle stream = work_stream(device);
  DLBRIDGE_TRY(allocate_storage(device, static_cast<std::size_t>(out.size * out.itemsize()), stream, storage));
  out.owner = Owner(storage, release_storage_owner);
  out.dl.data = storage->data;
  out.dl.device = storage->device;
  out.flags = kFlagCopied;  // the memory is this array's own; make_view() takes the flag away
  if (stream != 0) out.ready = Ordering::on_stream_of(&storage->stream);
  return {};
}

}  // namespace

StreamHandle work_stream(DLDevice device) {
  if (!is_cuda(device)) return 0;
  const StreamHandle stream = cuda::current_stream(device.device_id);
  return stream == kPerThreadStream ? thread_stream(device.device_id) : stream;
}

Status check_ndim(Dims shape) {
  if (shape.size() <= static_cast<std::size_t>(kMaxDims)) return {};
  return malformed("the shape has " + std::to_string(shape.size()) + " dimensions; at most 64 are possible");
}

Status count_elements(Dims shape, std::int64_t itemsize, std::int64_t& size) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      return malformed("the shape " + shape_text(shape) + " has a negative extent; extents are 0 or more");
    if (extent == 0) empty = true;
    else if (__builtin_mul_overflow(count, extent, &count))
      return overflow("the shape " + shape_text(shape) + " has more elements than fit in 63 bits");
  }
  std::int64_t bytes;
  if (__builtin_mul_overflow(count, itemsize, &bytes))
    return overflow("an array of shape " + shape_text(shape) + " has more bytes than fit in 63 bits");
  size = empty ? 0 : count;
  return {};
}

Status make_array(Tensor& out, DType dtype, Dims shape, DLDevice device, Order order) {
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, itemsize(dtype), size));
  DLBRIDGE_TRY(fill_layout(out, dtype, shape, size));
  dense_strides(shape, 1, out.dl.strides, order);
  return attach_storage(out, device);
}

Status make_array_as(Tensor& out, DType dtype, Dims shape, std::span<const std::int8_t> axes, DLDevice device) {
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, itemsize(dtype), size));
  DLBRIDGE_TRY(fill_layout(out, dtype, shape, size));
  dense_strides(shape, 1, out.dl.strides, [&](std::size_t k) { return axes[k]; });
  return attach_storage(out, device);
}

Status make_view(const Tensor& source, Dims shape, Dims strides, std::int64_t offset_elements, Tensor& out) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::uint64_t count = 1;  // wraps around where another extent is 0, and is 0 then
  for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
  const auto size = static_cast<std::int64_t>(count);
  DLBRIDGE_TRY(fill_layout(out, dtype_of(source), shape, size));
  std::copy(strides.begin(), strides.end(), out.dl.strides);
  out.dl.device = source.dl.device;
  out.flags = source.flags & ~kFlagCopied;
  out.ready = source.ready;
  if (size != 0) out.dl.data = static_cast<char*>(source.dl.data) + offset_elements * source.itemsize();
  if (Storage* storage = storage_of(source); storage != nullptr) out.owner = share(storage);
  return {};
}

ByteRange byte_range(const Tensor& t) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(t.dl.data);
  const ElementSpan span = element_span(t.dl);
  const std::int64_t item = t.itemsize();
  return {base + static_cast<std::uintptr_t>(span.low * item), base + static_cast<std::uintptr_t>(span.high * item)};
}

bool may_overlap(const Tensor& a, const Tensor& b) noexcept {
  const ByteRange x = byte_range(a), y = byte_range(b);
  return x.first < y.last && y.first < x.last;
}

bool is_loadable(const Tensor& t) noexcept {
  return !is_cuda(t.dl.device) ||
         reinterpret_cast<std::uintptr_t>(t.dl.data) % static_cast<std::uintptr_t>(t.itemsize()) == 0;
}

bool same_elements(const Tensor& a, const Tensor& b) noexcept {
  if (a.dl.data != b.dl.data || a.dl.ndim != b.dl.ndim || a.itemsize() != b.itemsize()) return false;
  for (int k = 0; k < a.dl.ndim; ++k)
    if (a.dl.shape[k] != b.dl.shape[k] || (a.dl.shape[k] > 1 && a.dl.strides[k] != b.dl.strides[k])) return false;
  return true;
}

std::string describe(const Tensor& t) {
  return std::string(t.dtype().name) + " " + shape_text(shape_of(t)) + " on " + device_name(t.dl.device);
}

}  // namespace dlbridge::nd
