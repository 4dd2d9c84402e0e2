#include "dlbridge/cuda_order.h"
#include "protocols/common/boundary.h"
#include "protocols/common/interface_dict.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"

namespace dlbridge::cuda_array_interface {

namespace {

constexpr char kOperation[] = "__cuda_array_interface__";

// None where nothing is to be waited for; never 0. An event has no number here: a stream of ours waits for it.
// Whether the stream has finished meanwhile is not asked: that costs 1.2 microseconds (measured on an H200) at each
// access, and consumers make two.
PyObject* make_stream(const Tensor& tensor) {
  Ordering ready = tensor.ready.settled();
  if (ready.is_ready()) return py::Ref::borrow(Py_None).release();
  if (ready.kind == Ordering::Kind::kAtEvent)
    py::throw_if_bad(cuda::move_to_relay(ready, tensor.dl.device.device_id), kOperation);
  return PyLong_FromUnsignedLongLong(ready.handle);
}

}  // namespace

PyObject* tensor_cuda_array_interface(PyObject* object) {
  const Tensor& tensor = py::as_tensor(object)->tensor;
  const int version = py::switches.cuda_array_interface_export_version;
  py::Ref dict = py::owned(py::make_interface_dict(tensor, kOperation, version, version >= 3));
  if (version < 3) return dict.release();  // version 2 has no stream key
  const py::Ref stream = py::owned(make_stream(tensor));
  if (stream.get() != Py_None) py::checked(PyDict_SetItem(dict.get(), py::names.stream, stream.get()));
  return dict.release();
}

}  // namespace dlbridge::cuda_array_interface
