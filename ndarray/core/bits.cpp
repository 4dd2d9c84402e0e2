#include "ndarray/core/bits.h"

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"
#include "ndarray/kernels/host/bits.h"

namespace dlbridge::nd {

Status pack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  const DType dtype = dtype_of(x);
  done = is_host(x.dl.device) && (is_bool(dtype) || is_integer(dtype));
  if (!done) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(ready_as(x.itemsize() == 1 ? dtype : DType::kBool, x, copy, ready));
  const std::int64_t size = x.size / 8 + (x.size % 8 != 0 ? 1 : 0);
  DLBRIDGE_TRY(make_array(out, DType::kUInt8, {&size, 1}, x.dl.device));
  const Tensor* const used[] = {ready};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::pack_bits(elements<std::uint8_t>(*ready), x.size, little, elements<std::uint8_t>(out));
  return call.end(0, "packbits");
}

Status unpack_bits(const Tensor& x, bool little, Tensor& out, bool& done) {
  std::int64_t size = 0;
  done = lies_ready(x) && dtype_of(x) == DType::kUInt8 && !__builtin_mul_overflow(x.size, 8, &size);
  if (!done) return {};
  DLBRIDGE_TRY(make_array(out, DType::kUInt8, {&size, 1}, x.dl.device));
  const Tensor* const used[] = {&out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::unpack_bits(elements<std::uint8_t>(x), x.size, little, elements<std::uint8_t>(out));
  return call.end(0, "unpackbits");
}

}  // namespace dlbridge::nd
