#include "ndarray/core/small_matrices.h"

#include <algorithm>
#include <initializer_list>

#include "dlbridge/validate.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/functors/small_matrix.h"

namespace dlbridge::nd {

namespace {

bool is_loaded_by_element(const Tensor& x) noexcept { return x.size != 0 && is_aligned(x) && is_loadable(x); }

bool are_matrices(MatrixOp op, const Tensor& a, const Tensor* b) noexcept {
  const int n = a.dl.ndim;
  if (n < 2 || a.dl.shape[n - 1] != a.dl.shape[n - 2] || !contains(functors::kMatrixSet, dtype_of(a)) ||
      !is_loaded_by_element(a) || (b != nullptr) != (op == MatrixOp::kSolve))
    return false;
  return b == nullptr ||
         (b->dl.ndim >= 2 && b->dl.shape[b->dl.ndim - 2] == a.dl.shape[n - 1] && dtype_of(*b) == dtype_of(a) &&
          same_device(b->dl.device, a.dl.device) && is_loaded_by_element(*b));
}

// What is stacked: a view without the last two axes, for its shape and strides.
Status stack_of(const Tensor& x, Tensor& out) {
  const auto n = static_cast<std::size_t>(x.dl.ndim) - 2;
  return make_view(x, {x.dl.shape, n}, {x.dl.strides, n}, 0, out);
}

// Where matrices lie, and by which strides those of a stack of `ndim` axes follow, innermost first.
void read_operand(const Tensor& x, const Tensor& stacked, int ndim, MatrixOperand& operand,
                  std::int64_t* strides) noexcept {
  const std::int64_t itemsize = x.itemsize();
  operand.data = x.dl.data;
  operand.row = x.dl.strides[x.dl.ndim - 2] * itemsize;
  operand.column = x.dl.strides[x.dl.ndim - 1] * itemsize;
  for (int axis = 0; axis < ndim; ++axis) strides[ndim - 1 - axis] = broadcast_stride(stacked, axis, ndim) * itemsize;
}

// The stack's dims, and how the operands lie in them; false where they are more than the kernel has.
bool read_stack(const Tensor& a, const Tensor& a_stack, const Tensor* b, const Tensor& b_stack, Dims stack,
                MatrixArgs& args) noexcept {
  const int ndim = static_cast<int>(stack.size());
  std::int64_t shape[kMaxDims], of_a[kMaxDims], of_b[kMaxDims];
  std::int64_t* const rows[] = {of_a, of_b};
  std::reverse_copy(stack.begin(), stack.end(), shape);
  read_operand(a, a_stack, ndim, args.a, of_a);
  if (b != nullptr) read_operand(*b, b_stack, ndim, args.b, of_b);
  args.ndim = merge_dims(shape, ndim, rows, b == nullptr ? 1 : 2);
  if (args.ndim > kLoopDims) return false;
  std::copy_n(shape, args.ndim, args.shape);
  std::copy_n(of_a, args.ndim, args.a.stacked);
  if (b != nullptr) std::copy_n(of_b, args.ndim, args.b.stacked);
  return true;
}

Status make_results(const MatrixArgs& args, Dims stack, DLDevice device, SmallMatrices& results) {
  std::int64_t shape[kMaxDims];
  std::int64_t* end = std::copy(stack.begin(), stack.end(), shape);
  if (args.columns == 0) {
    DLBRIDGE_TRY(make_array(results.found, args.dtype, stack, device));
    return args.op == MatrixOp::kSlogdet ? make_array(results.logs, real_part(args.dtype), stack, device) : Status();
  }
  *end++ = args.n;
  *end++ = args.columns;
  DLBRIDGE_TRY(make_array(results.found, args.dtype, {shape, end}, device));
  return make_array(results.info, DType::kInt32, {&args.matrices, 1}, device);
}

Status launch(MatrixArgs& args, const Tensor& a, const Tensor* b, SmallMatrices& results) {
  args.out = results.found.dl.data;
  args.logs = results.logs.dl.data;
  args.info = static_cast<std::int32_t*>(results.info.dl.data);
  const Tensor* used[4] = {&a, &results.found};
  std::size_t count = 2;
  for (const Tensor* more : {b, static_cast<const Tensor*>(args.columns == 0 ? &results.logs : &results.info)})
    if (more != nullptr && more->dl.data != nullptr) used[count++] = more;
  KernelCall call(a.dl.device, {used, count});
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().small_matrices(args), "small_matrices");
}

}  // namespace

Status small_matrices(MatrixOp op, const Tensor& a, const Tensor* b, bool& taken, SmallMatrices& results) {
  taken = false;
  if (!are_matrices(op, a, b)) return {};
  Tensor a_stack, b_stack;
  DLBRIDGE_TRY(stack_of(a, a_stack));
  if (b != nullptr) DLBRIDGE_TRY(stack_of(*b, b_stack));
  const Tensor* const stacks[2] = {&a_stack, &b_stack};
  std::int64_t shape[kMaxDims];
  int ndim = 0;
  DLBRIDGE_TRY(broadcast_shapes({stacks, b == nullptr ? 1U : 2U}, shape, ndim));
  const Dims stack(shape, static_cast<std::size_t>(ndim));
  MatrixArgs args{};
  args.op = op;
  args.dtype = dtype_of(a);
  args.n = a.dl.shape[a.dl.ndim - 1];
  if (op == MatrixOp::kSolve) args.columns = b->dl.shape[b->dl.ndim - 1];
  else args.columns = op == MatrixOp::kInv || op == MatrixOp::kCholesky ? args.n : 0;
  args.matrices = 1;
  for (const std::int64_t extent : stack) args.matrices *= extent;
  if (functors::plan_matrices(args).bytes == 0 || !read_stack(a, a_stack, b, b_stack, stack, args)) return {};
  taken = true;
  DLBRIDGE_TRY(make_results(args, stack, a.dl.device, results));
  return launch(args, a, b, results);
}

}  // namespace dlbridge::nd
