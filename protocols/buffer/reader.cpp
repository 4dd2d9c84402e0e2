#include <string>

#include "dlbridge/validate.h"
#include "protocols/buffer/buffer.h"
#include "protocols/buffer/format.h"
#include "protocols/common/errors.h"
#include "protocols/common/held_buffer.h"

namespace dlbridge::buffer {

using py::Read;

namespace {

Status refuse_indirect() {
  return refused("the buffer has suboffsets (pointers to rows); DLPack needs one block of memory. Copy it to a dense "
                 "array first, for example bytes(memoryview(obj))");
}

Status check_length(const Tensor& tensor, std::int64_t length) {
  return check_fits_in_memory(tensor.dl.ndim, tensor.dl.shape, nullptr, StrideUnit::kElements, tensor.itemsize(), 0,
                              length, "This must be fixed in the exporter");
}

Status decode(const Py_buffer& view, py::ReadCall& call, Tensor& tensor) {
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  const DTypeInfo* dtype = &info(DType::kUInt8);
  const bool plain_bytes =
      view.itemsize == 1 && (view.format == nullptr || (view.format[0] == 'B' && view.format[1] == '\0'));
  if (!plain_bytes) DLBRIDGE_TRY(parse_format(view.format, view.itemsize, dtype, call.swapped));
  if (view.suboffsets != nullptr) [[unlikely]] {
    for (int i = 0; i < view.ndim; ++i)
      if (view.suboffsets[i] >= 0) return refuse_indirect();
  }
  tensor.dl.data = view.buf;
  tensor.dl.device = {kDLCPU, 0};
  tensor.set_dtype(*dtype);
  if (view.readonly != 0) tensor.flags |= kFlagReadOnly;
  if (view.ndim == 1 && view.itemsize == 1 && (view.shape == nullptr || view.shape[0] <= view.len) &&
      (view.strides == nullptr || view.strides[0] == 1)) [[likely]]
    return build_byte_layout(tensor, view.shape != nullptr ? view.shape[0] : view.len);
  if (view.shape == nullptr && view.ndim > 1) [[unlikely]]
    return malformed("the buffer's shape is null with ndim " + std::to_string(view.ndim) +
                     " although strides were asked for (PEP 3118). This must be fixed in the exporter");
  const std::int64_t extent = view.len / view.itemsize;
  const auto* shape = view.shape == nullptr ? &extent : reinterpret_cast<const std::int64_t*>(view.shape);
  DLBRIDGE_TRY(
      build_layout<StrideUnit::kBytes>(tensor, view.ndim, shape, reinterpret_cast<const std::int64_t*>(view.strides)));
  // Without strides the elements lie densely in the `len` bytes (PEP 3118); with them nothing says how far they reach.
  return view.strides == nullptr ? check_length(tensor, view.len) : Status();
}

}  // namespace

Read read(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  if (!PyObject_CheckBuffer(object)) return Read::kAbsent;
  if (!py::hold_buffer(object, self)) return Read::kFailed;
  if (Status status = decode(self->view, call, self->tensor); !status.ok()) [[unlikely]]
    return call.refuse(std::move(status));
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::buffer
