// DLPack in Python: capsules, objects with __dlpack__, and the C exchange API, both ways.
#pragma once

#include <optional>

#include "protocols/common/read.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::dlpack {

// --- reader.cpp -------------------------------------------------------------------------------------------------

// Consumes the capsule: on success `self` owns the managed tensor; on failure its deleter has run, or, where the
// capsule is no unconsumed DLPack capsule, nothing was touched.
py::Read read_capsule(PyObject* capsule, py::ReadCall& call, py::TensorObject* self);

// Calls obj.__dlpack__ (newest signature first, then older ones) and consumes the capsule. `self->source` is set.
// `target`: where the caller wants the data; passed on only for devices that dlbridge cannot copy from itself.
py::Read read_object(PyObject* object, std::optional<DLDevice> target, py::ReadCall& call, py::TensorObject* self);

// Reads a (type, id) pair. False with the reason in `why`, or with what the numbers' own code raised.
bool parse_device_pair(PyObject* pair, const char* argument, DLDevice& out, Status& why);

// --- exchange_reader.cpp ------------------------------------------------------------------------------------------

// The table a type advertises in its own __dict__, of a major version that dlbridge knows (prev_api is walked);
// nullptr where there is none. Never sets a Python error. The table lives as long as the process (DLPack 1.3).
const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type);

py::Read read_exchange(PyObject* object, const DLPackExchangeAPI* api, py::ReadCall& call, py::TensorObject* self);
// Sets tensor.ready to the stream that the table's framework works on. False: the call was refused, or a Python error
// is set.
bool query_cuda_stream(const DLPackExchangeAPI* api, py::ReadCall& call, Tensor& tensor);
inline bool query_stream(const DLPackExchangeAPI* api, py::ReadCall& call, Tensor& tensor) {
  return !is_cuda(tensor.dl.device) || query_cuda_stream(api, call, tensor);
}

// --- exporter.cpp -------------------------------------------------------------------------------------------------

// A managed struct whose deleter drops one reference to `self`. Any thread may run the deleter, GIL or not, and after
// the interpreter is gone. Null with a Python error set.
DLManagedTensorVersioned* share_versioned(py::TensorObject* self) noexcept;

// Tensor.__dlpack__ and Tensor.__dlpack_device__, METH_FASTCALL | METH_KEYWORDS and METH_NOARGS.
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept;
PyObject* tensor_dlpack_device(PyObject* self) noexcept;

// --- exchange_api.cpp ---------------------------------------------------------------------------------------------

// The table that dlbridge's own Tensor types advertise: what consumers (tvm-ffi) make of it is a Tensor.
const DLPackExchangeAPI& own_exchange_api() noexcept;
// The capsule of a table that lives as long as the process. A type derived from Tensor, whose objects are to come back
// as its own, advertises a copy of the table with another managed_tensor_to_py_object_no_sync.
PyObject* make_exchange_api_capsule(const DLPackExchangeAPI& table) noexcept;
// What that function begins with: consumes `managed`, also on failure. Null with a Python error set.
py::TensorObject* tensor_from_managed(DLManagedTensorVersioned* managed);

// Gives the tensor to `api`'s framework: managed_tensor_to_py_object_no_sync, ordered before the stream it works on.
// New reference; null with a Python error set.
PyObject* give_to_exchange(py::TensorObject* self, const DLPackExchangeAPI* api, const char* operation) noexcept;

}  // namespace dlbridge::dlpack
