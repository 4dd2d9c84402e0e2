// Copies between the host and CUDA devices, any pair of them, behind the work that makes the source ready.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_peer.h"
#include "dlbridge/device_memory.h"
#include "dlbridge/errors.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/strided_copy.h"

namespace dlbridge::cuda {

namespace detail {
// Up to so many times the elements' own bytes are fetched with all that lies between them, rather than row by row.
inline constexpr std::int64_t kMaxOvercopy = 4;
// What moving costs as much as one copy call: a few microseconds, at some 10 GB/s to the host.
inline constexpr std::int64_t kBytesPerCall = 32 * 1024;
// A copy within the device that needs more calls goes through the host.
inline constexpr std::int64_t kMaxRowCalls = 1024;

inline CUdeviceptr address(const DLTensor& t) noexcept { return reinterpret_cast<CUdeviceptr>(t.data) + t.byte_offset; }
inline bool is_packed(const Tensor& t) noexcept { return is_subbyte(t.dl.dtype) && !t.padded(); }
inline std::uint64_t copy_flags(const Tensor& source) noexcept { return kFlagCopied | (source.flags & kFlagPadded); }

// Lets the stream run empty before memory that its copies still write goes away; used where a later step failed.
inline Status drained(Status failure, StreamHandle stream) noexcept {
  static_cast<void>(functions().stream_synchronize(as_stream(stream)));
  return failure;
}

// Touches fresh host memory before the driver does, whose single-page faults cost more than the transfer: 256 MiB from
// an H200 take 43 ms with this and 140 ms without. An old kernel says no, and nothing is lost.
inline void prefault(void* block, std::int64_t bytes) noexcept {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  if (dlbridge::detail::takes_huge_pages(bytes))
    static_cast<void>(::madvise(block, static_cast<std::size_t>(bytes), kPopulateWrite));
}

// All bytes between the first and the last element, then the gather on the host.
inline Status fetch_span(const Tensor& source, const ElementSpan& span, StreamHandle stream, Tensor& out) {
  const std::int64_t itemsize = source.itemsize();
  const std::int64_t bytes = (span.high - span.low) * itemsize;
  Tensor staging;
  DLBRIDGE_TRY(allocate_host(to_dl(DType::kUInt8), 1, &bytes, staging));
  prefault(staging.dl.data, bytes);
  const CUdeviceptr first = address(source.dl) + static_cast<CUdeviceptr>(span.low * itemsize);
  DLBRIDGE_TRY(
      check(functions().memcpy_dtoh_async(staging.dl.data, first, static_cast<std::size_t>(bytes), as_stream(stream)),
            "cuMemcpyDtoHAsync"));
  DLBRIDGE_TRY(check(functions().stream_synchronize(as_stream(stream)), "cuStreamSynchronize"));
  DLTensor view = source.dl;
  view.data = static_cast<std::byte*>(staging.dl.data) - span.low * itemsize;
  view.byte_offset = 0;
  gather_to_dense(view, out.dl.data);
  return {};
}

inline Status device_to_host(const Tensor& source, Tensor& out) {
  const bool contiguous = is_c_contiguous(source.dl);
  if (is_packed(source) && !contiguous) return dlbridge::detail::packed_is_strided(source.dl.dtype);
  Tensor made;
  DLBRIDGE_TRY(allocate_host(source.dl.dtype, source.dl.ndim, source.dl.shape, made, copy_flags(source)));
  const int device = source.dl.device.device_id;
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  StreamHandle stream = 0;
  DLBRIDGE_TRY(relay_stream(device, stream));
  DLBRIDGE_TRY(order(stream, source.ready, device));
  const ElementSpan span = element_span(source.dl);
  RowPlan plan = plan_rows(source.dl);
  const std::int64_t span_bytes = (span.high - span.low) * source.itemsize();
  const bool by_span = span_bytes / kMaxOvercopy <= made.nbytes() || span_bytes / kBytesPerCall <= plan.calls;
  if (!contiguous && by_span) {
    DLBRIDGE_TRY(fetch_span(source, span, stream, made));
  } else {
    if (contiguous) plan.width = made.nbytes();  // packed types: fewer bytes than elements
    prefault(made.dl.data, made.nbytes());
    Status queued = gather_rows(plan, made.dl.data, true, address(source.dl), as_stream(stream));
    if (!queued.ok()) return drained(std::move(queued), stream);
    DLBRIDGE_TRY(check(functions().stream_synchronize(as_stream(stream)), "cuStreamSynchronize"));
  }
  out = std::move(made);
  return {};
}

// Device memory is freed in stream order: the stream that may hand the source's memory out again waits until the copy
// has read it. Where the source does not say its stream, that is taken to be the legacy one.
inline Status protect_source(const Tensor& source, const WorkStream& work) {
  const StreamHandle owner_stream =
      source.ready.settled().kind == Ordering::Kind::kOnStream ? source.ready.settled().handle : kLegacyStream;
  return order_across(owner_stream, source.dl.device.device_id, Ordering::on_stream(work.stream), work.device);
}

// The data is queued on `work.stream`: makes the caller's stream wait and leaves the token.
inline Status publish(const WorkStream& work, Tensor& made, Tensor& out) {
  made.ready = Ordering::on_stream(work.stream);
  DLBRIDGE_TRY(order(work.user, made.ready, work.device));
  out = std::move(made);
  return {};
}

// How copies of `least_bytes` or more from pageable memory to a device are made faster than by the driver: through the
// page-locked buffers of dlbridge's own module (ndarray/runtime/staging.h). Null in programs over these headers alone.
// As with the driver, the copy is queued on `stream` and the source is free on return.
struct LargeUpload {
  Status (*copy)(void* to, const void* from, std::size_t bytes, int device, StreamHandle stream);
  std::size_t least_bytes;
};
inline std::atomic<const LargeUpload*> large_upload{nullptr};

inline Status upload(void* to, const void* from, std::size_t bytes, int device, StreamHandle stream) {
  const LargeUpload* const large = large_upload.load(std::memory_order_acquire);
  if (large != nullptr && bytes >= large->least_bytes) {
    Status done = large->copy(to, from, bytes, device, stream);
    if (done.ok() || done.code() != ErrorCode::kOutOfMemory) return done;
    // For want of page-locked memory, as without it.
  }
  DLBRIDGE_TRY(check(functions().memcpy_htod_async(reinterpret_cast<CUdeviceptr>(to), from, bytes, as_stream(stream)),
                     "cuMemcpyHtoDAsync"));
  // The driver has taken pageable memory into a buffer of its own when the call returns; pinned memory, which is
  // often declared as plain kDLCPU, it still reads, and the caller may change it.
  PointerFacts facts;
  DLBRIDGE_TRY(check(query_pointer(from, facts), "cuPointerGetAttributes"));
  if (facts.memory_type == 0) return {};
  return check(functions().stream_synchronize(as_stream(stream)), "cuStreamSynchronize");
}

inline Status host_to_device(const Tensor& source, int device, StreamHandle stream, Tensor& out) {
  Tensor staging;
  const Tensor* dense = &source;
  if (!is_c_contiguous(source.dl)) {
    DLBRIDGE_TRY(dense_host_copy(source, staging));
    dense = &staging;
  }
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  WorkStream work;
  DLBRIDGE_TRY(work_stream(device, stream, work));
  Tensor made;
  DLBRIDGE_TRY(allocate_on(source.dl.dtype, source.dl.ndim, source.dl.shape, copy_flags(source), device,
                           pool_stream_of(work), made));
  const auto* from = static_cast<const std::byte*>(dense->dl.data) + dense->dl.byte_offset;
  DLBRIDGE_TRY(upload(made.dl.data, from, static_cast<std::size_t>(made.nbytes()), device, work.stream));
  return publish(work, made, out);
}

// Gives `made`, just allocated, the strides of `source`, which is a permuted dense block of the same size.
inline void keep_strides(const Tensor& source, Tensor& made) noexcept {
  for (std::int32_t i = 0; i < source.dl.ndim; ++i) made.dl.strides[i] = source.dl.strides[i];
}

// Queues the copy on `stream` of the source's device, which waits for the source. `out` is allocated.
inline Status queue_local_copy(const Tensor& source, bool block_copy, const RowPlan& plan, StreamHandle stream,
                               Tensor& out) {
  const int device = source.dl.device.device_id;
  DLBRIDGE_TRY(order(stream, source.ready, device));
  if (!block_copy) return gather_rows(plan, out.dl.data, false, address(source.dl), as_stream(stream));
  keep_strides(source, out);
  return check(functions().memcpy_dtod_async(address(out.dl), address(source.dl),
                                             static_cast<std::size_t>(out.nbytes()), as_stream(stream)),
               "cuMemcpyDtoDAsync");
}

// A detour for what the copy engines cannot gather in few calls.
inline Status through_host(const Tensor& source, int device, StreamHandle stream, Tensor& out) {
  Tensor host;
  DLBRIDGE_TRY(device_to_host(source, host));
  return host_to_device(host, device, stream, out);
}

inline Status device_to_same_device(const Tensor& source, StreamHandle stream, Tensor& out) {
  const int device = source.dl.device.device_id;
  const bool block_copy = is_permuted_dense(source.dl);
  if (is_packed(source) && !is_c_contiguous(source.dl)) return dlbridge::detail::packed_is_strided(source.dl.dtype);
  const RowPlan plan = plan_rows(source.dl);
  if (!block_copy && plan.calls > kMaxRowCalls) return through_host(source, device, stream, out);
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  WorkStream work;
  DLBRIDGE_TRY(work_stream(device, stream, work));
  if (!source.ready.is_ready()) DLBRIDGE_TRY(check_capture(work.stream, source.ready.settled()));
  Tensor made;
  DLBRIDGE_TRY(allocate_on(source.dl.dtype, source.dl.ndim, source.dl.shape, copy_flags(source), device,
                           pool_stream_of(work), made));
  DLBRIDGE_TRY(queue_local_copy(source, block_copy, plan, work.stream, made));
  DLBRIDGE_TRY(protect_source(source, work));
  return publish(work, made, out);
}

inline Status device_to_other_device(const Tensor& source, int device, StreamHandle stream, Tensor& out) {
  const int from_device = source.dl.device.device_id;
  if (!is_permuted_dense(source.dl)) return through_host(source, device, stream, out);
  if (is_packed(source) && !is_c_contiguous(source.dl)) return dlbridge::detail::packed_is_strided(source.dl.dtype);
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  WorkStream work;
  DLBRIDGE_TRY(work_stream(device, stream, work));
  Tensor made;
  // Plain memory: a pool's is not open to the other device's copy engine unless its owner says so.
  DLBRIDGE_TRY(allocate_on(source.dl.dtype, source.dl.ndim, source.dl.shape, copy_flags(source), device, 0, made));
  keep_strides(source, made);
  DLBRIDGE_TRY(order_across(work.stream, device, source.ready, from_device));
  DLBRIDGE_TRY(copy_between_devices(made.dl.data, device, static_cast<char*>(source.dl.data) + source.dl.byte_offset,
                                    from_device, static_cast<std::size_t>(made.nbytes()), work.stream));
  if (Status noted = note_foreign_write(made, work.stream); !noted.ok()) return drained(std::move(noted), work.stream);
  DLBRIDGE_TRY(protect_source(source, work));
  return publish(work, made, out);
}

[[gnu::cold]] inline Status no_such_copy(DLDevice from, DLDevice to) {
  return refused("no copy from " + device_name(from) + " to " + device_name(to) +
                 ": dlbridge copies between cpu and cuda. Copy with the producer's own library first");
}
}  // namespace detail

// A writable copy of `source` of its own on `target` (kDLCPU or kDLCUDA), flagged as copied. Dense in C order; only
// a copy between devices of a transposed array without gaps keeps its strides, since one block copy is what the
// hardware does well. `stream`: where the caller will use it, 0 for the thread's current stream; without a meaning
// for a host target. A host target is ready on return; otherwise out.ready says when. The source may be freed, in the
// order of its own stream, as soon as this returns. Empty tensors need no driver.
inline Status copy_to_device(const Tensor& source, DLDevice target, StreamHandle stream, Tensor& out) {
  const DLDevice from = source.dl.device;
  const bool from_device = is_cuda(from);
  if ((!is_host(from) && !from_device) || (target.device_type != kDLCPU && target.device_type != kDLCUDA)) [[unlikely]]
    return detail::no_such_copy(from, target);
  const int device = target.device_id;
  if (source.size == 0) {
    if (target.device_type == kDLCPU)
      return allocate_host(source.dl.dtype, source.dl.ndim, source.dl.shape, out, detail::copy_flags(source));
    return detail::allocate_on(source.dl.dtype, source.dl.ndim, source.dl.shape, detail::copy_flags(source), device, 0,
                               out);
  }
  if (target.device_type == kDLCPU) {
    if (from_device) return detail::device_to_host(source, out);
    DLBRIDGE_TRY(synchronize(source.ready, 0));  // pinned memory that a device still writes
    return dense_host_copy(source, out);
  }
  if (!from_device) {
    DLBRIDGE_TRY(synchronize(source.ready, 0));
    return detail::host_to_device(source, device, stream, out);
  }
  if (from.device_id == device) return detail::device_to_same_device(source, stream, out);
  return detail::device_to_other_device(source, device, stream, out);
}

}  // namespace dlbridge::cuda
