// The positions and coordinates of the elements that are not zero.
#include <algorithm>

#include "ndarray/core/indexing.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"
#include "ndarray/runtime/lifetime.h"

namespace dlbridge::nd {

namespace {
// CUDA's kernel waits for the count: work that it waits for may be a host function which needs the lock.
int find_nonzero(const KernelCall& kernel, const NonzeroArgs& args) {
  if (args.stream == 0) return kernel.backend().nonzero(args);
  const Unlocked unlocked;
  return kernel.backend().nonzero(args);
}
}  // namespace

Status flat_nonzero(const Tensor& x, Tensor& positions) {
  Tensor mask;
  const Tensor* dense = &x;
  if (!is_bool(dtype_of(x)) || !is_c_contiguous(x)) {
    DLBRIDGE_TRY(copy_as(x, DType::kBool, CopyOrder::kC, mask));
    dense = &mask;
  }
  const std::int64_t none[1] = {0};
  if (x.size == 0) return make_array(positions, DType::kInt64, none, x.dl.device);
  Tensor all;
  const std::int64_t room[1] = {x.size};
  DLBRIDGE_TRY(make_array(all, DType::kInt64, room, x.dl.device));
  const Tensor* const arrays[] = {dense, &all};
  KernelCall kernel(x.dl.device, arrays);
  DLBRIDGE_TRY(kernel.begin());
  std::int64_t count = 0;
  const NonzeroArgs args{dense->dl.data,     x.size,         static_cast<std::int64_t*>(all.dl.data), &count,
                         kernel.workspace(), kernel.stream()};
  DLBRIDGE_TRY(kernel.end(find_nonzero(kernel, args), "nonzero"));
  const std::int64_t shape[1] = {count}, strides[1] = {1};
  if (count >= x.size / 2) return make_view(all, shape, strides, 0, positions);
  Tensor used;  // few positions must not keep the room for all of them
  DLBRIDGE_TRY(make_view(all, shape, strides, 0, used));
  return copy_as(used, DType::kInt64, CopyOrder::kC, positions);
}

Status nonzero(const Tensor& x, std::span<Tensor> coordinates) {
  Tensor positions;
  DLBRIDGE_TRY(flat_nonzero(x, positions));
  if (x.dl.ndim <= 1) {
    coordinates[0] = std::move(positions);
    return {};
  }
  for (std::size_t axis = coordinates.size(); axis-- > 0;) {
    const Input by{nullptr, Scalar::of_int(std::max<std::int64_t>(x.dl.shape[axis], 1))};
    const Input operands[2] = {{&positions, {}}, by};
    if (axis == 0) {
      coordinates[0] = std::move(positions);
      break;
    }
    DLBRIDGE_TRY(elementwise(Op::kRemainder, operands, {}, coordinates[axis]));
    Tensor rest;
    DLBRIDGE_TRY(elementwise(Op::kFloorDivide, operands, {}, rest));
    positions = std::move(rest);
  }
  return {};
}

}  // namespace dlbridge::nd
