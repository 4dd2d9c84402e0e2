#include <string>
#include <string_view>

#include "dlbridge/arrow_export.h"
#include "protocols/arrow/arrow.h"
#include "protocols/arrow/capsules.h"
#include "protocols/common/boundary.h"

namespace dlbridge::arrow_c {

namespace {

// Runs on any thread, with or without the GIL, perhaps with an exception pending, perhaps after the interpreter.
void release_export(void* object) noexcept {
  if (!py::interpreter_alive()) return;  // the process frees the rest
  const py::GilHold gil;
  const py::ErrorGuard guard;
  py::live.exports.add(-1);
  py::drop(static_cast<PyObject*>(object));
}

// The same memory, kept by a reference to the object. Throws std::bad_alloc.
Tensor shared_tensor(PyObject* object) {
  Tensor out = dlbridge::detail::alias_of(py::as_tensor(object)->tensor);
  Py_INCREF(object);
  py::live.exports.add(1);
  out.owner = Owner(object, release_export);
  return out;
}

// Of a bool the packed copy, which only a requested schema asks for. The specification makes any other request a wish:
// a consumer looks at the schema that it gets.
bool wants_packed(PyObject* requested, const char* operation) {
  if (requested == Py_None) return false;
  if (!PyCapsule_IsValid(requested, kCapsuleName<ArrowSchema>))
    py::throw_issue(operation, ErrorCode::kWrongType,
                    "requested_schema is " + py::type_name(requested) +
                        ", not a PyCapsule named 'arrow_schema'. Pass what __arrow_c_schema__() returns, or None");
  const auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(requested, kCapsuleName<ArrowSchema>));
  const std::string_view format = detail::format_of(*schema);
  if (schema->release == nullptr || format == "+s")
    py::throw_issue(operation, ErrorCode::kMalformed,
                    "requested_schema is " + (schema->release == nullptr ? "released" : type_name(*schema)) +
                        ", and a tensor is one column. Ask for the type of a column, or for none");
  return format == "b";
}

PyObject* pair_of(Owned<ArrowSchema>&& schema, PyObject* array) {
  const py::Ref second = py::owned(array);
  const py::Ref first = py::owned(make_capsule(std::move(schema)));
  return PyTuple_Pack(2, first.get(), second.get());
}

// What is exported: the tensor itself, or the bits of its bools.
Tensor exported(PyObject* object, bool packs, const char* operation) {
  const Tensor& tensor = py::as_tensor(object)->tensor;
  py::throw_if_bad(check_export(tensor, packs), operation);
  if (tensor.dtype() != DType::kBool) return shared_tensor(object);
  Tensor bits;
  py::throw_if_bad(pack_bools(tensor, bits), operation);
  return bits;
}

Owned<ArrowSchema> schema_of(PyObject* object) {
  Owned<ArrowSchema> schema;
  export_schema(py::as_tensor(object)->tensor, schema.value);
  return schema;
}

}  // namespace

PyObject* tensor_arrow_schema(PyObject* self) {
  py::throw_if_bad(check_export(py::as_tensor(self)->tensor, false), "Tensor.__arrow_c_schema__()");
  return make_capsule(schema_of(self));
}

PyObject* tensor_arrow_array(PyObject* self, PyObject* requested) {
  constexpr char kOperation[] = "Tensor.__arrow_c_array__()";
  Tensor tensor = exported(self, wants_packed(requested, kOperation), kOperation);
  Owned<ArrowSchema> schema = schema_of(self);
  Owned<ArrowArray> array;
  export_array(std::move(tensor), array.value);
  array.value.length = py::as_tensor(self)->tensor.dl.shape[0];  // of bits there are fewer bytes
  return pair_of(std::move(schema), make_capsule(std::move(array)));
}

PyObject* tensor_arrow_device_array(PyObject* self, PyObject* requested) {
  constexpr char kOperation[] = "Tensor.__arrow_c_device_array__()";
  Tensor tensor = exported(self, wants_packed(requested, kOperation), kOperation);
  Owned<ArrowSchema> schema = schema_of(self);
  Owned<ArrowDeviceArray> array;
  py::throw_if_bad(export_device_array(std::move(tensor), true, array.value), kOperation);
  array.value.array.length = py::as_tensor(self)->tensor.dl.shape[0];
  return pair_of(std::move(schema), make_capsule(std::move(array)));
}

}  // namespace dlbridge::arrow_c
