#include <string>

#include "dlbridge/validate.h"
#include "protocols/buffer/buffer.h"
#include "protocols/buffer/format.h"
#include "protocols/common/errors.h"

namespace dlbridge::buffer {

namespace {

constexpr char kOperation[] = "asdlpack()";

// Runs where the tensor object dies, under the GIL (protocols/common/tensor_object.h).
void release_view(void* context) noexcept {
  py::ErrorGuard guard;
  PyBuffer_Release(static_cast<Py_buffer*>(context));
}

Status refuse_indirect() {
  return refused("the buffer has suboffsets (pointers to rows); DLPack needs one block of memory. Copy it to a dense "
                 "array first, for example bytes(memoryview(obj))");
}

Status decode(const Py_buffer& view, Tensor& tensor) {
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  const DTypeInfo* dtype = &info(DType::kUInt8);
  const bool plain_bytes =
      view.itemsize == 1 && (view.format == nullptr || (view.format[0] == 'B' && view.format[1] == '\0'));
  if (!plain_bytes) DLBRIDGE_TRY(parse_format(view.format, view.itemsize, dtype));
  if (view.suboffsets != nullptr) [[unlikely]] {
    for (int i = 0; i < view.ndim; ++i)
      if (view.suboffsets[i] >= 0) return refuse_indirect();
  }
  tensor.dl.data = view.buf;
  tensor.dl.device = {kDLCPU, 0};
  tensor.set_dtype(*dtype);
  if (view.readonly != 0) tensor.flags |= kFlagReadOnly;
  if (view.ndim == 1 && view.itemsize == 1 && (view.strides == nullptr || view.strides[0] == 1)) [[likely]]
    return build_byte_layout(tensor, view.shape != nullptr ? view.shape[0] : view.len);
  if (view.shape == nullptr && view.ndim > 1) [[unlikely]]
    return malformed("the buffer's shape is null with ndim " + std::to_string(view.ndim) +
                     " although strides were asked for (PEP 3118). The exporter must mend it");
  const std::int64_t extent = view.len / view.itemsize;
  const auto* shape = view.shape == nullptr ? &extent : reinterpret_cast<const std::int64_t*>(view.shape);
  return build_layout<StrideUnit::kBytes>(tensor, view.ndim, shape, reinterpret_cast<const std::int64_t*>(view.strides));
}

}  // namespace

bool hold(PyObject* object, py::TensorObject* self) {
  // Read-only is asked for and `readonly` is read: a request for a writable view would refuse bytes (nanobind#206).
  if (PyObject_GetBuffer(object, &self->view, PyBUF_FULL_RO) != 0) return false;
  self->tensor.owner = Owner(&self->view, release_view);
  return true;
}

bool holds_view(const py::TensorObject* self) noexcept {
  return self->tensor.owner.release_function() == release_view;
}

Read read(PyObject* object, py::TensorObject* self) {
  if (!PyObject_CheckBuffer(object)) return Read::kAbsent;
  if (!hold(object, self)) return Read::kFailed;
  if (const Status status = decode(self->view, self->tensor); !status.ok()) [[unlikely]] {
    py::raise(kOperation, status.issue());
    return Read::kFailed;
  }
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::buffer
