// NumPy: its arrays read and made through its C API, which is connected once somebody else has imported it.
#pragma once

#include "dlbridge/atomic.h"
#include "dlbridge/dtype.h"
#include "frameworks/framework.h"
#include "protocols/common/record_tensor.h"

namespace dlbridge::frameworks {

// How ndarrays and their subclasses are read.
extern const ArrayKind kNumpyArray;

// numpy.ndarray once NumPy is imported by somebody; nullptr before. Borrowed, never freed.
extern constinit Atomic<PyTypeObject*> numpy_array_type;
// Looks whether NumPy has been imported by now; never imports it. False with a Python error set.
bool connect_numpy();
// The table's row for a numpy.dtype object of NumPy's own types in native byte order; nullptr for anything else.
const DTypeInfo* find_plain_dtype(PyObject* dtype) noexcept;
// Refuses a masked array with a mask, which every protocol drops in silence. False: it did, or a Python error is set.
bool check_mask(PyObject* object, py::ReadCall& call);
// `object` is an ndarray or an instance of a subclass.
py::Read read_numpy(PyObject* object, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self);
// `array` is exactly an ndarray: its descriptor without an object or a reference. False: read_numpy() says why.
bool borrow_numpy(PyObject* array, py::RecordTensor& out);
// An ndarray that shares the tensor's memory and keeps `self` alive; read-only stays read-only. Imports NumPy.
PyObject* make_numpy(py::TensorObject* self, const char* operation);

}  // namespace dlbridge::frameworks
