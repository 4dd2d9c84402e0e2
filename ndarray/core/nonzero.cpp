// The positions and coordinates of the elements that are not zero.
#include <algorithm>

#include "dlbridge/validate.h"
#include "ndarray/core/indexing.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd {

namespace {
constexpr std::int64_t kFewElements = 512;

// Of few elements of the host, in C order, the positions are counted before there is an array for them.
Status few_positions(const Tensor& x, Tensor& positions) {
  const Tensor* const arrays[] = {&x};
  KernelCall kernel(x.dl.device, arrays);
  DLBRIDGE_TRY(kernel.begin());
  char truths[kFewElements];
  const void* mask = x.dl.data;
  if (!is_bool(dtype_of(x))) {
    char* const data[] = {truths, static_cast<char*>(x.dl.data)};
    const std::int64_t strides[] = {1, x.itemsize()};
    host_kernels::cast_loop(dtype_of(x), DType::kBool)(data, strides, x.size);
    mask = truths;
  }
  std::int64_t found[kFewElements], count[1] = {};
  DLBRIDGE_TRY(kernel.end(kernel.backend().nonzero({mask, x.size, found, count, {}, 0}), "nonzero"));
  DLBRIDGE_TRY(make_array(positions, DType::kInt64, count, x.dl.device));
  std::copy_n(found, count[0], static_cast<std::int64_t*>(positions.dl.data));
  return {};
}
}  // namespace

Status flat_nonzero(const Tensor& x, Tensor& positions) {
  if (is_host(x.dl.device) && x.size <= kFewElements && is_c_contiguous(x) && is_aligned(x) && is_loadable(x))
    return few_positions(x, positions);
  Tensor mask;
  const Tensor* dense = &x;
  if (!is_bool(dtype_of(x)) || !is_c_contiguous(x)) {
    DLBRIDGE_TRY(copy_as(x, DType::kBool, CopyOrder::kC, mask));
    dense = &mask;
  }
  const std::int64_t none[1] = {0};
  if (x.size == 0) return make_array(positions, DType::kInt64, none, x.dl.device);
  const std::int64_t room[1] = {x.size};
  DLBRIDGE_TRY(make_array(positions, DType::kInt64, room, x.dl.device));
  const Tensor* const arrays[] = {dense, &positions};
  KernelCall kernel(x.dl.device, arrays);
  DLBRIDGE_TRY(kernel.begin());
  std::int64_t count = 0;
  const NonzeroArgs args{dense->dl.data,     x.size,         static_cast<std::int64_t*>(positions.dl.data), &count,
                         kernel.workspace(), kernel.stream()};
  DLBRIDGE_TRY(kernel.end(kernel.wait_for(&Backend::nonzero, args), "nonzero"));
  return keep_first(positions, count);
}

Status nonzero_rows(const Tensor& x, Tensor& rows) {
  Tensor positions;
  DLBRIDGE_TRY(flat_nonzero(x, positions));
  const std::int64_t shape[2] = {std::max(x.dl.ndim, 1), positions.size}, strides[2] = {positions.size, 1};
  if (shape[0] == 1) return make_view(positions, shape, strides, 0, rows);
  DLBRIDGE_TRY(make_array(rows, DType::kInt64, shape, x.dl.device));
  const auto row = [&](int axis, Tensor& view) {
    return make_view(rows, {shape + 1, 1}, {strides + 1, 1}, axis * positions.size, view);
  };
  Tensor unused, first;
  DLBRIDGE_TRY(row(0, first));
  for (int axis = x.dl.ndim - 1; axis > 0; --axis) {
    const Input by{nullptr, Scalar::of_int(std::max<std::int64_t>(x.dl.shape[axis], 1))};
    const Input operands[2] = {{&positions, {}}, by};
    Tensor place;
    DLBRIDGE_TRY(row(axis, place));
    DLBRIDGE_TRY(elementwise(Op::kRemainder, operands, {&place}, unused));
    DLBRIDGE_TRY(elementwise(Op::kFloorDivide, operands, {axis == 1 ? &first : &positions}, unused));
  }
  return {};
}

Status nonzero(const Tensor& x, std::span<Tensor> coordinates) {
  if (x.dl.ndim == 1) return flat_nonzero(x, coordinates[0]);
  Tensor rows;
  DLBRIDGE_TRY(nonzero_rows(x, rows));
  const std::int64_t count[1] = {rows.dl.shape[1]}, step[1] = {1};
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis)
    DLBRIDGE_TRY(make_view(rows, count, step, static_cast<std::int64_t>(axis) * count[0], coordinates[axis]));
  return {};
}

}  // namespace dlbridge::nd
