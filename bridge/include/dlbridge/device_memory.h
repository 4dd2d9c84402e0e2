// Dense tensors in device memory, with owners that free it.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_events.h"
#include "dlbridge/errors.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/tensor.h"

namespace dlbridge::cuda {

namespace detail {
// Where a piece of memory is allocated and the work that fills it is queued. Only streams that live as long as the
// process: the owner frees on one long after the caller's stream may be gone.
struct WorkStream {
  int device = 0;
  StreamHandle stream = kLegacyStream;
  StreamHandle user = kLegacyStream;  // the stream that the caller will use the data on

  bool serves_user() const noexcept { return stream == user; }
};

// `requested` 0: the thread's current stream. The legacy stream is used as it is, for any other the relay works and
// the other waits.
inline Status work_stream(int device, StreamHandle requested, WorkStream& out) {
  out.device = device;
  out.user = requested == 0 ? current_stream(device) : requested;
  out.stream = kLegacyStream;
  if (out.user != kLegacyStream) DLBRIDGE_TRY(relay_stream(device, out.stream));
  if (!may_be_stream(out.user)) [[unlikely]]
    return no_stream(out.user);
  Capture capture = Capture::kNone;
  DLBRIDGE_TRY(capture_state(out.user, capture));
  if (capture != Capture::kNone) [[unlikely]]
    return refused("a CUDA graph is being captured on " + stream_name(out.user) +
                   ", and a copy would allocate memory that the graph does not own. Copy before the capture begins");
  return {};
}

struct DeviceBlock {
  CUdeviceptr pointer;
  CUcontext context;
  CUstream stream;  // null: plain memory, freed with cuMemFree
  CUevent filled;   // of plain memory that another device writes: when it has; else null
  int device;
};

// Memory may not be allocated or freed while any thread captures in the default mode, though that does the capture no
// harm: relaxed mode of this thread says so.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { static_cast<void>(functions().thread_exchange_capture_mode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { static_cast<void>(functions().thread_exchange_capture_mode(&mode_)); }

 private:
  int mode_ = kCaptureModeRelaxed;
};

// Any thread, any time: a driver that has shut down, or that a fork left behind, makes the first call fail (or is
// not called), and then the memory is gone with the context anyway. Stream-ordered memory is freed behind the work
// queued so far; plain memory when the whole device has finished, so that a consumer on any stream is safe. What
// another device still writes is waited for: cuMemFree looks at its own, and the write would meet memory that is gone.
inline void free_device_block(void* context) noexcept {
  auto* block = static_cast<DeviceBlock*>(context);
  const Functions& fn = functions();
  if (library().pid == ::getpid() && fn.ctx_push_current(block->context) == kSuccess) {
    const RelaxedCapture relaxed;
    if (block->filled != nullptr) {
      static_cast<void>(fn.event_synchronize(block->filled));
      keep_event(block->device, block->filled);
    }
    if (block->stream != nullptr) static_cast<void>(fn.mem_free_async(block->pointer, block->stream));
    else static_cast<void>(fn.mem_free(block->pointer));
    CUcontext popped;
    static_cast<void>(fn.ctx_pop_current(&popped));
  }
  delete block;
  live_copies().sub(1);
}

inline bool has_memory_pools(int device) noexcept {
  int supported = 0;
  return functions().mem_alloc_async != nullptr && functions().mem_free_async != nullptr &&
         functions().device_get_attribute(&supported, kAttributeMemoryPoolsSupported, device) == kSuccess &&
         supported != 0;
}

[[gnu::cold]] inline Status device_allocation_failure(CUresult result, const char* what, std::int64_t bytes,
                                                      int device) {
  if (result != kOutOfMemoryResult) return check(result, what);
  return {ErrorCode::kOutOfMemory, std::to_string(bytes) +
                                       " bytes are not available on cuda:" + std::to_string(device) + " (" + what +
                                       "). Free device memory first, or copy "
                                       "a part of the array"};
}

// The device is current. `stream` 0: plain memory.
inline Status allocate_device_block(std::int64_t bytes, int device, StreamHandle stream, Owner& owner, void*& data) {
  DeviceBlock block{};
  DLBRIDGE_TRY(primary_context(device, block.context));
  block.device = device;
  const auto size = static_cast<std::size_t>(bytes);
  auto* kept = new DeviceBlock(block);  // before the device's memory, so that nothing can fail after that
  CUresult result;
  const char* what;
  if (stream != 0 && has_memory_pools(device)) {
    const RelaxedCapture relaxed;
    what = "cuMemAllocAsync";
    kept->stream = as_stream(stream);
    result = functions().mem_alloc_async(&kept->pointer, size, kept->stream);
  } else {
    const RelaxedCapture relaxed;
    what = "cuMemAlloc";
    result = functions().mem_alloc(&kept->pointer, size);
  }
  if (result != kSuccess) [[unlikely]] {
    delete kept;
    return device_allocation_failure(result, what, bytes, device);
  }
  live_copies().add(1);
  owner = Owner(kept, free_device_block);
  data = reinterpret_cast<void*>(kept->pointer);
  return {};
}

// Another device writes the (plain) memory of `made` by work that is queued on `stream` now.
inline Status note_foreign_write(const Tensor& made, StreamHandle stream) {
  auto* block = static_cast<DeviceBlock*>(made.owner.context());
  DLBRIDGE_TRY(take_event(block->device, block->filled));
  return check(functions().event_record(block->filled, as_stream(stream)), "cuEventRecord");
}

// The device is current. `pool_stream`: where the memory is allocated and freed; 0: plain memory.
inline Status allocate_on(DLDataType dtype, std::int32_t ndim, const std::int64_t* shape, std::uint64_t flags,
                          int device, StreamHandle pool_stream, Tensor& out) {
  std::int64_t bytes = 0;
  Tensor made;
  DLBRIDGE_TRY(dlbridge::detail::describe_dense(dtype, ndim, shape, flags, made, bytes));
  made.dl.device = {kDLCUDA, device};
  if (bytes > 0) {
    DLBRIDGE_TRY(allocate_device_block(bytes, device, pool_stream, made.owner, made.dl.data));
    if (pool_stream != 0) made.ready = Ordering::on_stream(pool_stream);
  }
  out = std::move(made);
  return {};
}

// Only memory for the legacy stream comes from the pool: it is freed on that stream, behind everything that the
// default streams of the frameworks do. A stream of the caller's may not live as long, and its work would not be
// waited for.
inline StreamHandle pool_stream_of(const WorkStream& work) noexcept { return work.serves_user() ? work.stream : 0; }
}  // namespace detail

// Uninitialised dense C-order memory on a CUDA device, to be used on `stream` (0: the thread's current one).
// `flags` as for allocate_host(). An empty tensor needs no driver. Throws std::bad_alloc like allocate_host().
inline Status allocate_device(DLDataType dtype, std::int32_t ndim, const std::int64_t* shape, DLDevice device,
                              StreamHandle stream, Tensor& out, std::uint64_t flags = kFlagCopied) {
  if (device.device_type != kDLCUDA)
    return refused("memory on " + device_name(device) + " is not memory that dlbridge can allocate. Use cpu or cuda");
  for (std::int32_t i = 0; i < ndim && i < kMaxDims; ++i)
    if (shape[i] == 0) return detail::allocate_on(dtype, ndim, shape, flags, device.device_id, 0, out);
  DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device.device_id));
  detail::WorkStream work;
  DLBRIDGE_TRY(detail::work_stream(device.device_id, stream, work));
  return detail::allocate_on(dtype, ndim, shape, flags, device.device_id, detail::pool_stream_of(work), out);
}

}  // namespace dlbridge::cuda
