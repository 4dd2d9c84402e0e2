#include "ndarray/core/reduction.h"

#include <algorithm>
#include <string>

#include "dlbridge/validate.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/promotion.h"
#include "ndarray/core/views.h"

namespace dlbridge::nd {

namespace {

bool is_arg(ReduceOp op) noexcept { return op == ReduceOp::kArgmax || op == ReduceOp::kArgmin; }
bool has_identity(ReduceOp op) noexcept { return !is_arg(op) && op != ReduceOp::kMax && op != ReduceOp::kMin; }
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

// NumPy: numbers are added up as what they are added up into; averages of integers are float64's whatever takes them.
bool takes_dtype_of_out(ReduceOp op, DType in, DType out) noexcept {
  const auto inexact = [](DType t) { return is_float(t) || is_complex(t); };
  const bool is_moment = op == ReduceOp::kMean || op == ReduceOp::kVar || op == ReduceOp::kStd;
  return inexact(out) && (is_additive(op) || (is_moment && inexact(in)));
}

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
  return {accumulator_of(base), returns_real(op) ? real_part(base) : base};
}

// Dims to reduce, or to keep, merged; strides of the input in bytes, and of the output or of the position.
struct DimList {
  int ndim = 0;
  std::int64_t size = 1;
  std::int64_t shape[kMaxDims], in[kMaxDims], other[kMaxDims];

  void add(std::int64_t extent, std::int64_t in_stride, std::int64_t other_stride) noexcept {
    shape[ndim] = extent;
    in[ndim] = in_stride;
    other[ndim++] = other_stride;
  }
  void merge() noexcept {
    if (ndim < 2) return;  // most reductions: nothing to sort or to join
    std::int64_t* const rows[] = {in, other};
    sort_dims(shape, ndim, rows, 2, 0);
    ndim = merge_dims(shape, ndim, rows, 2);
  }
};

struct Split {
  DimList kept, reduced;
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
      s.kept.size *= extent;
      if (extent != 1) s.kept.add(extent, stride, out.dl.strides[kept_axis] * out.itemsize());
      continue;
    }
    s.reduced.size *= extent;
    if (extent != 1) {
      if (stride < 0 && !is_arg(op) && x.size != 0) {  // the order does not matter: walk it forwards
        s.data += stride * (extent - 1);
        stride = -stride;
      }
      s.reduced.add(extent, stride, is_arg(op) ? position : 0);
    }
    position *= extent;
  }
  s.kept.merge();
  s.reduced.merge();
  return s;
}

void fill_args(const Split& s, ReduceArgs& args) {
  args.kept_ndim = s.kept.ndim;
  args.reduced_ndim = s.reduced.ndim;
  args.kept_size = s.kept.size;
  args.reduced_size = s.reduced.size;
  args.in = s.data;
  std::copy_n(s.kept.shape, s.kept.ndim, args.kept_shape);
  // Where nothing is reduced nothing is read, and the address may be null: no kernel adds to it.
  if (s.reduced.size == 0) std::fill_n(args.kept_in_strides, s.kept.ndim, 0);
  else std::copy_n(s.kept.in, s.kept.ndim, args.kept_in_strides);
  std::copy_n(s.kept.other, s.kept.ndim, args.kept_out_strides);
  std::copy_n(s.reduced.shape, s.reduced.ndim, args.reduced_shape);
  std::copy_n(s.reduced.in, s.reduced.ndim, args.reduced_in_strides);
  std::copy_n(s.reduced.other, s.reduced.ndim, args.index_strides);
}

Status launch_reduce(ReduceOp op, const Tensor& x, AxisMask axes, Dtypes dtypes, double correction, const Tensor& out) {
  if (out.size == 0) return {};
  const Split s = split_axes(op, x, axes, out);
  if (s.kept.ndim > kLoopDims || s.reduced.ndim > kLoopDims) {  // so many dims that do not merge: a dense copy has few
    Tensor dense;
    DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, dense));
    const Split again = split_axes(op, dense, axes, out);
    if (again.kept.ndim > kLoopDims || again.reduced.ndim > kLoopDims)
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
  const Tensor* const used[] = {&x, &out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
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
  std::int64_t reduced = 1;
  for (int axis = 0; axis < x.dl.ndim; ++axis)
    if (((axes >> axis) & 1) != 0) reduced *= x.dl.shape[axis];
  if (reduced != 0) return {};
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

// The kept axes lie in the result as they do in the input, but for positions, which NumPy gives in C order.
Status make_output(ReduceOp op, const Tensor& x, AxisMask axes, DType dtype, Dims kept, Tensor& out) {
  if (kept.size() < 2 || is_arg(op) || is_c_contiguous(x)) return make_array(out, dtype, kept, x.dl.device);
  std::int64_t strides[kMaxDims];
  std::size_t n = 0;
  for (int axis = 0; axis < x.dl.ndim; ++axis)
    if (((axes >> axis) & 1) == 0) strides[n++] = x.dl.strides[axis];
  Tensor view;
  DLBRIDGE_TRY(make_view(x, kept, {strides, n}, 0, view));
  const Tensor* const input = &view;
  std::int8_t order[kMaxDims];
  memory_order({&input, 1}, kept, order);
  return make_array_as(out, dtype, kept, {order, n}, x.dl.device);
}

// No dtype that is asked for is ignored: what has one dtype of result takes that alone. Positions may be of any dtype
// of integers that holds the last.
Status check_dtype(ReduceOp op, const Tensor& x, AxisMask axes, std::optional<DType> asked) {
  if (!asked) return {};
  const std::string name(info(op).name), given(dlbridge::info(*asked).name);
  const bool is_truth = op == ReduceOp::kAny || op == ReduceOp::kAll;
  if (is_arg(op) && (is_signed(*asked) || is_unsigned(*asked))) {
    std::int64_t count = 1;
    for (int axis = 0; axis < x.dl.ndim; ++axis)
      if ((axes >> axis) & 1) count *= x.dl.shape[axis];
    const int bits = static_cast<int>(8 * itemsize(*asked)) - is_signed(*asked);
    if (bits >= 63 || (count - 1) >> bits <= 0) return {};
    return {ErrorCode::kOverflow, name + ": positions go up to " + std::to_string(count - 1) + ", which " + given +
                                      " does not hold. Leave dtype out"};
  }
  if ((is_truth && !is_bool(*asked)) || ((is_arg(op) || op == ReduceOp::kCountNonzero) && *asked != DType::kInt64))
    return {ErrorCode::kWrongType, name + " returns " + (is_truth ? "bool" : "int64") + ", and dtype is " + given +
                                       ". Convert its result: astype()"};
  if (is_averaging(op) && !is_float(*asked) && !is_complex(*asked))
    return {ErrorCode::kWrongType,
            name + " is computed in floats, and dtype is " + given + ". Convert its result: astype()"};
  return {};
}

}  // namespace

Status reduce(ReduceOp op, const Tensor& x, AxisMask axes, const ReduceOptions& options, Tensor& result) {
  DLBRIDGE_TRY(check_dtype(op, x, axes, options.dtype));
  if (options.out != nullptr && !options.dtype && takes_dtype_of_out(op, dtype_of(x), dtype_of(*options.out))) {
    ReduceOptions wider = options;
    wider.dtype = promote(dtype_of(x), dtype_of(*options.out));
    return reduce(op, x, axes, wider, result);
  }
  // The sum of truth values as a truth value is whether any holds, their product whether all do.
  if (is_additive(op) && options.dtype == DType::kBool) op = op == ReduceOp::kSum ? ReduceOp::kAny : ReduceOp::kAll;
  DLBRIDGE_TRY(refuse_empty(op, x, axes));
  // One element decides an extreme of bools, as it does all and any; the host stops at it.
  if (is_bool(dtype_of(x)) && !is_cuda(x.dl.device) && !options.dtype) {
    if (op == ReduceOp::kMin) op = ReduceOp::kAll;
    if (op == ReduceOp::kMax) op = ReduceOp::kAny;
  }
  const bool of_magnitudes = op == ReduceOp::kNorm1 || op == ReduceOp::kNormInf || op == ReduceOp::kNormMinusInf;
  if (of_magnitudes && is_complex(dtype_of(x)) &&
      is_host(x.dl.device)) {  // vectors take them, before they are added up
    Tensor magnitudes;
    const Input input{&x, {}};
    DLBRIDGE_TRY(elementwise(Op::kAbsolute, {&input, 1}, {}, magnitudes));
    return reduce(op, magnitudes, axes, options, result);
  }
  const Dtypes dtypes = choose_dtypes(op, dtype_of(x), options.dtype);
  const Shapes shapes = result_shapes(x, axes, options.keepdims);
  const Dims kept(shapes.kept, shapes.kept_ndim), full(shapes.full, shapes.full_ndim);
  Tensor out;
  DLBRIDGE_TRY(make_output(op, x, axes, dtypes.out, kept, out));
  Tensor bools;
  const Tensor* elements = &x;
  // The host's kernels take any byte that is not 0 for true.
  if (is_arg(op) && is_cuda(x.dl.device)) DLBRIDGE_TRY(comparable(x, bools, elements));
  DLBRIDGE_TRY(launch_reduce(op, *elements, axes, dtypes, options.correction, out));
  if (is_arg(op) && options.dtype && *options.dtype != dtypes.out) {
    Tensor positions = std::move(out);
    DLBRIDGE_TRY(copy_as(positions, *options.dtype, CopyOrder::kC, out));
  }
  if (options.out != nullptr) {
    Tensor view;
    bool viewed = true;
    DLBRIDGE_TRY(reshape_view(out, full, Order::kC, view, viewed));
    return store(view, *options.out, info(op).name.data());
  }
  if (!options.keepdims) {
    result = std::move(out);
    return {};
  }
  bool viewed = true;
  DLBRIDGE_TRY(reshape_view(out, full, Order::kC, result, viewed));
  result.flags = out.flags;  // it outlives what it is a view of
  return {};
}

namespace {

// Several dims as one, in elements; `one` is false where their strides do not allow that.
struct MergedDim {
  std::int64_t extent = 1, stride = 0;
  bool one = true;
  void add(std::int64_t outer_extent, std::int64_t outer_stride) noexcept {
    if (outer_extent == 1) return;
    if (extent == 1) stride = outer_stride;
    else one = one && outer_stride == stride * extent;
    extent *= outer_extent;
  }
};

}  // namespace

Status scan(ScanOp op, const Tensor& x, int axis, std::optional<DType> dtype, Tensor& result) {
  const DType out_dtype = dtype.value_or(widened(dtype_of(x)));
  if (is_bool(out_dtype) && !is_bool(dtype_of(x))) {  // of the truth of each, not the truth of each sum
    Tensor truths;
    DLBRIDGE_TRY(copy_as(x, DType::kBool, CopyOrder::kKeep, truths));
    return scan(op, truths, axis, dtype, result);
  }
  const Tensor* const input = &x;
  std::int8_t order[kMaxDims];
  memory_order({&input, 1}, shape_of(x), order);  // the result lies as the input does
  const std::span axes(order, static_cast<std::size_t>(x.dl.ndim));
  DLBRIDGE_TRY(make_array_as(result, out_dtype, shape_of(x), axes, x.dl.device));
  if (x.size == 0) return {};
  Tensor copy;
  const Tensor* source = &x;
  MergedDim inner, outer;
  const auto merge = [&] {
    inner = outer = {};
    bool inside = true;
    for (const std::int8_t k : axes) {
      if (k == axis) inside = false;
      else (inside ? inner : outer).add(source->dl.shape[k], source->dl.strides[k]);
    }
  };
  merge();
  if (!is_dense(x, axes) && !(is_host(x.dl.device) && inner.one && outer.one)) {
    DLBRIDGE_TRY(make_array_as(copy, dtype_of(x), shape_of(x), axes, x.dl.device));
    DLBRIDGE_TRY(assign(copy, Input{&x, {}}, "copy"));
    source = &copy;
    merge();
  }
  const std::int64_t size = x.itemsize();
  ScanArgs args{op,
                dtype_of(x),
                out_dtype,
                outer.extent,
                x.dl.shape[axis],
                inner.extent,
                source->dl.data,
                result.dl.data,
                {},
                0,
                {outer.stride * size, source->dl.strides[axis] * size, inner.stride * size}};
  const Tensor* const used[] = {source, &result};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  args.workspace = call.workspace();
  return call.end(call.backend().scan(args), op == ScanOp::kSum ? "cumulative_sum" : "cumulative_prod");
}

}  // namespace dlbridge::nd
