#include <cstddef>
#include <cstdint>
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
  const Tensor& tensor = py::as_tensor(object)->tensor;
  py::Ref dict(py::make_interface_dict(tensor, "__array_interface__", 3, false));
  if (!dict || tensor.dl.data != nullptr) [[likely]]
    return dict.release();
  // An array without elements has no memory. NumPy takes the dict alone only with an address that is not null.
  static std::max_align_t nothing;
  const py::Ref data(Py_BuildValue("(KO)", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(&nothing)),
                                   tensor.readonly() ? Py_True : Py_False));
  if (!data || PyDict_SetItem(dict.get(), py::names.data, data.get()) != 0) return nullptr;
  return dict.release();
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
