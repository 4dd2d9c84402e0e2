#include "ndarray/core/dense.h"

#include "dlbridge/validate.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"

namespace dlbridge::nd {

namespace {

// How the results lie.
struct Layout {
  Dims shape;
  bool is_c;
  std::int8_t axes[kMaxDims];
  DLDevice device;

  Status make(DType dtype, Tensor& out) const {
    if (is_c) return make_array(out, dtype, shape, device);
    return make_array_as(out, dtype, shape, {axes, shape.size()}, device);
  }
};

bool lies_as(const Tensor& x, const Tensor& dense) noexcept {
  if (x.dl.ndim != dense.dl.ndim || !is_aligned(x) || !is_loadable(x)) return false;
  for (int k = 0; k < x.dl.ndim; ++k)
    if (x.dl.shape[k] != dense.dl.shape[k] || (x.dl.shape[k] > 1 && x.dl.strides[k] != dense.dl.strides[k]))
      return false;
  return true;
}

// Whether all elements are one in memory.
bool is_one_element(const Tensor& x) noexcept {
  for (int k = 0; k < x.dl.ndim; ++k)
    if (x.dl.shape[k] > 1 && x.dl.strides[k] != 0) return false;
  return x.size > 0 && is_aligned(x) && is_loadable(x);
}

bool are_alike(const Tensor& x, const Tensor& y, DTypeSet dtypes) noexcept {
  return contains(dtypes, dtype_of(x)) && dtype_of(x) == dtype_of(y) && same_device(x.dl.device, y.dl.device);
}

// Whether it does to both parts of complex numbers what it does to floats.
bool is_of_parts(DenseOp op) noexcept { return op == DenseOp::kReplaceSpecials || op == DenseOp::kRoundAt; }

}  // namespace

namespace {
Status launch(DenseArgs& args, DLDevice device, std::span<const Tensor* const> used, const char* what) {
  if (is_complex(args.dtype) && is_of_parts(args.op)) {
    args.dtype = real_part(args.dtype);
    args.n *= 2;
  }
  KernelCall call(device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().dense(args), what);
}

// Arrays of the host, of one shape, whose results lie in C order.
template <std::size_t kArrays>
Status run_in_parts(const DenseArgs& given, const Tensor* const (&inputs)[kArrays], std::span<const DType> dtypes,
                    Tensor* outs, const char* what) {
  DType computes[kArrays];
  std::ranges::fill(computes, given.dtype);
  return in_parts(inputs, computes, what, [&](std::int64_t first, std::int64_t n, const void* const* data) {
    DenseArgs args = given;
    args.n = n;
    const Tensor* used[kArrays + 1];
    used[kArrays] = &outs[0];
    for (std::size_t k = 0; k < kArrays; ++k) args.in[k] = data[k], used[k] = inputs[k];
    for (std::size_t k = 0; k < dtypes.size(); ++k) args.out[k] = elements<char>(outs[k]) + first * outs[k].itemsize();
    return launch(args, inputs[0]->dl.device, used, what);
  });
}
}  // namespace

Status run_dense(DenseArgs args, std::span<const Tensor* const> inputs, std::span<const DType> dtypes, Tensor* outs,
                 const char* what, std::optional<DType> compute) {
  args.dtype = compute.value_or(dtype_of(*inputs[0]));
  std::int64_t shape[kMaxDims];
  int ndim = 0;
  DLBRIDGE_TRY(broadcast_shapes(inputs, shape, ndim));
  Layout layout{{shape, static_cast<std::size_t>(ndim)}, false, {}, inputs[0]->dl.device};
  layout.is_c = memory_order(inputs, layout.shape, layout.axes);
  const Tensor* used[4];
  std::size_t arrays = 0;
  for (std::size_t k = 0; k < dtypes.size(); ++k) {
    DLBRIDGE_TRY(layout.make(dtypes[k], outs[k]));
    args.out[k] = outs[k].dl.data;
    used[arrays++] = &outs[k];
  }
  if (outs[0].size == 0) return {};
  if (is_host(layout.device) && layout.is_c && outs[0].size > 1) {
    if (inputs.size() == 1) return run_in_parts<1>(args, {inputs[0]}, dtypes, outs, what);
    const auto is_there = [&](const Tensor* x) {
      return dtype_of(*x) == args.dtype && (lies_as(*x, outs[0]) || is_one_element(*x));
    };
    if (same_shape(*inputs[0], *inputs[1]) && !std::ranges::all_of(inputs, is_there))
      return run_in_parts<2>(args, {inputs[0], inputs[1]}, dtypes, outs, what);
  }
  Tensor copies[2];
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor* x = inputs[k];
    const bool may_repeat = x->size == 1 || inputs.size() > 1;  // and one of two alone, see DenseArgs
    const bool is_one = may_repeat && is_one_element(*x) && !(k == 1 && args.repeats[0]) && dtype_of(*x) == args.dtype;
    args.repeats[k] = is_one && outs[0].size > 1;
    if (!is_one && !(dtype_of(*x) == args.dtype && lies_as(*x, outs[0]))) {
      DLBRIDGE_TRY(layout.make(args.dtype, copies[k]));
      DLBRIDGE_TRY(assign(copies[k], {x, {}}, what));
      x = &copies[k];
    }
    args.in[k] = x->dl.data;
    used[arrays++] = x;
  }
  args.n = outs[0].size;
  return launch(args, layout.device, {used, arrays}, what);
}

Status is_close(const Tensor& x, const Tensor& y, double relative, double absolute, bool equal_nan, Tensor& out,
                bool& done) {
  // The host rounds 16-bit floats one by one here, and in vectors where each step is an array.
  constexpr DTypeSet kNumbers = (kBoolSet | kRealSet) & ~kHalfSet;
  const bool on_host = is_host(x.dl.device) && is_host(y.dl.device);
  const bool converts = on_host && contains(kNumbers, dtype_of(x)) && contains(kNumbers, dtype_of(y));
  done = converts || (are_alike(x, y, kInexactSet) && (x.itemsize() != 2 || !on_host));
  if (!done) return {};
  const Tensor* const inputs[] = {&x, &y};
  const DType dtypes[] = {DType::kBool};
  DenseArgs args{};
  args.op = DenseOp::kIsClose;
  args.flag = equal_nan;
  args.numbers[0] = absolute;
  args.numbers[1] = relative;
  const DType compute = converts ? promote(promote(dtype_of(x), dtype_of(y)), DType::kFloat32) : dtype_of(x);
  return run_dense(args, inputs, dtypes, &out, "isclose", compute);
}

Status divide_with_rest(const Tensor& x, const Tensor& y, Tensor (&parts)[2], bool& done) {
  done = are_alike(x, y, kRealSet);
  if (!done) return {};
  const Tensor* const inputs[] = {&x, &y};
  const DType dtypes[] = {dtype_of(x), dtype_of(x)};
  DenseArgs args{};
  args.op = DenseOp::kDivide;
  return run_dense(args, inputs, dtypes, parts, "divmod");
}

}  // namespace dlbridge::nd
