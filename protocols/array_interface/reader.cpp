// __array_interface__: the dictionary, with the four forms that its `data` takes.
#include <string>

#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/array_interface/interface_dict.h"
#include "protocols/buffer/buffer.h"

namespace dlbridge::array_interface {

namespace {

bool parse_offset(const InterfaceDict& interface, std::int64_t& out) {
  out = 0;
  PyObject* offset = PyDict_GetItemWithError(interface.dict, py::names.offset);
  if (offset == nullptr) return PyErr_Occurred() == nullptr;
  const py::Ref number(PyNumber_Index(offset));
  if (!number) return false;
  out = PyLong_AsLongLong(number.get());
  if (out == -1 && PyErr_Occurred() != nullptr) return false;
  if (out >= 0) return true;
  return refuse(interface, malformed("'offset' is " + std::to_string(out) + "; it must not be negative"));
}

// The described array must lie inside the buffer that it is said to live in: nothing else bounds it.
Status check_bounds(const Tensor& tensor, std::int64_t offset, std::int64_t length) {
  if (tensor.size == 0) return {};
  const ElementSpan span = element_span(tensor.dl);
  std::int64_t high;
  const bool overflows = __builtin_add_overflow(span.high * tensor.itemsize(), offset, &high);
  const std::int64_t low = span.low * tensor.itemsize() + offset;
  if (!overflows && low >= 0 && high <= length) return {};
  return malformed("shape, strides and offset reach from byte " + std::to_string(low) + " to " +
                   (overflows ? "infinity" : std::to_string(high)) + " of a buffer of " + std::to_string(length) +
                   " bytes. The producer must mend it");
}

// `data` is a buffer object, or None for the object's own buffer: its Py_buffer is held (Pillow makes fresh bytes
// at each access), and `offset` counts; with an address it does not.
bool place_in_buffer(PyObject* exporter, const InterfaceDict& interface, py::TensorObject* self) {
  std::int64_t offset;
  if (!parse_offset(interface, offset) || !buffer::hold(exporter, self)) return false;
  Tensor& tensor = self->tensor;
  if (!PyBuffer_IsContiguous(&self->view, 'C'))
    return refuse(interface, refused("'data' is a buffer that is not contiguous. The producer must mend it"));
  if (offset > self->view.len) return refuse(interface, malformed("'offset' lies behind the end of the buffer"));
  tensor.dl.data = static_cast<char*>(self->view.buf) + offset;
  if (self->view.readonly != 0) tensor.flags |= kFlagReadOnly;
  return true;
}

bool place_data(PyObject* object, const InterfaceDict& interface, py::TensorObject* self) {
  PyObject* data = interface.data;
  if (data == nullptr)
    return refuse(interface,
                  malformed("'data' is missing. The producer must give (address, read_only), a buffer, or None"));
  if (data == Py_None) return place_in_buffer(object, interface, self);
  if (!PyTuple_Check(data) && PyObject_CheckBuffer(data)) return place_in_buffer(data, interface, self);
  return place_at_address(interface, self->tensor);
}

}  // namespace

Read read_dict(PyObject* object, py::TensorObject* self) {
  const py::Ref dict = py::optional_attribute(object, py::names.array_interface);
  if (!dict) return PyErr_Occurred() != nullptr ? Read::kFailed : Read::kAbsent;
  InterfaceDict interface;
  if (!parse_interface_dict(dict.get(), "__array_interface__", 2, interface)) return Read::kFailed;
  Tensor& tensor = self->tensor;
  tensor.dl.device = {kDLCPU, 0};
  if (!place_data(object, interface, self)) return Read::kFailed;
  const void* placed = tensor.dl.data;
  Status status = lay_out(interface, tensor);
  if (status.ok() && buffer::holds_view(self))
    status = check_bounds(tensor, static_cast<const char*>(placed) - static_cast<char*>(self->view.buf),
                          self->view.len);
  if (!status.ok()) {
    refuse(interface, status);
    return Read::kFailed;
  }
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::array_interface
