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

// What jit, vmap and grad give a function in place of arrays: a class of jax's with "Tracer" in its name, or a base
// that is called so.
bool is_tracer(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  PyObject* const bases = type->tp_mro;
  for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
    if (std::strcmp(base->tp_name, "Tracer") != 0 || !PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) continue;
    const py::Ref module = py::dict_item(base->tp_dict, "__module__");
    const char* name = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
    PyErr_Clear();
    if (name != nullptr && std::strncmp(name, "jax.", 4) == 0) return true;
  }
  return false;
}

bool refuse_tracer(PyObject* tracer, py::ReadCall& call) {
  call.refuse(refused(std::string("the array is a tracer of jax (") + Py_TYPE(tracer)->tp_name +
                      "), which stands for values while jit, vmap or grad trace a function; it has no memory. Convert "
                      "outside of the traced function, or call back out of it: jax.pure_callback"));
  return false;
}

constexpr ArrayKind kArrays[] = {{.recognises = is_array, .read = read_array, .immutable = true},
                                 {.recognises = is_tracer, .check = refuse_tracer}};

// JAX copies what is not aligned to 64 bytes on the CPU by itself, and refuses it with copy=False; strides that are not
// a permutation of a dense array are "UNIMPLEMENTED".
constexpr DTypeSet kDTypesOfJax = kNumpyDTypes | kBFloat16 | kFloat8;
constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kDTypesOfJax, .strides = stride_rule::dense, .alignment = 64, .read_only = true},
     .enter = "jax",
     .immutable = true},
    {.takes = {.dtypes = kDTypesOfJax, .devices = devices(kDLCUDA), .strides = stride_rule::dense, .read_only = true},
     .enter = "jax",
     .immutable = true}};
constexpr const char* kNames[] = {"jnp", "jax.numpy", "jax.dlpack"};

}  // namespace

extern constinit const Framework kJax{
    .name = "jax", .module = "jax", .aliases = kNames, .arrays = kArrays, .consumers = kTakes};

}  // namespace dlbridge::frameworks
