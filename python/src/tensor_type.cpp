// The Tensor types: slots, attributes, methods. What each exports lives with its protocol.
#include <string>

#include "protocols/array_interface/array_interface.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/errors.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"
#include "python/src/bridge.h"

#include <structmember.h>

namespace dlbridge::py {

TensorTypes tensor_types;
LiveCounts live;
TensorFreelist tensor_freelist;

namespace {

// --- life -----------------------------------------------------------------------------------------------------------

void free_tensor(PyObject* object) {
  TensorObject* self = as_tensor(object);
  PyTypeObject* type = Py_TYPE(object);
  const bool exact = type == tensor_types.host || type == tensor_types.cuda || type == tensor_types.base;
  if (self->tracked || !exact) PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) [[unlikely]] PyObject_ClearWeakRefs(object);
  if (self->tensor.owner) [[unlikely]] {  // foreign code runs: it must not see or lose a pending exception
    ErrorGuard guard;
    self->tensor.~Tensor();
  } else {
    self->tensor.~Tensor();
  }
  Py_CLEAR(self->source);
  --live.tensors;
  if (exact) [[likely]] return recycle_tensor(self);
  type->tp_free(object);
  Py_DECREF(type);
}

// The memory behind this tensor may die with it: it has the last references to the source, or an owner that is not
// the source's own buffer.
bool may_cascade(const TensorObject* self) noexcept {
  const Py_ssize_t references = self->source == nullptr ? 1 : Py_REFCNT(self->source);
  if (!self->tensor.owner) return references == 1;
  return references <= 2 || !buffer::holds_view(self);
}

// Arrays that were exchanged to and fro form chains (tensor, array, tensor, …) of any length: CPython's trashcan takes
// them down without recursion.
void free_chain(PyObject* object);

// What nearly every tensor is when it dies: a plain view of an object that others hold, too.
bool dies_simply(const TensorObject* self) noexcept {
  return Py_TYPE(self) == tensor_types.host && !self->tracked && self->weakrefs == nullptr && !self->tensor.owner &&
         self->source != nullptr && Py_REFCNT(self->source) > 1;
}

void tensor_dealloc(PyObject* object) {
  if (TensorObject* self = as_tensor(object); dies_simply(self)) [[likely]] {
    self->tensor.~Tensor();
    Py_DECREF(self->source);
    --live.tensors;
    return recycle_tensor(self);
  }
  if (may_cascade(as_tensor(object))) [[unlikely]] return free_chain(object);
  free_tensor(object);
}

void free_chain(PyObject* object) {
  PyObject_GC_UnTrack(object);
  Py_TRASHCAN_BEGIN(object, tensor_dealloc)
  free_tensor(object);
  Py_TRASHCAN_END
}

int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
  TensorObject* self = as_tensor(object);
  Py_VISIT(self->source);
  if (buffer::holds_view(self)) Py_VISIT(self->view.obj);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

// Only a tensor in a dead cycle comes here; what is left of it is empty, so that a finaliser may still look at it.
int tensor_clear(PyObject* object) {
  TensorObject* self = as_tensor(object);
  Tensor empty;
  empty.set_dtype(self->tensor.dtype());
  empty.reserve_dims(1);
  empty.dl.shape[0] = 0;
  empty.dl.strides[0] = 1;
  empty.size = 0;
  self->tensor = std::move(empty);
  Py_CLEAR(self->source);
  return 0;
}

// --- attributes -----------------------------------------------------------------------------------------------------

const Tensor& tensor_of(PyObject* self) { return as_tensor(self)->tensor; }

PyObject* get_shape(PyObject* self, void*) { return make_dims(tensor_of(self).dl.shape, tensor_of(self).dl.ndim, 1); }
PyObject* get_strides(PyObject* self, void*) {
  return make_dims(tensor_of(self).dl.strides, tensor_of(self).dl.ndim, tensor_of(self).itemsize());
}
PyObject* get_dtype(PyObject* self, void*) { return make_dtype(tensor_of(self).dl.dtype); }
PyObject* get_device(PyObject* self, void*) { return make_device(tensor_of(self).dl.device); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self).dl.ndim); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).size); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).itemsize()); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).nbytes()); }
PyObject* get_data_ptr(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(tensor_of(self).dl.data));
}
PyObject* get_readonly(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self).readonly()); }
PyObject* get_padded(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self).padded()); }
PyObject* get_protocol(PyObject* self, void*) {
  return PyUnicode_FromString(kProtocolNames[static_cast<int>(as_tensor(self)->protocol)]);
}
PyObject* get_owner(PyObject* self, void*) {
  PyObject* source = as_tensor(self)->source;
  return Ref::borrow(source != nullptr ? source : Py_None).release();
}

PyGetSetDef attributes[] = {
    {"shape", get_shape, nullptr, "tuple of int: the extent of each axis, in elements.", nullptr},
    {"strides", get_strides, nullptr, "tuple of int: bytes from one element to the next, for each axis.", nullptr},
    {"dtype", get_dtype, nullptr, "dlbridge.DType: equal to its name ('float32') and to NumPy's dtype.", nullptr},
    {"device", get_device, nullptr, "dlbridge.Device: equal to its name ('cpu', 'cuda:0').", nullptr},
    {"ndim", get_ndim, nullptr, "int: the number of axes.", nullptr},
    {"size", get_size, nullptr, "int: the number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "int: bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "int: bytes that the elements take when stored densely.", nullptr},
    {"data_ptr", get_data_ptr, nullptr, "int: address of the first element; 0 when size is 0.", nullptr},
    {"readonly", get_readonly, nullptr, "bool: True where the producer forbids writing.", nullptr},
    {"padded", get_padded, nullptr, "bool: True where each sub-byte element has a byte of its own (DLPack 1.1).",
     nullptr},
    {"protocol", get_protocol, nullptr,
     "str: the reader used: 'dlpack', 'array_interface', 'cuda_array_interface' or 'buffer'.", nullptr},
    {"owner", get_owner, nullptr, "The object that was passed in and is kept alive; None for a copy or a capsule.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyGetSetDef host_attributes[] = {
    {"__array_interface__", array_interface::tensor_array_interface, nullptr,
     "dict: NumPy's array interface, version 3.", nullptr},
    {"__array_struct__", array_interface::tensor_array_struct, nullptr,
     "capsule: NumPy's array interface as a C struct.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyGetSetDef cuda_attributes[] = {
    {"__cuda_array_interface__", cuda_array_interface::tensor_cuda_array_interface, nullptr,
     "dict: CUDA Array Interface, version 3, or 2 with DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION=2.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// --- methods --------------------------------------------------------------------------------------------------------

PyObject* tensor_repr(PyObject* self) {
  try {
    const TensorObject* object = as_tensor(self);
    const Ref shape(get_shape(self, nullptr));
    if (!shape) return nullptr;
    return PyUnicode_FromFormat("<%s shape=%R dtype=%s device=%s protocol=%s%s>", Py_TYPE(self)->tp_name, shape.get(),
                                dtype_name(object->tensor.dl.dtype).c_str(),
                                device_name(object->tensor.dl.device).c_str(),
                                kProtocolNames[static_cast<int>(object->protocol)],
                                object->tensor.readonly() ? " readonly" : "");
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

// __array__(dtype=None, *, copy=None): NumPy's last resort, and its only way to a bfloat16 array.
PyObject* tensor_array(PyObject* object, PyObject* args, PyObject* kwargs) noexcept {
  try {
    PyObject *dtype = Py_None, *copy = Py_None;
    static const char* keywords[] = {"dtype", "copy", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:__array__", const_cast<char**>(keywords), &dtype, &copy))
      return nullptr;
    TensorObject* self = as_tensor(object);
    if (!is_host(self->tensor.dl.device)) {
      raise("Tensor.__array__()", ErrorCode::kWrongType,
            "the tensor is on " + device_name(self->tensor.dl.device) +
                ", and NumPy reads host memory only. Copy it there: asdlpack(x, device='cpu')");
      return nullptr;
    }
    Ref array(array_interface::make_numpy(self));
    if (!array || (dtype == Py_None && copy == Py_None)) return array.release();
    const Ref numpy(PyImport_ImportModule("numpy"));
    const Ref function(numpy ? PyObject_GetAttrString(numpy.get(), "array") : nullptr);
    const Ref arguments(PyTuple_Pack(1, array.get()));
    const Ref options(Py_BuildValue("{s:O,s:O}", "dtype", dtype, "copy", copy));
    if (!function || !arguments || !options) return nullptr;
    return PyObject_Call(function.get(), arguments.get(), options.get());
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* tensor_reduce_ex(PyObject* self, PyObject* protocol) {
  const Ref module(PyImport_ImportModule("dlbridge._pickle"));
  const Ref function(module ? PyObject_GetAttrString(module.get(), "reduce_ex") : nullptr);
  return function ? PyObject_CallFunctionObjArgs(function.get(), self, protocol, nullptr) : nullptr;
}

PyMethodDef methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack::tensor_dlpack)),
     METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule that shares the memory, or a copy of it (array API 2024.12).\n\n"
     "stream: the consumer's CUDA stream (None: the legacy default stream, -1: no synchronisation); None on the\n"
     "host. max_version: (major, minor) the consumer takes; None gives a legacy capsule. dl_device: (type, id) the\n"
     "data is wanted on. copy: True always, False never, None when needed.\n"
     "Raises BufferError where the exchange must be refused, TypeError and ValueError for bad arguments."},
    {"__dlpack_device__", dlpack::tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe (device_type, device_id) pair of the tensor (DLPack)."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_array)),
     METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, *, copy=None)\n--\n\n"
     "A NumPy array that shares the memory. Raises TypeError for a tensor on a device."},
    {"__reduce_ex__", tensor_reduce_ex, METH_O,
     "__reduce_ex__($self, protocol, /)\n--\n\nPickles a host tensor; protocol 5 passes the data out of band."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorHead, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s cannot be made directly: it describes an array that exists. Use asdlpack(obj)",
               type->tp_name);
  return nullptr;
}

constexpr char kTensorDoc[] =
    "A light handle on an array in somebody else's memory: one descriptor, every protocol.\n\n"
    "Made by asdlpack(). Tensors on the host are HostTensor, on CUDA devices CudaTensor, so that each has the\n"
    "attributes that its device allows and no others. Exports may be taken many times.";

template <class Function>
void* slot_pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_type(PyObject* module, const char* name, PyType_Slot* slots, PyTypeObject* base) {
  PyType_Spec spec{name, sizeof(TensorObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};
  PyObject* type = PyType_FromModuleAndSpec(module, &spec, reinterpret_cast<PyObject*>(base));
  return reinterpret_cast<PyTypeObject*>(type);
}

// The table goes into each type's own __dict__: consumers compare types exactly, as the facts on the C exchange API
// ask, and must find it there.
bool advertise_exchange_api(PyTypeObject* type, PyObject* capsule) {
  if (PyDict_SetItem(type->tp_dict, names.dlpack_c_exchange_api, capsule) != 0) return false;
  PyType_Modified(type);
  return true;
}

}  // namespace

bool init_tensor_types(PyObject* module) {
  PyType_Slot base_slots[] = {
      {Py_tp_dealloc, slot_pointer(tensor_dealloc)}, {Py_tp_traverse, slot_pointer(tensor_traverse)},
      {Py_tp_clear, slot_pointer(tensor_clear)},     {Py_tp_repr, slot_pointer(tensor_repr)},
      {Py_tp_getset, attributes},                    {Py_tp_methods, methods},
      {Py_tp_members, members},                      {Py_tp_new, slot_pointer(refuse_new)},
      {Py_tp_doc, const_cast<char*>(kTensorDoc)},    {0, nullptr},
  };
  PyType_Slot host_slots[] = {
      {Py_tp_getset, host_attributes},
      {Py_bf_getbuffer, slot_pointer(buffer::get_buffer)},
      {Py_bf_releasebuffer, slot_pointer(buffer::release_buffer)},
      {Py_tp_dealloc, slot_pointer(tensor_dealloc)},
      {Py_tp_traverse, slot_pointer(tensor_traverse)},
      {Py_tp_clear, slot_pointer(tensor_clear)},
      {Py_tp_doc, const_cast<char*>("A Tensor in host memory: also a buffer and an __array_interface__.")},
      {0, nullptr},
  };
  PyType_Slot cuda_slots[] = {
      {Py_tp_getset, cuda_attributes},
      {Py_tp_dealloc, slot_pointer(tensor_dealloc)},
      {Py_tp_traverse, slot_pointer(tensor_traverse)},
      {Py_tp_clear, slot_pointer(tensor_clear)},
      {Py_tp_doc, const_cast<char*>("A Tensor in CUDA device or managed memory: also a __cuda_array_interface__.")},
      {0, nullptr},
  };
  tensor_types.base = make_type(module, "dlbridge.Tensor", base_slots, nullptr);
  if (tensor_types.base == nullptr) return false;
  tensor_types.host = make_type(module, "dlbridge.HostTensor", host_slots, tensor_types.base);
  tensor_types.cuda = make_type(module, "dlbridge.CudaTensor", cuda_slots, tensor_types.base);
  const Ref capsule(dlpack::make_exchange_api_capsule());
  if (tensor_types.host == nullptr || tensor_types.cuda == nullptr || !capsule) return false;
  for (PyTypeObject* type : {tensor_types.base, tensor_types.host, tensor_types.cuda})
    if (!advertise_exchange_api(type, capsule.get()) || PyModule_AddType(module, type) != 0) return false;
  return true;
}

}  // namespace dlbridge::py
