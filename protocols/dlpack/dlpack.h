// DLPack in Python: capsules, objects with __dlpack__, and the C exchange API, both ways.
#pragma once

#include <optional>

#include "dlbridge/errors.h"
#include "protocols/common/tensor_object.h"

namespace dlbridge::dlpack {

// --- reader.cpp -------------------------------------------------------------------------------------------------

// What a read returns: the object does not speak this protocol at all (no Python error is set), it does and the
// tensor is filled, or it does and refused (a Python error is set).
enum class Read { kAbsent, kDone, kFailed };

// Consumes the capsule: on success `self` owns the managed tensor; on failure its deleter has run, or, where the
// capsule is no unconsumed DLPack capsule, nothing was touched.
Read read_capsule(PyObject* capsule, py::TensorObject* self);

// Calls obj.__dlpack__ (newest signature first, then older ones) and consumes the capsule. `self->source` is set.
// `target`: where the caller wants the data; passed on only for devices that dlbridge cannot copy from itself.
Read read_object(PyObject* object, std::optional<DLDevice> target, py::TensorObject* self);

// Reads a (type, id) pair. False with a TypeError set.
bool parse_device_pair(PyObject* pair, const char* operation, const char* argument, DLDevice& out);

// --- exchange_reader.cpp ------------------------------------------------------------------------------------------

// The table a type advertises in its own __dict__, of a major version that dlbridge knows (prev_api is walked);
// nullptr where there is none. Never sets a Python error. The table lives as long as the process (DLPack 1.3).
const DLPackExchangeAPI* find_exchange_api(PyTypeObject* type);

Read read_exchange(PyObject* object, const DLPackExchangeAPI* api, py::TensorObject* self);
// Sets tensor.ready to the stream that the table's framework works on. False with a Python error set.
bool query_stream(const DLPackExchangeAPI* api, Tensor& tensor);

// --- torch_reader.cpp -----------------------------------------------------------------------------------------------

// torch.Tensor: the borrowed DLTensor (the object keeps the memory), with the checks that its table leaves out.
Read read_torch(PyObject* object, const DLPackExchangeAPI* api, py::TensorObject* self);
// The same checks for torch.Tensor and its subclasses on their way through __dlpack__, where PyTorch lets the neg bit
// pass. False with a Python error set.
bool check_torch(PyObject* object);

// --- exporter.cpp -------------------------------------------------------------------------------------------------

// A managed struct whose deleter drops one reference to `self`. Any thread may run the deleter, GIL or not, and after
// the interpreter is gone. Null with a Python error set.
DLManagedTensorVersioned* share_versioned(py::TensorObject* self) noexcept;

// Tensor.__dlpack__ and Tensor.__dlpack_device__, METH_FASTCALL | METH_KEYWORDS and METH_NOARGS.
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept;
PyObject* tensor_dlpack_device(PyObject* self, PyObject*) noexcept;

// --- exchange_api.cpp ---------------------------------------------------------------------------------------------

// The table that dlbridge's own Tensor types advertise, and its capsule (new reference).
const DLPackExchangeAPI* own_exchange_api() noexcept;
PyObject* make_exchange_api_capsule() noexcept;

// Gives the tensor to `api`'s framework: managed_tensor_to_py_object_no_sync, ordered before the stream it works on.
// New reference; null with a Python error set.
PyObject* give_to_exchange(py::TensorObject* self, const DLPackExchangeAPI* api) noexcept;

}  // namespace dlbridge::dlpack
