// NumPy's array interface, both ways: the dictionary, the C struct, and NumPy's own arrays read in place.
#pragma once

#include "protocols/common/record_tensor.h"
#include "protocols/common/tensor_object.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::array_interface {

using dlpack::Read;

// --- reader.cpp: __array_interface__ (versions 2, 3 and later) ----------------------------------------------------
Read read_dict(PyObject* object, py::TensorObject* self);

// --- struct_reader.cpp: __array_struct__ --------------------------------------------------------------------------
Read read_struct(PyObject* object, py::TensorObject* self);

// --- numpy_array.cpp: NumPy arrays through NumPy's C API, when NumPy is loaded ------------------------------------

// numpy.ndarray once NumPy is imported by somebody; nullptr before. Borrowed, never freed.
extern PyTypeObject* numpy_array_type;
// Looks whether NumPy has been imported by now; never imports it. False with a Python error set.
bool connect_numpy();
// The table's row for a numpy.dtype object of NumPy's own types in native byte order; nullptr for anything else.
const DTypeInfo* find_plain_dtype(PyObject* dtype) noexcept;
// Refuses a masked array with a mask, which every protocol drops in silence. False with a Python error set.
bool check_mask(PyObject* object);
// `object` is an ndarray or an instance of a subclass.
Read read_numpy(PyObject* object, py::TensorObject* self);
// `array` is exactly an ndarray: its descriptor without an object and without a reference. False: read_numpy() says why.
bool borrow_numpy(PyObject* array, py::RecordTensor& out);
// An ndarray that shares the tensor's memory and keeps `self` alive; read-only stays read-only. Imports NumPy.
PyObject* make_numpy(py::TensorObject* self);

// --- exporter.cpp: HostTensor.__array_interface__, .__array_struct__ ------------------------------------------------
PyObject* tensor_array_interface(PyObject* self, void*) noexcept;
PyObject* tensor_array_struct(PyObject* self, void*) noexcept;

// The dictionary that both interfaces share: shape, typestr, data, strides (None when C-contiguous), version.
// Null with an AttributeError where the dtype has no typestr, so that hasattr() and NumPy look further.
// With `with_stream` it also has the key 'stream', None.
PyObject* make_interface_dict(const Tensor& tensor, const char* attribute, int version, bool with_stream) noexcept;

}  // namespace dlbridge::array_interface
