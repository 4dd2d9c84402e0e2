#include <memory>
#include <string>

#include "dlbridge/layout.h"
#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/array_interface/array_struct.h"
#include "protocols/array_interface/typestr.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/errors.h"

namespace dlbridge::array_interface {

namespace {

PyObject* no_typestr(const Tensor& tensor, const char* attribute) {
  PyErr_Format(PyExc_AttributeError,
               "%s: dtype %s has no typestr, so the array interface cannot carry it. Use DLPack: the tensor has "
               "__dlpack__",
               attribute, std::string(tensor.dtype().name).c_str());
  return nullptr;
}

PyObject* make_strides(const Tensor& tensor) {
  if (is_c_contiguous(tensor.dl)) return py::Ref::borrow(Py_None).release();
  return py::make_dims(tensor.dl.strides, tensor.dl.ndim, tensor.itemsize());
}

PyObject* make_data(const Tensor& tensor) {
  py::Ref pair(PyTuple_New(2));
  PyObject* address = PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(tensor.dl.data));
  if (!pair || address == nullptr) {
    Py_XDECREF(address);
    return nullptr;
  }
  PyTuple_SET_ITEM(pair.get(), 0, address);
  PyTuple_SET_ITEM(pair.get(), 1, py::Ref::borrow(tensor.readonly() ? Py_True : Py_False).release());
  return pair.release();
}

PyObject* make_pattern(const DTypeInfo& dtype, int version, bool with_stream) {
  const std::string typestr = format_typestr(dtype);
  const py::Ref text(PyUnicode_InternFromString(typestr.c_str()));
  const py::Ref number(PyLong_FromLong(version));
  py::Ref dict(PyDict_New());
  const bool good = dict && text && number && PyDict_SetItem(dict.get(), py::names.shape, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), py::names.typestr, text.get()) == 0 &&
                    PyDict_SetItem(dict.get(), py::names.data, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), py::names.strides, Py_None) == 0 &&
                    PyDict_SetItem(dict.get(), py::names.version, number.get()) == 0 &&
                    (!with_stream || PyDict_SetItem(dict.get(), py::names.stream, Py_None) == 0);
  return good ? dict.release() : nullptr;
}

// A dictionary of the dtype with all its keys, to be copied and filled in: quicker than making one by one.
// Borrowed, kept for good; null where the dtype has no typestr, or with a Python error set.
PyObject* pattern_of(const DTypeInfo& dtype, int version, bool with_stream) {
  static PyObject* patterns[2][2][kDTypes.size()];  // version 2 and 3, guarded by the GIL
  if (dtype.kind == 0) return nullptr;
  PyObject*& pattern = patterns[version == 2][with_stream][static_cast<std::size_t>(dtype.id)];
  if (pattern == nullptr) pattern = make_pattern(dtype, version, with_stream);
  return pattern;
}

// One allocation: the struct, the byte strides behind it, and the reference that keeps the shape and the data.
struct StructExport {
  ArrayStruct array;
  PyObject* owner;
  Py_ssize_t strides[kMaxDims];
};

void destroy_struct_capsule(PyObject* capsule) {
  py::ErrorGuard guard;
  auto* exported = static_cast<StructExport*>(PyCapsule_GetPointer(capsule, nullptr));
  if (exported == nullptr) return;
  Py_DECREF(exported->owner);
  delete exported;
}

int struct_flags(const Tensor& tensor) {
  int flags = kStructNotSwapped;
  if (is_c_contiguous(tensor.dl)) flags |= kStructC;
  if (is_f_contiguous(tensor.dl)) flags |= kStructF;
  if (is_aligned(tensor)) flags |= kStructAligned;
  if (!tensor.readonly()) flags |= kStructWriteable;
  return flags;
}

}  // namespace

PyObject* make_interface_dict(const Tensor& tensor, const char* attribute, int version, bool with_stream) noexcept {
  PyObject* pattern = pattern_of(tensor.dtype(), version, with_stream);
  if (pattern == nullptr) return tensor.dtype().kind == 0 ? no_typestr(tensor, attribute) : nullptr;
  const py::Ref shape(py::make_dims(tensor.dl.shape, tensor.dl.ndim, 1));
  const py::Ref strides(make_strides(tensor));
  const py::Ref data(make_data(tensor));
  if (!shape || !strides || !data) return nullptr;
  py::Ref dict(PyDict_Copy(pattern));
  if (!dict || PyDict_SetItem(dict.get(), py::names.shape, shape.get()) != 0 ||
      PyDict_SetItem(dict.get(), py::names.data, data.get()) != 0)
    return nullptr;
  if (strides.get() != Py_None && PyDict_SetItem(dict.get(), py::names.strides, strides.get()) != 0) return nullptr;
  return dict.release();
}

PyObject* tensor_array_interface(PyObject* object, void*) noexcept {
  try {
    return make_interface_dict(py::as_tensor(object)->tensor, "__array_interface__", 3, false);
  } catch (...) {
    py::raise_current_exception();
    return nullptr;
  }
}

PyObject* tensor_array_struct(PyObject* object, void*) noexcept {
  try {
    const Tensor& tensor = py::as_tensor(object)->tensor;
    const DTypeInfo& dtype = tensor.dtype();
    if (dtype.kind == 0) return no_typestr(tensor, "__array_struct__");
    auto exported = std::make_unique<StructExport>();
    for (int i = 0; i < tensor.dl.ndim; ++i) exported->strides[i] = tensor.dl.strides[i] * tensor.itemsize();
    exported->array = {2, tensor.dl.ndim, dtype.kind, dtype.itemsize, struct_flags(tensor),
                       reinterpret_cast<Py_ssize_t*>(tensor.dl.shape), exported->strides, tensor.dl.data, nullptr};
    exported->owner = object;
    PyObject* capsule = PyCapsule_New(exported.get(), nullptr, destroy_struct_capsule);
    if (capsule == nullptr) return nullptr;
    Py_INCREF(object);
    exported.release();
    return capsule;
  } catch (...) {
    py::raise_current_exception();
    return nullptr;
  }
}

}  // namespace dlbridge::array_interface
