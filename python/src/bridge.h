// The functions and types of the extension module dlbridge._core. What makes them throws with a Python error set.
#pragma once

#include <optional>

#include "protocols/common/tensor_object.h"
#include "python/src/kit/call.h"

namespace dlbridge::py {

// --- tensor_type.cpp ------------------------------------------------------------------------------------------------
void init_tensor_types(PyObject* module);

// --- dtype_device.cpp (pybind11): the values of Tensor.dtype and Tensor.device ---------------------------------------
void init_dtype_device(PyObject* module);
PyObject* make_dtype(DLDataType dtype);  // new reference; null with a Python error set
PyObject* make_device(DLDevice device);
// The value of a dlbridge.DType; false, with no error set, for any other object.
bool read_dtype(PyObject* object, DLDataType& out) noexcept;
bool is_device(PyObject* object) noexcept;  // a dlbridge.Device
// Accepts "cuda:1", a Device, a (type, id) pair, None (nullopt). False with a Python error set.
bool parse_device_argument(PyObject* argument, const char* operation, std::optional<DLDevice>& out);

// --- asdlpack.cpp ---------------------------------------------------------------------------------------------------
PyObject* asdlpack(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept;
// asdlpack(object) with no other argument, in the name of `operation` ("": the caller names itself). New reference;
// null with a Python error set.
PyObject* read_any(PyObject* object, const char* operation);

// --- columns.cpp ----------------------------------------------------------------------------------------------------
PyObject* columns(PyObject* module, const Call& arguments);

// --- convert.cpp ----------------------------------------------------------------------------------------------------
PyObject* convert(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept;
// dlbridge.Tensor `tensor` as an array of the framework of `example`; itself where that is none.
PyObject* convert_like(PyObject* tensor, PyObject* example) noexcept;
PyObject* to_exchange(PyObject* module, PyObject* const* args, Py_ssize_t nargs) noexcept;
PyObject* to_numpy(PyObject* module, PyObject* tensor) noexcept;

// A dense, writable copy on `target` with the object protocol's name and no source, to be used on `stream` (0: the
// thread's current one). Null with a Python error set.
TensorObject* copy_tensor(const TensorObject* source, DLDevice target, const char* operation, StreamHandle stream = 0);

// --- c_api.cpp: the table that dlbridge/pybind11.h reads arrays with -------------------------------------------------
void init_c_api(PyObject* module);

// --- diagnosis.cpp (pybind11): for inspect(), the tests and the self-test runner -------------------------------------
void init_diagnosis(PyObject* module);

}  // namespace dlbridge::py
