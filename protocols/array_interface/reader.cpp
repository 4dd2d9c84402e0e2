// __array_interface__: the dictionary, with the four forms that its `data` takes.
#include <string>

#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/common/errors.h"
#include "protocols/common/held_buffer.h"
#include "protocols/common/interface_dict.h"

namespace dlbridge::array_interface {

using py::Read;

namespace {

using py::InterfaceDict;

bool parse_offset(const InterfaceDict& interface, std::int64_t& out) {
  out = 0;
  py::Ref offset;
  if (!get_optional(interface, py::names.offset, offset)) return false;
  if (!offset) return true;
  if (!PyIndex_Check(offset.get()))
    return refuse(interface,
                  {ErrorCode::kWrongType, "'offset' is " + py::type_name(offset.get()) +
                                              "; it must be an integer. This must be fixed in the producer"});
  const py::Ref number(py::outlive_thread_exit([&] { return PyNumber_Index(offset.get()); }));
  if (!number) return false;
  int overflow = 0;
  out = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow != 0) return refuse(interface, dlbridge::overflow("'offset' does not fit in 64 bits"));
  if (out >= 0) return true;
  return refuse(interface, malformed("'offset' is " + std::to_string(out) + "; it must not be negative"));
}

// `data` is a buffer object, or absent for the object's own buffer: its Py_buffer is held (Pillow makes fresh bytes
// at each access), and `offset` counts; with an address it does not.
bool place_in_buffer(PyObject* exporter, const InterfaceDict& interface, py::TensorObject* self) {
  std::int64_t offset;
  if (!parse_offset(interface, offset) || !py::hold_buffer(exporter, self)) return false;
  Tensor& tensor = self->tensor;
  if (!PyBuffer_IsContiguous(&self->view, 'C'))
    return refuse(interface, refused("'data' is a buffer that is not contiguous. This must be fixed in the producer"));
  if (offset > self->view.len) return refuse(interface, malformed("'offset' lies behind the end of the buffer"));
  tensor.dl.data = static_cast<char*>(self->view.buf) + offset;
  if (self->view.readonly != 0) tensor.flags |= kFlagReadOnly;
  return true;
}

bool place_data(PyObject* object, const InterfaceDict& interface, py::TensorObject* self) {
  PyObject* data = interface.data.get();
  if (data == nullptr || data == Py_None) {  // NumPy's specification: the two mean the same
    if (PyObject_CheckBuffer(object)) return place_in_buffer(object, interface, self);
    return refuse(interface,
                  {ErrorCode::kWrongType, "'data' is missing or None, which means the object's own buffer, and " +
                                              py::type_name(object) +
                                              " has none. The producer must give (address, read_only) or a buffer"});
  }
  if (!PyTuple_Check(data) && PyObject_CheckBuffer(data)) return place_in_buffer(data, interface, self);
  return place_at_address(interface, self->tensor);
}

}  // namespace

Read read_dict(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  const py::Ref dict = py::optional_attribute(object, py::names.array_interface);
  if (!dict) return PyErr_Occurred() != nullptr ? Read::kFailed : Read::kAbsent;
  InterfaceDict interface(call, "__array_interface__", dict.get());
  if (!parse_interface_dict(2, interface)) return Read::kFailed;
  Tensor& tensor = self->tensor;
  tensor.dl.device = {kDLCPU, 0};
  if (!place_data(object, interface, self)) return Read::kFailed;
  const void* placed = tensor.dl.data;
  Status status = lay_out(interface, tensor);
  if (status.ok() && py::holds_buffer(self))
    status = check_fits_in_memory(
        tensor.dl.ndim, tensor.dl.shape, tensor.dl.strides, StrideUnit::kElements, tensor.itemsize(),
        static_cast<const char*>(placed) - static_cast<char*>(self->view.buf), self->view.len, py::kFixTheProducer);
  return finish(interface, status, object, self);
}

}  // namespace dlbridge::array_interface
