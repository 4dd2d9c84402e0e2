#include "ndarray/core/rows.h"

#include <algorithm>

#include "ndarray/core/kernel_call.h"
#include "ndarray/kernels/host/rows.h"

namespace dlbridge::nd {

namespace {

host_kernels::Rows rows_of(const Tensor& x, int axis) noexcept {
  host_kernels::Rows rows{1, x.dl.shape[axis], x.itemsize()};
  for (int k = 0; k < axis; ++k) rows.outer *= x.dl.shape[k];
  for (int k = axis + 1; k < x.dl.ndim; ++k) rows.bytes *= x.dl.shape[k];
  return rows;
}

Status make_with(const Tensor& x, int axis, std::int64_t extent, Tensor& out) {
  std::int64_t shape[kMaxDims];
  std::copy_n(x.dl.shape, x.dl.ndim, shape);
  shape[axis] = extent;
  return make_array(out, dtype_of(x), {shape, static_cast<std::size_t>(x.dl.ndim)}, x.dl.device);
}

}  // namespace

Status drop_rows(const Tensor& x, int axis, std::span<const std::uint8_t> dropped, Tensor& out) {
  const std::int64_t kept = std::ranges::count(dropped, std::uint8_t{0});
  DLBRIDGE_TRY(make_with(x, axis, kept, out));
  if (out.size == 0) return {};
  const Tensor* const used[] = {&x};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::drop_rows(x.dl.data, rows_of(x, axis), dropped.data(), kept, out.dl.data);
  return call.end(0, "delete");
}

Status insert_rows(const Tensor& x, int axis, std::span<const std::int64_t> before, const Scalar& value, Tensor& out) {
  ScalarValue element;
  DLBRIDGE_TRY(write_scalar(value, dtype_of(x), element));
  DLBRIDGE_TRY(make_with(x, axis, x.dl.shape[axis] + static_cast<std::int64_t>(before.size()), out));
  if (out.size == 0) return {};
  const Tensor* const used[] = {&out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::insert_rows(x.dl.data, rows_of(x, axis), before, element.bytes, x.itemsize(), out.dl.data);
  return call.end(0, "insert");
}

}  // namespace dlbridge::nd
