// JAX: its arrays are immutable, which its legacy capsules cannot say.
#include <cstring>
#include <string>

#include "frameworks/framework.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/errors.h"

namespace dlbridge::frameworks {

namespace {

// jax.Array's one concrete class.
bool is_array(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  if (std::strstr(type->tp_name, "ArrayImpl") == nullptr) return false;
  const py::Ref module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const char* name = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  PyErr_Clear();
  return name != nullptr && std::strncmp(name, "jaxlib.", 7) == 0;
}

// The buffer is the shorter way: __dlpack__ is Python code. There is none of an array that is on a device
// or sharded, or of a dtype that the buffer protocol cannot say.
py::Read read_array(PyObject* array, const DLPackExchangeAPI*, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kBuffer;
  const py::Read result = buffer::read(array, call, self);
  if (result == py::Read::kDone || (PyErr_Occurred() != nullptr && py::is_final_error())) return result;
  PyErr_Clear();
  return py::Read::kAbsent;
}

constexpr ArrayKind kArrays[] = {{.recognises = is_array, .read = read_array, .immutable = true}};

// JAX copies what is not aligned to 64 bytes on the CPU by itself, and refuses it with copy=False; strides that are not
// a permutation of a dense array are "UNIMPLEMENTED".
constexpr DTypeSet kDTypesOfJax = kNumpyDTypes | kBFloat16 | kFloat8;
constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kDTypesOfJax, .strides = stride_rule::dense, .alignment = 64, .read_only = true},
     .enter = "jax",
     .immutable = true},
    {.takes = {.dtypes = kDTypesOfJax, .devices = kOnCuda, .strides = stride_rule::dense, .read_only = true},
     .enter = "jax",
     .immutable = true}};
constexpr const char* kNames[] = {"jnp", "jax.numpy", "jax.dlpack"};

}  // namespace

extern constinit const Framework kJax{
    .name = "jax", .module = "jax", .aliases = kNames, .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
