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
  if (stream != 0) out.ready = Ordering::on_stream_of(&storage->stream);
  return {};
}

Status check_ndim(Dims shape) {
  if (shape.size() <= static_cast<std::size_t>(kMaxDims)) return {};
  return malformed("the shape has " + std::to_string(shape.size()) + " dimensions; at most 64 are possible");
}

}  // namespace

StreamHandle work_stream(DLDevice device) {
  if (!is_cuda(device)) return 0;
  const StreamHandle stream = cuda::current_stream(device.device_id);
  return stream == kPerThreadStream ? thread_stream(device.device_id) : stream;
}

Status count_elements(Dims shape, std::int64_t itemsize, std::int64_t& size) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      return malformed("the shape " + shape_text(shape) + " has a negative extent; extents are 0 or more");
    if (extent == 0) empty = true;
    else if (__builtin_mul_overflow(count, extent, &count)) return overflow("the shape " + shape_text(shape) +
                                                                           " has more elements than 63 bits count");
  }
  std::int64_t bytes;
  if (__builtin_mul_overflow(count, itemsize, &bytes))
    return overflow("an array of shape " + shape_text(shape) + " has more bytes than 63 bits count");
  size = empty ? 0 : count;
  return {};
}

Status make_array(Tensor& out, DType dtype, Dims shape, DLDevice device, Order order) {
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, itemsize(dtype), size));
  DLBRIDGE_TRY(fill_layout(out, dtype, shape, size));
  std::int64_t stride = 1;
  const int n = out.dl.ndim;
  for (int k = 0; k < n; ++k) {
    const int axis = order == Order::kC ? n - 1 - k : k;
    out.dl.strides[axis] = stride;
    if (const std::int64_t extent = shape[static_cast<std::size_t>(axis)]; extent > 1) stride *= extent;
  }
  return attach_storage(out, device);
}

Status make_array_as(Tensor& out, DType dtype, Dims shape, std::span<const std::int8_t> axes, DLDevice device) {
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, itemsize(dtype), size));
  DLBRIDGE_TRY(fill_layout(out, dtype, shape, size));
  std::int64_t stride = 1;
  for (const std::int8_t axis : axes) {
    out.dl.strides[axis] = stride;
    if (const std::int64_t extent = shape[static_cast<std::size_t>(axis)]; extent > 1) stride *= extent;
  }
  return attach_storage(out, device);
}

Status make_view(const Tensor& source, Dims shape, Dims strides, std::int64_t offset_elements, Tensor& out) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  DLBRIDGE_TRY(fill_layout(out, dtype_of(source), shape, size));
  std::copy(strides.begin(), strides.end(), out.dl.strides);
  out.dl.device = source.dl.device;
  out.flags = source.flags & ~kFlagCopied;
  out.ready = source.ready;
  if (size != 0) out.dl.data = static_cast<char*>(source.dl.data) + offset_elements * source.itemsize();
  if (Storage* storage = storage_of(source); storage != nullptr) out.owner = share(storage);
  return {};
}

namespace {
// NumPy's rule for a reshape without a copy: groups of old axes that multiply to groups of new ones must be mergeable.
// Both lists without the axes of extent 1, in C order (F order: reversed by the caller).
bool split_strides(Dims shape, Dims strides, Dims new_shape, std::int64_t* new_strides) {
  std::size_t old_axis = 0, new_axis = 0;
  while (old_axis < shape.size() && new_axis < new_shape.size()) {
    std::size_t old_end = old_axis + 1, new_end = new_axis + 1;
    std::int64_t old_count = shape[old_axis], new_count = new_shape[new_axis];
    while (old_count != new_count) {
      if (old_count < new_count) old_count *= shape[old_end++];
      else new_count *= new_shape[new_end++];
    }
    for (std::size_t k = old_axis; k + 1 < old_end; ++k)
      if (strides[k] != shape[k + 1] * strides[k + 1]) return false;
    new_strides[new_end - 1] = strides[old_end - 1];
    for (std::size_t k = new_end - 1; k > new_axis; --k) new_strides[k - 1] = new_strides[k] * new_shape[k];
    old_axis = old_end;
    new_axis = new_end;
  }
  return true;
}
}  // namespace

Status reshape_view(const Tensor& source, Dims shape, Order order, Tensor& out, bool& viewed) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t old_shape[kMaxDims], old_strides[kMaxDims], core_shape[kMaxDims], core_strides[kMaxDims];
  std::int64_t strides[kMaxDims];
  const std::size_t n = shape.size();
  const bool reversed = order == Order::kF;
  std::size_t kept = 0, core = 0;
  for (int k = 0; k < source.dl.ndim; ++k) {
    const int axis = reversed ? source.dl.ndim - 1 - k : k;
    if (source.dl.shape[axis] == 1) continue;
    old_shape[kept] = source.dl.shape[axis];
    old_strides[kept++] = source.dl.strides[axis];
  }
  for (std::size_t k = 0; k < n; ++k)
    if (const std::int64_t extent = shape[reversed ? n - 1 - k : k]; extent != 1) core_shape[core++] = extent;
  viewed = true;
  if (source.size == 0) {
    std::int64_t stride = 1;
    for (std::size_t k = n; k-- > 0;) {
      strides[k] = stride;
      stride *= std::max<std::int64_t>(shape[k], 1);
    }
    return make_view(source, shape, {strides, n}, 0, out);
  }
  viewed = split_strides({old_shape, kept}, {old_strides, kept}, {core_shape, core}, core_strides);
  if (!viewed) return {};
  std::int64_t next = 1;  // an axis of extent 1 gets a stride that keeps the array contiguous
  for (std::size_t k = n; k-- > 0;) {
    const std::size_t axis = reversed ? n - 1 - k : k;
    if (shape[axis] != 1) next = core_strides[--core];
    strides[axis] = next;
    next *= shape[axis];
  }
  return make_view(source, shape, {strides, n}, 0, out);
}

Status transpose_view(const Tensor& source, std::span<const std::int8_t> axes, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (std::size_t k = 0; k < axes.size(); ++k) {
    shape[k] = source.dl.shape[axes[k]];
    strides[k] = source.dl.strides[axes[k]];
  }
  return make_view(source, {shape, axes.size()}, {strides, axes.size()}, 0, out);
}

Status broadcast_view(const Tensor& source, Dims shape, Tensor& out) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t strides[kMaxDims];
  const auto missing = static_cast<std::ptrdiff_t>(shape.size()) - source.dl.ndim;
  bool repeats = false;
  bool fits = missing >= 0;
  for (std::size_t k = 0; fits && k < shape.size(); ++k) {
    const std::ptrdiff_t axis = static_cast<std::ptrdiff_t>(k) - missing;
    const std::int64_t extent = axis < 0 ? 1 : source.dl.shape[axis];
    strides[k] = axis < 0 || (extent == 1 && shape[k] != 1) ? 0 : source.dl.strides[axis];
    if (extent != shape[k]) {
      fits = extent == 1 && shape[k] >= 0;
      repeats = true;
    }
  }
  if (!fits)
    return malformed("shape " + shape_text(shape_of(source)) + " does not broadcast to " + shape_text(shape) +
                     ": each extent must be equal or 1, from the last axis on");
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, source.itemsize(), size));
  DLBRIDGE_TRY(make_view(source, shape, {strides, shape.size()}, 0, out));
  if (repeats) out.flags |= kFlagReadOnly;
  return {};
}

bool is_c_contiguous(const Tensor& t) noexcept {
  std::int64_t expected = 1;
  for (int k = t.dl.ndim - 1; k >= 0; --k) {
    if (t.dl.shape[k] == 1) continue;
    if (t.dl.strides[k] != expected) return t.size == 0;
    expected *= t.dl.shape[k];
  }
  return true;
}

bool is_f_contiguous(const Tensor& t) noexcept {
  std::int64_t expected = 1;
  for (int k = 0; k < t.dl.ndim; ++k) {
    if (t.dl.shape[k] == 1) continue;
    if (t.dl.strides[k] != expected) return t.size == 0;
    expected *= t.dl.shape[k];
  }
  return true;
}

ByteRange byte_range(const Tensor& t) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(t.dl.data);
  if (t.size == 0) return {base, base};
  std::int64_t low = 0, high = 0;
  for (int k = 0; k < t.dl.ndim; ++k) {
    const std::int64_t reach = (t.dl.shape[k] - 1) * t.dl.strides[k];
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t item = t.itemsize();
  return {base + static_cast<std::uintptr_t>(low * item), base + static_cast<std::uintptr_t>((high + 1) * item)};
}

bool may_overlap(const Tensor& a, const Tensor& b) noexcept {
  const ByteRange x = byte_range(a), y = byte_range(b);
  return x.first < y.last && y.first < x.last;
}

bool is_loadable(const Tensor& t) noexcept {
  return !is_cuda(t.dl.device) || reinterpret_cast<std::uintptr_t>(t.dl.data) % static_cast<std::uintptr_t>(t.itemsize()) == 0;
}

bool same_elements(const Tensor& a, const Tensor& b) noexcept {
  if (a.dl.data != b.dl.data || a.dl.ndim != b.dl.ndim || a.itemsize() != b.itemsize()) return false;
  for (int k = 0; k < a.dl.ndim; ++k)
    if (a.dl.shape[k] != b.dl.shape[k] || (a.dl.shape[k] > 1 && a.dl.strides[k] != b.dl.strides[k])) return false;
  return true;
}

std::string shape_text(Dims shape) {
  std::string text = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(shape[k]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string describe(const Tensor& t) {
  return std::string(t.dtype().name) + " " + shape_text(shape_of(t)) + " on " + device_name(t.dl.device);
}

}  // namespace dlbridge::nd
