// Arrays: tensors whose owner is a counted storage. Making them, and views of them; nothing here computes.
#pragma once

#include <cstdint>
#include <span>

#include "dlbridge/cuda_device.h"
#include "dlbridge/tensor.h"
#include "ndarray/core/dims.h"
#include "ndarray/core/promotion.h"
#include "ndarray/runtime/storage.h"

namespace dlbridge::nd {

inline DType dtype_of(const Tensor& t) noexcept { return t.dtype().id; }

// The stream that the calling thread works on for a device; 0 on the host. Never the per-thread default stream's
// number, which names another stream on each thread: a stream of this thread's own stands for it.
StreamHandle work_stream(DLDevice device);

Status check_ndim(Dims shape);  // at most kMaxDims
// The number of elements; refuses negative extents, and byte sizes past 63 bits.
Status count_elements(Dims shape, std::int64_t itemsize, std::int64_t& size);

// An uninitialised dense array, which owns its memory. `out` is empty.
Status make_array(Tensor& out, DType dtype, Dims shape, DLDevice device, Order order = Order::kC);
// The same with the axes laid out in memory as `axes` says: axes[0] has the smallest stride.
Status make_array_as(Tensor& out, DType dtype, Dims shape, std::span<const std::int8_t> axes, DLDevice device);

// A view: the storage is shared. strides in elements.
Status make_view(const Tensor& source, Dims shape, Dims strides, std::int64_t offset_elements, Tensor& out);
// Whether the memory was allocated for this array, not for one that it is a view of.
inline bool owns_memory(const Tensor& t) noexcept { return (t.flags & kFlagCopied) != 0; }

// The bytes that the elements touch: [first, last). Empty arrays: first == last.
struct ByteRange {
  std::uintptr_t first, last;
};
ByteRange byte_range(const Tensor& t) noexcept;
bool may_overlap(const Tensor& a, const Tensor& b) noexcept;
// GPUs load a complex number in one piece: it must lie at a multiple of its size. True on the host.
bool is_loadable(const Tensor& t) noexcept;
bool same_elements(const Tensor& a, const Tensor& b) noexcept;  // same address, shape, strides and itemsize

std::string describe(const Tensor& t);  // "float32 (2, 3) on cuda:0"

// A device array's storage is acquired for the thread's stream before each use: see storage.h. Returns the stream.
inline Status acquire(const Tensor& t, StreamHandle stream) {
  if (stream == 0) return {};
  Storage* storage = storage_of(t);
  return storage == nullptr ? Status() : acquire(*storage, stream);
}

}  // namespace dlbridge::nd
