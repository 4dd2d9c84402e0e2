// Copies out of strided device memory by the driver's copy engines: runs and pitched rows, since there are no kernels.
#pragma once

#include <cstdint>
#include <limits>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/layout.h"

namespace dlbridge::cuda::detail {

using dlbridge::detail::GatherPlan;

// A gather as `calls` copies of `height` rows, each a run of `width` bytes, `pitch` bytes apart in the source and
// dense in the destination.
struct RowPlan {
  GatherPlan gather;
  std::int32_t outer = 0;  // axes left to the loop: [0, outer)
  std::int64_t width = 0;
  std::int64_t height = 1;
  std::int64_t pitch = 0;
  std::int64_t calls = 1;
};

inline RowPlan plan_rows(const DLTensor& t) noexcept {
  RowPlan plan;
  const std::int64_t itemsize = itemsize_bytes(t.dtype);
  dlbridge::detail::plan_gather(t, itemsize, plan.gather);
  plan.outer = plan.gather.ndim;
  plan.width = itemsize;
  if (plan.outer > 0 && plan.gather.stride_bytes[plan.outer - 1] == itemsize)
    plan.width *= plan.gather.shape[--plan.outer];
  plan.pitch = plan.width;
  if (plan.outer > 0) {
    // cuMemcpy2D takes no negative pitch, none below the width, and none beyond 31 bits.
    const std::int64_t pitch = plan.gather.stride_bytes[plan.outer - 1];
    if (pitch >= plan.width && pitch <= std::numeric_limits<std::int32_t>::max()) {
      plan.pitch = pitch;
      plan.height = plan.gather.shape[--plan.outer];
    }
  }
  for (std::int32_t i = 0; i < plan.outer; ++i) plan.calls *= plan.gather.shape[i];
  return plan;
}

// One call of the plan. `to_host`: the destination is host memory.
inline Status copy_rows(const RowPlan& plan, void* to, bool to_host, CUdeviceptr from, CUstream stream) {
  const Functions& fn = functions();
  const auto width = static_cast<std::size_t>(plan.width);
  const auto to_device = reinterpret_cast<CUdeviceptr>(to);
  if (plan.height == 1) {
    return to_host ? check(fn.memcpy_dtoh_async(to, from, width, stream), "cuMemcpyDtoHAsync")
                   : check(fn.memcpy_dtod_async(to_device, from, width, stream), "cuMemcpyDtoDAsync");
  }
  Memcpy2D copy{};
  copy.src_memory_type = kMemoryTypeDevice;
  copy.src_device = from;
  copy.src_pitch = static_cast<std::size_t>(plan.pitch);
  copy.dst_memory_type = to_host ? kMemoryTypeHost : kMemoryTypeDevice;
  if (to_host) copy.dst_host = to;
  else copy.dst_device = to_device;
  copy.dst_pitch = width;
  copy.width_bytes = width;
  copy.height = static_cast<std::size_t>(plan.height);
  return check(fn.memcpy_2d_async(&copy, stream), "cuMemcpy2DAsync");
}

// Queues the whole gather of the device memory at `from` into dense `to`.
inline Status gather_rows(const RowPlan& plan, void* to, bool to_host, CUdeviceptr from, CUstream stream) {
  auto* out = static_cast<std::byte*>(to);
  const std::int64_t block = plan.width * plan.height;
  std::int64_t index[kMaxDims] = {};
  while (true) {
    DLBRIDGE_TRY(copy_rows(plan, out, to_host, from, stream));
    out += block;
    std::int32_t axis = plan.outer - 1;
    for (; axis >= 0; --axis) {
      const std::int64_t stride = plan.gather.stride_bytes[axis];
      from += static_cast<CUdeviceptr>(stride);  // modulo 2^64: a negative stride walks down
      if (++index[axis] < plan.gather.shape[axis]) break;
      index[axis] = 0;
      from -= static_cast<CUdeviceptr>(stride) * static_cast<CUdeviceptr>(plan.gather.shape[axis]);
    }
    if (axis < 0) return {};
  }
}

}  // namespace dlbridge::cuda::detail
