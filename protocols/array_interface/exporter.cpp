#include <memory>
#include <string>

#include "dlbridge/layout.h"
#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/array_interface/array_struct.h"
#include "protocols/common/boundary.h"
#include "protocols/common/interface_dict.h"

namespace dlbridge::array_interface {

namespace {

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

PyObject* tensor_array_interface(PyObject* object) {
  return py::make_interface_dict(py::as_tensor(object)->tensor, "__array_interface__", 3, false);
}

PyObject* tensor_array_struct(PyObject* object) {
  const Tensor& tensor = py::as_tensor(object)->tensor;
  const DTypeInfo& dtype = tensor.dtype();
  if (dtype.kind == 0) return py::refuse_typeless(tensor, "__array_struct__");
  auto exported = std::make_unique<StructExport>();
  for (int i = 0; i < tensor.dl.ndim; ++i) exported->strides[i] = tensor.dl.strides[i] * tensor.itemsize();
  exported->array = {2,
                     tensor.dl.ndim,
                     dtype.kind,
                     dtype.itemsize,
                     struct_flags(tensor),
                     reinterpret_cast<Py_ssize_t*>(tensor.dl.shape),
                     exported->strides,
                     tensor.dl.data,
                     nullptr};
  exported->owner = object;
  PyObject* capsule = py::checked(PyCapsule_New(exported.get(), nullptr, destroy_struct_capsule));
  Py_INCREF(object);
  exported.release();
  return capsule;
}

}  // namespace dlbridge::array_interface
