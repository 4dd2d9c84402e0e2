#include "protocols/cuda_array_interface/cupy_reader.h"

#include "dlbridge/cuda_driver.h"
#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cupy_layout.h"

namespace dlbridge::cuda_array_interface {

namespace {

CupyLayout layout;  // guarded by the GIL

// The last dtype seen, held so that its address stays its own: nearly every array has the same.
struct KnownDType {
  PyObject* object = nullptr;
  const DTypeInfo* row = nullptr;
};
KnownDType known_dtype;

[[gnu::noinline]] const DTypeInfo* look_up_dtype(PyObject* dtype) noexcept {
  const DTypeInfo* row = array_interface::find_plain_dtype(dtype);
  if (row == nullptr) return nullptr;
  PyObject* old = known_dtype.object;
  known_dtype = {py::Ref::borrow(dtype).release(), row};
  Py_XDECREF(old);
  return row;
}

// Everything but the source. False: unusual, ask the ordinary readers.
bool decode(const CupyMembers& members, Tensor& tensor) {
  const DTypeInfo* row = members.dtype == known_dtype.object ? known_dtype.row : look_up_dtype(members.dtype);
  if (row == nullptr || members.data == 0) [[unlikely]] return false;
  tensor.set_dtype(*row);
  tensor.dl.data = reinterpret_cast<void*>(members.data);
  if (!build_layout<StrideUnit::kBytes>(tensor, members.ndim, members.shape, members.strides_bytes).ok())
      [[unlikely]]
    return false;
  // The driver says whether the memory is managed; the pointer object knows the device alone.
  if (tensor.size == 0 || !cuda::device_of_pointer(tensor.dl.data, tensor.dl.device).ok()) [[unlikely]] return false;
  if (!is_cuda(tensor.dl.device) || tensor.dl.device.device_id != members.device) [[unlikely]] return false;
  StreamHandle stream;
  if (!layout.current_stream(members.device, stream)) [[unlikely]] return false;
  tensor.ready = Ordering::on_stream(stream);
  return cuda::detach_from_thread(tensor.ready, members.device).ok();
}

}  // namespace

PyTypeObject* cupy_array_type() noexcept {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "cupy");  // borrowed
  if (module == nullptr) return nullptr;
  const py::Ref type(PyObject_GetAttrString(module, "ndarray"));
  PyErr_Clear();
  return type && PyType_Check(type.get()) ? reinterpret_cast<PyTypeObject*>(type.get()) : nullptr;
}

Read read_cupy(PyObject* object, py::TensorObject* self) {
  // The user has asked for CuPy's stream to be left alone: the ordinary reader of the dictionary knows how.
  if (!py::switches.cuda_array_interface_sync || !layout.ready()) [[unlikely]] return Read::kAbsent;
  CupyMembers members;
  if (!layout.read(object, members) || !decode(members, self->tensor)) [[unlikely]] return Read::kAbsent;
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::cuda_array_interface
