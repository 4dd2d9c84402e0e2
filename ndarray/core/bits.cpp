#include "ndarray/core/bits.h"

#include <limits>

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"

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

// x itself where it is dense and of bytes, or a copy that is: of whether an element of more than one is 0.
Status as_bytes(const Tensor& x, Tensor& copy, const Tensor*& ready) {
  ready = &x;
  if (x.itemsize() == 1 && is_c_contiguous(x)) return {};
  DLBRIDGE_TRY(copy_as(x, x.itemsize() == 1 ? dtype_of(x) : DType::kBool, CopyOrder::kC, copy));
  ready = &copy;
  return {};
}

}  // namespace

Status pack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  done = is_bool(dtype_of(x)) || is_integer(dtype_of(x));
  if (!done) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(as_bytes(x, copy, ready));
  return convert(DenseOp::kPackBits, *ready, x.size / 8 + (x.size % 8 != 0 ? 1 : 0), little, out);
}

Status unpack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  done = dtype_of(x) == DType::kUInt8 && x.size <= std::numeric_limits<std::int64_t>::max() / 8;
  if (!done) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(as_bytes(x, copy, ready));
  return convert(DenseOp::kUnpackBits, *ready, 8 * x.size, little, out);
}

}  // namespace dlbridge::nd
