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

PyObject* make_interface_dict(const Tensor& tensor, const char* attribute, int version) noexcept {
  const std::string typestr = format_typestr(tensor.dtype());
  if (typestr.empty()) return no_typestr(tensor, attribute);
  py::Ref shape(py::make_dims(tensor.dl.shape, tensor.dl.ndim, 1));
  py::Ref strides(make_strides(tensor));
  if (!shape || !strides) return nullptr;
  return Py_BuildValue("{s:N,s:s#,s:(KO),s:N,s:i}", "shape", shape.release(), "typestr", typestr.data(),
                       static_cast<Py_ssize_t>(typestr.size()), "data",
                       static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(tensor.dl.data)),
                       tensor.readonly() ? Py_True : Py_False, "strides", strides.release(), "version", version);
}

PyObject* tensor_array_interface(PyObject* object, void*) noexcept {
  try {
    return make_interface_dict(py::as_tensor(object)->tensor, "__array_interface__", 3);
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
