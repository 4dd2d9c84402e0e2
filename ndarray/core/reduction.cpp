#include "ndarray/core/reduction.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"

namespace dlbridge::nd {

namespace {

bool is_arg(ReduceOp op) noexcept { return op == ReduceOp::kArgmax || op == ReduceOp::kArgmin; }
bool has_identity(ReduceOp op) noexcept {
  return !is_arg(op) && op != ReduceOp::kMax && op != ReduceOp::kMin;
}
bool returns_real(ReduceOp op) noexcept {
  return op == ReduceOp::kVar || op == ReduceOp::kStd || (op >= ReduceOp::kNorm1 && op <= ReduceOp::kNormMinusInf);
}
bool is_additive(ReduceOp op) noexcept { return op == ReduceOp::kSum || op == ReduceOp::kProd; }
bool is_averaging(ReduceOp op) noexcept { return op >= ReduceOp::kMean && op <= ReduceOp::kNormMinusInf; }

DType widened(DType t) noexcept {
  if (is_bool(t) || is_signed(t)) return DType::kInt64;
  return is_unsigned(t) ? DType::kUInt64 : t;
}
// 16-bit floats are summed in float32 and rounded once.
DType accumulator_of(DType t) noexcept { return is_float(t) && itemsize(t) == 2 ? DType::kFloat32 : t; }

struct Dtypes {
  DType accumulate, out;
};

Dtypes choose_dtypes(ReduceOp op, DType in, std::optional<DType> asked) noexcept {
  switch (op) {
    case ReduceOp::kAny:
    case ReduceOp::kAll: return {in, DType::kBool};
    case ReduceOp::kCountNonzero: return {in, DType::kInt64};
    case ReduceOp::kArgmax:
    case ReduceOp::kArgmin: return {in, DType::kInt64};
    case ReduceOp::kMax:
    case ReduceOp::kMin: return {in, asked.value_or(in)};
    default: break;
  }
  DType base = asked.value_or(is_additive(op) ? widened(in) : in);
  if (is_averaging(op) && !is_float(base) && !is_complex(base)) base = DType::kFloat64;
  return {accumulator_of(base), returns_real(op) ? detail::real_part(base) : base};
}

struct Dim {
  std::int64_t extent, in, other;  // strides: of the input in bytes, and of the output or of the position
};

int merge(Dim* dims, int count) {
  std::sort(dims, dims + count, [](const Dim& a, const Dim& b) { return std::llabs(a.in) < std::llabs(b.in); });
  int last = 0;
  for (int d = 1; d < count; ++d) {
    Dim& inner = dims[last];
    if (dims[d].in == inner.in * inner.extent && dims[d].other == inner.other * inner.extent) inner.extent *= dims[d].extent;
    else dims[++last] = dims[d];
  }
  return count == 0 ? 0 : last + 1;
}

struct Split {
  int kept = 0, reduced = 0;
  Dim kept_dims[kMaxDims], reduced_dims[kMaxDims];
  std::int64_t kept_size = 1, reduced_size = 1;
  const char* data;
};

// `out` has the kept axes only, in order.
Split split_axes(ReduceOp op, const Tensor& x, AxisMask axes, const Tensor& out) {
  Split s;
  s.data = static_cast<const char*>(x.dl.data);
  int kept_axis = out.dl.ndim;
  std::int64_t position = 1;
  for (int axis = x.dl.ndim - 1; axis >= 0; --axis) {
    const std::int64_t extent = x.dl.shape[axis];
    std::int64_t stride = x.dl.strides[axis] * x.itemsize();
    if (((axes >> axis) & 1) == 0) {
      --kept_axis;
      s.kept_size *= extent;
      if (extent != 1) s.kept_dims[s.kept++] = {extent, stride, out.dl.strides[kept_axis] * out.itemsize()};
      continue;
    }
    s.reduced_size *= extent;
    if (extent != 1) {
      if (stride < 0 && !is_arg(op) && x.size != 0) {  // the order does not matter: walk it forwards
        s.data += stride * (extent - 1);
        stride = -stride;
      }
      s.reduced_dims[s.reduced++] = {extent, stride, is_arg(op) ? position : 0};
    }
    position *= extent;
  }
  if (!is_arg(op))
    for (int d = 0; d < s.reduced; ++d) s.reduced_dims[d].other = 0;
  s.kept = merge(s.kept_dims, s.kept);
  s.reduced = merge(s.reduced_dims, s.reduced);
  return s;
}

void fill_args(const Split& s, ReduceArgs& args) {
  args.kept_ndim = s.kept;
  args.reduced_ndim = s.reduced;
  args.kept_size = s.kept_size;
  args.reduced_size = s.reduced_size;
  args.in = s.data;
  for (int d = 0; d < s.kept; ++d) {
    args.kept_shape[d] = s.kept_dims[d].extent;
    args.kept_in_strides[d] = s.kept_dims[d].in;
    args.kept_out_strides[d] = s.kept_dims[d].other;
  }
  for (int d = 0; d < s.reduced; ++d) {
    args.reduced_shape[d] = s.reduced_dims[d].extent;
    args.reduced_in_strides[d] = s.reduced_dims[d].in;
    args.index_strides[d] = s.reduced_dims[d].other;
  }
}

Status launch_reduce(ReduceOp op, const Tensor& x, AxisMask axes, Dtypes dtypes, double correction, const Tensor& out) {
  if (out.size == 0) return {};
  const Split s = split_axes(op, x, axes, out);
  if (s.kept > kLoopDims || s.reduced > kLoopDims) {  // so many dims that do not merge: a dense copy has few
    Tensor dense;
    DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, dense));
    const Split again = split_axes(op, dense, axes, out);
    if (again.kept > kLoopDims || again.reduced > kLoopDims)
      return malformed("reductions over more than 12 separate groups of axes are not supported. Reduce in two steps");
    return launch_reduce(op, dense, axes, dtypes, correction, out);
  }
  ReduceArgs args;
  args.op = op;
  args.in_dtype = dtype_of(x);
  args.accumulate = dtypes.accumulate;
  args.out_dtype = dtype_of(out);
  args.correction = correction;
  args.out = out.dl.data;
  fill_args(s, args);
  KernelCall call(x.dl.device);
  DLBRIDGE_TRY(call.begin({&x, &out}));
  args.stream = call.stream();
  args.workspace = call.workspace();
  const int code = call.backend().reduce(args);
  if (code == kErrorUnsupported && dtypes.accumulate != dtype_of(x)) {  // a pair without a kernel: cast first
    Tensor cast;
    DLBRIDGE_TRY(copy_as(x, dtypes.accumulate, CopyOrder::kKeep, cast));
    return launch_reduce(op, cast, axes, dtypes, correction, out);
  }
  return call.end(code, info(op).name.data());
}

Status refuse_empty(ReduceOp op, const Tensor& x, AxisMask axes) {
  if (has_identity(op)) return {};
  std::int64_t kept = 1, reduced = 1;
  for (int axis = 0; axis < x.dl.ndim; ++axis) (((axes >> axis) & 1) != 0 ? reduced : kept) *= x.dl.shape[axis];
  if (reduced != 0 || (kept == 0 && !is_arg(op))) return {};
  return malformed(std::string(info(op).name) + " of an empty axis is undefined: the array has shape " +
                   shape_text(shape_of(x)) + ". Give an array with elements there");
}

// The result's shape with and without the reduced axes.
struct Shapes {
  std::int64_t kept[kMaxDims], full[kMaxDims];
  std::size_t kept_ndim = 0, full_ndim = 0;
};
Shapes result_shapes(const Tensor& x, AxisMask axes, bool keepdims) {
  Shapes s;
  for (int axis = 0; axis < x.dl.ndim; ++axis) {
    const bool reduced = ((axes >> axis) & 1) != 0;
    if (!reduced) s.kept[s.kept_ndim++] = x.dl.shape[axis];
    if (!reduced || keepdims) s.full[s.full_ndim++] = reduced ? 1 : x.dl.shape[axis];
  }
  return s;
}

}  // namespace

Status reduce(ReduceOp op, const Tensor& x, AxisMask axes, const ReduceOptions& options, Tensor& result) {
  DLBRIDGE_TRY(refuse_empty(op, x, axes));
  const Dtypes dtypes = choose_dtypes(op, dtype_of(x), options.dtype);
  const Shapes shapes = result_shapes(x, axes, options.keepdims);
  const Dims kept(shapes.kept, shapes.kept_ndim), full(shapes.full, shapes.full_ndim);
  Tensor out;
  DLBRIDGE_TRY(make_array(out, dtypes.out, kept, x.dl.device));
  DLBRIDGE_TRY(launch_reduce(op, x, axes, dtypes, options.correction, out));
  if (options.out != nullptr) {
    if (!std::ranges::equal(shape_of(*options.out), full))
      return malformed("the output has shape " + shape_text(shape_of(*options.out)) + ", the result " + shape_text(full) +
                       ". Give an output of that shape");
    if (!can_cast_same_kind(dtypes.out, dtype_of(*options.out)))
      return {ErrorCode::kWrongType, "cannot cast the result from " + std::string(dlbridge::info(dtypes.out).name) +
                                         " to " + std::string(options.out->dtype().name) + " (same_kind)"};
    Tensor view;
    bool viewed = true;
    DLBRIDGE_TRY(reshape_view(out, full, Order::kC, view, viewed));
    return assign(*options.out, Input{&view, {}}, info(op).name.data());
  }
  if (!options.keepdims) {
    result = std::move(out);
    return {};
  }
  bool viewed = true;
  return reshape_view(out, full, Order::kC, result, viewed);
}

namespace {
// Dense C order, as scans and sorts take it: the array itself, or a copy.
Status as_dense(const Tensor& x, Tensor& copy, const Tensor*& dense) {
  dense = &x;
  if (is_c_contiguous(x)) return {};
  DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, copy));
  dense = &copy;
  return {};
}
}  // namespace

Status scan(ScanOp op, const Tensor& x, int axis, std::optional<DType> dtype, Tensor& result) {
  const DType out_dtype = dtype.value_or(widened(dtype_of(x)));
  DLBRIDGE_TRY(make_array(result, out_dtype, shape_of(x), x.dl.device));
  if (x.size == 0) return {};
  Tensor copy;
  const Tensor* dense = nullptr;
  DLBRIDGE_TRY(as_dense(x, copy, dense));
  ScanArgs args{op, dtype_of(x), out_dtype, 1, x.dl.shape[axis], 1, dense->dl.data, result.dl.data, {}, 0};
  for (int k = 0; k < x.dl.ndim; ++k)
    if (k != axis) (k < axis ? args.outer : args.inner) *= x.dl.shape[k];
  KernelCall call(x.dl.device);
  DLBRIDGE_TRY(call.begin({dense, &result}));
  args.stream = call.stream();
  args.workspace = call.workspace();
  return call.end(call.backend().scan(args), op == ScanOp::kSum ? "cumulative_sum" : "cumulative_prod");
}

namespace {
// The axis moved to the end (and, being its own inverse here, a last axis moved back where `inverse`).
void move_axis_last(int ndim, int axis, bool inverse, std::int8_t (&axes)[kMaxDims]) {
  for (int k = 0, next = 0; k < ndim; ++k)
    if (k != axis) axes[next++] = static_cast<std::int8_t>(k);
  axes[ndim - 1] = static_cast<std::int8_t>(axis);
  if (!inverse) return;
  std::int8_t back[kMaxDims];
  for (int k = 0; k < ndim; ++k) back[axes[k]] = static_cast<std::int8_t>(k);
  std::copy_n(back, ndim, axes);
}

Status launch_sort(const Tensor& rows, const SortOptions& options, Tensor* keys, Tensor* indices) {
  SortArgs args{};
  args.dtype = dtype_of(rows);
  args.descending = options.descending;
  args.stable = options.stable;
  args.n = rows.dl.shape[rows.dl.ndim - 1];
  args.rows = rows.size / args.n;
  args.keys_in = rows.dl.data;
  args.keys_out = keys == nullptr ? nullptr : keys->dl.data;
  args.indices = indices == nullptr ? nullptr : static_cast<std::int64_t*>(indices->dl.data);
  KernelCall call(rows.dl.device);
  DLBRIDGE_TRY(call.begin({&rows, keys != nullptr ? keys : indices}));
  args.stream = call.stream();
  args.workspace = call.workspace();
  return call.end(call.backend().sort(args), "sort");
}

Status sort_along(const Tensor& x, int axis, const SortOptions& options, bool want_indices, Tensor& result) {
  const int n = x.dl.ndim;
  std::int8_t axes[kMaxDims];
  move_axis_last(n, axis, false, axes);
  Tensor moved, dense, made;
  DLBRIDGE_TRY(transpose_view(x, {axes, static_cast<std::size_t>(n)}, moved));
  const Tensor* rows = &moved;
  if (!is_c_contiguous(moved)) {
    DLBRIDGE_TRY(copy_as(moved, dtype_of(x), CopyOrder::kC, dense));
    rows = &dense;
  }
  const bool in_place = rows == &dense && !want_indices;
  if (!in_place)
    DLBRIDGE_TRY(make_array(made, want_indices ? DType::kInt64 : dtype_of(x), shape_of(*rows), x.dl.device));
  Tensor& target = in_place ? dense : made;
  if (x.size != 0) DLBRIDGE_TRY(launch_sort(*rows, options, want_indices ? nullptr : &target, want_indices ? &target : nullptr));
  move_axis_last(n, axis, true, axes);
  return transpose_view(target, {axes, static_cast<std::size_t>(n)}, result);
}
}  // namespace

Status sort(const Tensor& x, int axis, const SortOptions& options, Tensor& keys) {
  return sort_along(x, axis, options, false, keys);
}
Status argsort(const Tensor& x, int axis, const SortOptions& options, Tensor& indices) {
  return sort_along(x, axis, options, true, indices);
}

Status searchsorted(const Tensor& sorted, const Tensor& values, bool right, Tensor& result) {
  DLBRIDGE_TRY(make_array(result, DType::kInt64, shape_of(values), values.dl.device));
  if (values.size == 0) return {};
  Tensor sorted_copy, values_copy;
  const Tensor *dense_sorted = nullptr, *dense_values = nullptr;
  DLBRIDGE_TRY(as_dense(sorted, sorted_copy, dense_sorted));
  DLBRIDGE_TRY(as_dense(values, values_copy, dense_values));
  SearchArgs args{dtype_of(values), right, dense_sorted->dl.data, sorted.size, dense_values->dl.data, values.size,
                  static_cast<std::int64_t*>(result.dl.data), 0};
  KernelCall call(values.dl.device);
  DLBRIDGE_TRY(call.begin({dense_sorted, dense_values, &result}));
  args.stream = call.stream();
  return call.end(call.backend().search(args), "searchsorted");
}

}  // namespace dlbridge::nd
