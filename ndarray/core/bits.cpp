#include "ndarray/core/bits.h"

#include <algorithm>
#include <limits>

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/bits.h"

namespace dlbridge::nd {

namespace {

// A dense array of `size` bytes, of all of x in C order.
Status convert(DenseOp op, const Tensor& x, std::int64_t size, bool little, Tensor& out) {
  DLBRIDGE_TRY(make_array(out, DType::kUInt8, {&size, 1}, x.dl.device));
  if (size == 0) return {};
  DenseArgs args{};
  args.op = op;
  args.dtype = dtype_of(x);
  args.flag = little;
  args.n = x.size;
  args.in[0] = x.dl.data;
  args.out[0] = out.dl.data;
  const Tensor* const used[] = {&x, &out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().dense(args), op == DenseOp::kPackBits ? "packbits" : "unpackbits");
}

bool are_bytes(const Tensor& x, Order order) noexcept {
  return x.itemsize() == 1 && (order == Order::kF ? is_f_contiguous(x) : is_c_contiguous(x));
}

// x itself where it is dense in that order and of bytes, or a copy that is: of whether an element of more than one is
// 0.
Status as_bytes(const Tensor& x, Order order, Tensor& copy, const Tensor*& ready) {
  ready = &x;
  if (are_bytes(x, order)) return {};
  ready = &copy;
  const DType dtype = x.itemsize() == 1 ? dtype_of(x) : DType::kBool;
  return copy_as(x, dtype, order == Order::kF ? CopyOrder::kF : CopyOrder::kC, copy);
}

// The kernel of an axis: kernel(x, axis, out), where `extent` is the result's, and no more than `read` elements are
// copied. A result of one in Fortran's order lies in it, too; then the axes are seen in reverse.
template <class Kernel>
Status convert_along(const Tensor& x, int axis, std::int64_t read, std::int64_t extent, Tensor& out, const char* what,
                     Kernel kernel) {
  const Order order = order_of(x);
  const bool reversed = order == Order::kF;
  const auto ndim = static_cast<std::size_t>(x.dl.ndim);
  std::int64_t shape[kMaxDims];
  std::copy_n(x.dl.shape, ndim, shape);
  if (are_bytes(x, order)) read = x.dl.shape[axis];  // no copy is made
  shape[axis] = read;
  Tensor part, copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(make_view(x, {shape, ndim}, {x.dl.strides, ndim}, 0, part));
  DLBRIDGE_TRY(as_bytes(part, order, copy, ready));
  shape[axis] = extent;
  host_kernels::MiddleAxis middle{1, read, 1};
  for (int k = 0; k < x.dl.ndim; ++k) {
    if (k != axis) ((k < axis) != reversed ? middle.before : middle.behind) *= x.dl.shape[k];
  }
  DLBRIDGE_TRY(make_array(out, DType::kUInt8, {shape, ndim}, x.dl.device, order));
  if (out.size == 0) return {};
  const Tensor* const used[] = {ready, &out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  kernel(elements<std::uint8_t>(*ready), middle, elements<std::uint8_t>(out));
  return call.end(0, what);
}

}  // namespace

Status pack_bits_along(const Tensor& x, int axis, bool little, Tensor& out, bool& done) {
  done = is_host(x.dl.device) && (is_bool(dtype_of(x)) || is_integer(dtype_of(x)));
  if (!done) return {};
  const std::int64_t n = x.dl.shape[axis];
  return convert_along(x, axis, n, n / 8 + (n % 8 != 0 ? 1 : 0), out, "packbits",
                       [little](const std::uint8_t* from, host_kernels::MiddleAxis middle, std::uint8_t* to) {
                         host_kernels::pack_bits_along(from, middle, little, to);
                       });
}

Status unpack_bits_along(const Tensor& x, int axis, std::optional<std::int64_t> count, bool little, Tensor& out,
                         bool& done) {
  const bool fits = dtype_of(x) == DType::kUInt8 && x.dl.shape[axis] <= std::numeric_limits<std::int64_t>::max() / 8;
  const std::int64_t there = fits ? 8 * x.dl.shape[axis] : 0;
  const std::int64_t extent = !count ? there : *count < 0 ? there + *count : *count;
  done = is_host(x.dl.device) && fits && extent >= 0;
  if (!done) return {};
  const std::int64_t read = std::min(extent / 8 + (extent % 8 != 0 ? 1 : 0), x.dl.shape[axis]);
  return convert_along(x, axis, read, extent, out, "unpackbits",
                       [=](const std::uint8_t* from, host_kernels::MiddleAxis middle, std::uint8_t* to) {
                         host_kernels::unpack_bits_along(from, middle, extent, little, to);
                       });
}

Status pack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  done = is_bool(dtype_of(x)) || is_integer(dtype_of(x));
  if (!done) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(as_bytes(x, Order::kC, copy, ready));
  return convert(DenseOp::kPackBits, *ready, x.size / 8 + (x.size % 8 != 0 ? 1 : 0), little, out);
}

Status unpack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  done = dtype_of(x) == DType::kUInt8 && x.size <= std::numeric_limits<std::int64_t>::max() / 8;
  if (!done) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(as_bytes(x, Order::kC, copy, ready));
  return convert(DenseOp::kUnpackBits, *ready, 8 * x.size, little, out);
}

}  // namespace dlbridge::nd
