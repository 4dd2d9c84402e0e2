// __array_struct__: the same array without a dictionary, as a C struct in a capsule with no name.
#include <string>

#include "dlbridge/validate.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/array_interface/array_struct.h"
#include "protocols/common/errors.h"
#include "protocols/common/typestr.h"

namespace dlbridge::array_interface {

using py::Read;

namespace {

// The capsule owns the struct's shape and strides; it is held with the object, as the documentation asks.
void release_capsule(void* context) noexcept {
  py::ErrorGuard guard;
  Py_DECREF(static_cast<PyObject*>(context));
}

Status decode(const ArrayStruct& array, py::ReadCall& call, Tensor& tensor) {
  if (array.two != 2)
    return malformed("the field 'two' is " + std::to_string(array.two) + ", not 2: the capsule holds another struct");
  if (array.itemsize <= 0) return malformed("itemsize is " + std::to_string(array.itemsize));
  const char order = (array.flags & kStructNotSwapped) != 0 ? (kLittleEndian ? '<' : '>') : (kLittleEndian ? '>' : '<');
  const DTypeInfo* dtype = nullptr;
  DLBRIDGE_TRY(parse_typestr(std::string{order, array.typekind} + std::to_string(array.itemsize), dtype, call.swapped));
  if (array.nd > 0 && array.nd <= kMaxDims && array.shape == nullptr) return malformed("shape is null with nd > 0");
  tensor.set_dtype(*dtype);
  tensor.dl.device = {kDLCPU, 0};
  tensor.dl.data = array.data;
  if ((array.flags & kStructWriteable) == 0) tensor.flags |= kFlagReadOnly;
  return build_layout<StrideUnit::kBytes>(tensor, array.nd, reinterpret_cast<const std::int64_t*>(array.shape),
                                          reinterpret_cast<const std::int64_t*>(array.strides));
}

// False: the call was refused, or a Python error is set. The capsule stays the caller's.
bool read_capsule(PyObject* object, PyObject* capsule, py::ReadCall& call, Tensor& tensor) {
  if (!PyCapsule_CheckExact(capsule) || PyCapsule_GetName(capsule) != nullptr) {
    PyErr_Clear();
    call.refuse(ErrorCode::kWrongType, "__array_struct__ of " + py::type_name(object) +
                                           " is not a capsule with the name NULL (array interface)");
    return false;
  }
  const auto* array = static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule, nullptr));
  if (array == nullptr) return false;
  const Status status = decode(*array, call, tensor);
  if (!status.ok()) call.refuse(status.code(), "__array_struct__: " + status.message());
  return status.ok();
}

}  // namespace

Read read_struct(PyObject* object, py::ReadCall& call, py::TensorObject* self) {
  py::Ref capsule = py::optional_attribute(object, py::names.array_struct);
  if (!capsule) return PyErr_Occurred() != nullptr ? Read::kFailed : Read::kAbsent;
  if (!read_capsule(object, capsule.get(), call, self->tensor)) {
    py::ErrorGuard error;  // the capsule's destructor may be Python code, which must not see our error pending
    capsule = py::Ref();
    return Read::kFailed;
  }
  self->tensor.owner = Owner(capsule.release(), release_capsule);
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::array_interface
