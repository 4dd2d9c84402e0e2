#include "ndarray/core/copy.h"

#include <algorithm>
#include <string>

#include "dlbridge/cuda_driver.h"
#include "dlbridge/cuda_peer.h"
#include "ndarray/runtime/lifetime.h"
#include "ndarray/runtime/transfer.h"

namespace dlbridge::nd {

namespace {

// Between two GPUs: both are made to wait in stream order, the host is not.
Status copy_peer(const Tensor& source, const Tensor& target) {
  const int from = source.dl.device.device_id, to = target.dl.device.device_id;
  const StreamHandle from_stream = work_stream(source.dl.device), to_stream = work_stream(target.dl.device);
  UseGuard uses;
  uses.enter();
  DLBRIDGE_TRY(acquire(source, from_stream));
  DLBRIDGE_TRY(acquire(target, to_stream));
  DLBRIDGE_TRY(cuda::order_across(to_stream, to, Ordering::on_stream(from_stream), from));
  DLBRIDGE_TRY(cuda::copy_between_devices(target.dl.data, to, source.dl.data, from,
                                          static_cast<std::size_t>(source.nbytes()), to_stream));
  return cuda::order_across(from_stream, from, Ordering::on_stream(to_stream), to);  // the source is read until then
}

Status copy_dense(const Tensor& source, const Tensor& target) {
  const auto bytes = static_cast<std::size_t>(source.nbytes());
  if (bytes == 0) return {};
  const bool from_device = is_cuda(source.dl.device);
  if (from_device && is_cuda(target.dl.device)) return copy_peer(source, target);
  const Tensor& on_device = from_device ? source : target;
  const StreamHandle stream = work_stream(on_device.dl.device);
  const int device = on_device.dl.device.device_id;
  cuda::DeviceGuard guard;
  DLBRIDGE_TRY(guard.enter(device));
  UseGuard uses;
  uses.enter();
  DLBRIDGE_TRY(acquire(on_device, stream));
  if (from_device) return copy_to_host(target.dl.data, source.dl.data, bytes, device, stream, true);
  DLBRIDGE_TRY(copy_to_device(target.dl.data, source.dl.data, bytes, device, stream, true));
  return acquire(target, stream);  // once more: the copy let other threads in, and another use may have begun
}

}  // namespace

Status copy_to(const Tensor& source, DLDevice device, Tensor& out) {
  if (same_device(source.dl.device, device) || (is_host(source.dl.device) && is_host(device)))
    return copy_as(source, dtype_of(source), CopyOrder::kKeep, out);
  std::int8_t axes[kMaxDims];
  const Tensor* const inputs[1] = {&source};
  copied_order(inputs, shape_of(source), axes);  // the copy lies as its source does
  const std::span order(axes, static_cast<std::size_t>(source.dl.ndim));
  Tensor dense;
  const Tensor* from = &source;
  if (!is_dense(source, order)) {
    DLBRIDGE_TRY(copy_as(source, dtype_of(source), CopyOrder::kKeep, dense));
    from = &dense;
  }
  DLBRIDGE_TRY(make_array_as(out, dtype_of(source), shape_of(source), order, device));
  return copy_dense(*from, out);
}

Status copy_alike(const Tensor& source, const Tensor& target, bool& copied) {
  std::int8_t axes[kMaxDims];
  const Tensor* const inputs[1] = {&source};
  copied_order(inputs, shape_of(source), axes);
  const std::span order(axes, static_cast<std::size_t>(source.dl.ndim));
  copied = !(is_host(source.dl.device) && is_host(target.dl.device)) && dtype_of(source) == dtype_of(target) &&
           std::ranges::equal(shape_of(source), shape_of(target)) && is_dense(source, order) && is_dense(target, order);
  return copied ? copy_dense(source, target) : Status{};
}

Status copy_into(const Tensor& target, Input source, Casting casting) {
  const DType to = dtype_of(target);
  if (!can_cast(source, to, casting))
    return {ErrorCode::kWrongType, "cannot cast " + std::string(info(result_type({&source, 1})).name) + " to " +
                                       std::string(info(to).name) + " (casting='" + std::string(name_of(casting)) +
                                       "'). Use casting='unsafe', or astype() first"};
  if (target.readonly()) return malformed("the output array is read-only");
  if (source.array == nullptr && source.scalar.kind > ScalarKind::kInt) source.scalar.strong = true;  // a cast
  Tensor moved;
  if (source.array != nullptr && !same_device(source.array->dl.device, target.dl.device)) {
    bool copied = false;
    DLBRIDGE_TRY(copy_alike(*source.array, target, copied));
    if (copied) return {};
    DLBRIDGE_TRY(copy_to(*source.array, target.dl.device, moved));
    source.array = &moved;
  }
  return assign(target, source, "copyto()");
}

Status read_element(const Tensor& t, Scalar& out) {
  Tensor host;
  const Tensor* at = &t;
  if (is_cuda(t.dl.device)) {
    DLBRIDGE_TRY(copy_to(t, {kDLCPU, 0}, host));
    at = &host;
  }
  out = read_scalar(at->dl.data, dtype_of(t));
  return {};
}

}  // namespace dlbridge::nd
