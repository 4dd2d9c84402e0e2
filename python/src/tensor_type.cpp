// The Tensor types: slots, attributes, methods. What each exports lives with its protocol.
#include <array>
#include <string>

#include "frameworks/numpy.h"
#include "frameworks/torch.h"
#include "protocols/array_interface/array_interface.h"
#include "protocols/arrow/arrow.h"
#include "protocols/buffer/buffer.h"
#include "protocols/common/array_arguments.h"
#include "protocols/common/errors.h"
#include "protocols/common/held_buffer.h"
#include "protocols/common/streams.h"
#include "protocols/cuda_array_interface/cuda_array_interface.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/kit/tables.h"

namespace dlbridge::py {

TensorTypes tensor_types;
LiveCounts live;
DLBRIDGE_PER_THREAD TensorFreelist tensor_freelist;

namespace {

// --- life -----------------------------------------------------------------------------------------------------------

void free_tensor(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  free_object<recycle_tensor>(object,
                              type == tensor_types.host || type == tensor_types.cuda || type == tensor_types.base);
}

// The memory behind this tensor may die with it: it has the last references to the source, or an owner that is not
// the source's own buffer.
bool may_cascade(const TensorObject* self) noexcept {
  const Py_ssize_t references = self->source == nullptr ? 1 : Py_REFCNT(self->source);
  if (!self->tensor.owner || frameworks::is_swap_guard(self->tensor.owner)) return references == 1;
  return references <= 2 || !holds_buffer(self);
}

// What nearly every tensor is when it dies: a plain view of an object that others hold, too.
bool dies_simply(const TensorObject* self) noexcept {
  return Py_TYPE(self) == tensor_types.host && !self->tracked && self->weakrefs == nullptr && !self->tensor.owner &&
         self->source != nullptr && Py_REFCNT(self->source) > 1;
}

void tensor_dealloc(PyObject* object) noexcept {
  if (TensorObject* self = as_tensor(object); dies_simply(self)) [[likely]] {
    self->tensor.~Tensor();
    drop_shared(self->source);
    live.tensors.add(-1);
    return recycle_tensor(self);
  }
  if (may_cascade(as_tensor(object))) [[unlikely]]
    return free_chain<tensor_dealloc, free_tensor>(object);
  free_tensor(object);
}

// A memoryview is not shown to the collector: it would clear one that still lends its memory, and CPython before 3.11.8
// and 3.12.2 crashes when the loan ends (python/cpython#77894). NumPy's arrays show nothing of what they hold, either.
int tensor_traverse(PyObject* object, visitproc visit, void* arg) noexcept {
  TensorObject* self = as_tensor(object);
  if (self->source != nullptr && !PyMemoryView_Check(self->source)) Py_VISIT(self->source);
  if (holds_buffer(self) && self->view.obj != nullptr && !PyMemoryView_Check(self->view.obj)) Py_VISIT(self->view.obj);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

// Only a tensor in a dead cycle comes here; what is left of it is empty, so that a finaliser may still look at it.
int tensor_clear(PyObject* object) noexcept {
  TensorObject* self = as_tensor(object);
  Tensor empty;
  empty.set_dtype(self->tensor.dtype());
  empty.reserve_dims(1);
  empty.dl.shape[0] = 0;
  empty.dl.strides[0] = 1;
  empty.size = 0;
  if (self->notes != nullptr) settle_notes(self);
  self->tensor = std::move(empty);
  Py_CLEAR(self->source);
  return 0;
}

// --- attributes -----------------------------------------------------------------------------------------------------

const Tensor& tensor_of(PyObject* self) { return as_tensor(self)->tensor; }

PyObject* get_shape(PyObject* self) { return make_dims(tensor_of(self).dl.shape, tensor_of(self).dl.ndim, 1); }
PyObject* get_strides(PyObject* self) {
  return make_dims(tensor_of(self).dl.strides, tensor_of(self).dl.ndim, tensor_of(self).itemsize());
}
PyObject* get_dtype(PyObject* self) { return make_dtype(tensor_of(self).dl.dtype); }
// NumPy 2.4 takes an object whose `dtype` is no numpy.dtype, but stands for one, for a mistake: this says which it is.
PyObject* get_numpy_dtype(PyObject* self) {
  return PyObject_GetAttrString(owned(get_dtype(self)).get(), "__numpy_dtype__");
}
PyObject* get_device(PyObject* self) { return make_device(tensor_of(self).dl.device); }
PyObject* get_ndim(PyObject* self) { return PyLong_FromLong(tensor_of(self).dl.ndim); }
PyObject* get_size(PyObject* self) { return PyLong_FromLongLong(tensor_of(self).size); }
PyObject* get_itemsize(PyObject* self) { return PyLong_FromLongLong(tensor_of(self).itemsize()); }
PyObject* get_nbytes(PyObject* self) { return PyLong_FromLongLong(tensor_of(self).nbytes()); }
PyObject* get_data_ptr(PyObject* self) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(tensor_of(self).dl.data));
}
PyObject* get_readonly(PyObject* self) { return PyBool_FromLong(tensor_of(self).readonly()); }
PyObject* get_is_contiguous(PyObject* self) { return PyBool_FromLong(is_c_contiguous(tensor_of(self).dl)); }
PyObject* get_padded(PyObject* self) { return PyBool_FromLong(tensor_of(self).padded()); }
PyObject* get_protocol(PyObject* self) {
  return PyUnicode_FromString(kProtocolNames[static_cast<int>(as_tensor(self)->protocol)]);
}
PyObject* get_owner(PyObject* self) {
  PyObject* source = as_tensor(self)->source;
  return Ref::borrow(source != nullptr ? source : Py_None).release();
}

std::vector<PyGetSetDef> attributes() {
  return {
      getter<get_shape>("shape", "tuple of int: the extent of each axis, in elements."),
      getter<get_strides>("strides", "tuple of int: bytes from one element to the next, for each axis."),
      getter<get_dtype>("dtype", "dlbridge.DType: equal to its name ('float32') and to NumPy's dtype."),
      getter<get_numpy_dtype>("__numpy_dtype__", "numpy.dtype: NumPy's (or ml_dtypes') of that name."),
      getter<get_device>("device", "dlbridge.Device: equal to its name ('cpu', 'cuda:0')."),
      getter<get_ndim>("ndim", "int: the number of axes."),
      getter<get_size>("size", "int: the number of elements."),
      getter<get_itemsize>("itemsize", "int: bytes of one element."),
      getter<get_nbytes>("nbytes", "int: bytes that the elements take when stored densely."),
      getter<get_data_ptr>("data_ptr", "int: address of the first element; 0 when size is 0."),
      getter<get_is_contiguous>("is_contiguous", "bool: True where the elements are dense in C order."),
      getter<get_readonly>("readonly", "bool: True where the producer forbids writing."),
      getter<get_padded>("padded", "bool: True where each sub-byte element has a byte of its own (DLPack 1.1)."),
      getter<get_protocol>("protocol",
                           "str: the reader used: 'dlpack', 'array_interface', 'cuda_array_interface', 'buffer' or "
                           "'arrow'."),
      getter<get_owner>("owner", "The object that was passed in and is kept alive; None for a copy or a capsule."),
  };
}

// --- methods --------------------------------------------------------------------------------------------------------

PyObject* tensor_repr(PyObject* self) {
  const TensorObject* object = as_tensor(self);
  const Ref shape = owned(get_shape(self));
  return PyUnicode_FromFormat(
      "<%s shape=%R dtype=%s device=%s protocol=%s%s>", Py_TYPE(self)->tp_name, shape.get(),
      dtype_name(object->tensor.dl.dtype).c_str(), device_name(object->tensor.dl.device).c_str(),
      kProtocolNames[static_cast<int>(object->protocol)], object->tensor.readonly() ? " readonly" : "");
}

constexpr char kDlpack[] =
    "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "A DLPack capsule that shares the memory, or a copy of it (array API 2024.12).\n\n"
    "stream: the consumer's CUDA stream (None: the legacy default stream, -1: no synchronisation); None on the\n"
    "host. max_version: (major, minor) the consumer takes; None gives a legacy capsule. dl_device: (type, id) the\n"
    "data is wanted on. copy: True always, False never, None when needed.\n"
    "Raises BufferError where the exchange must be refused, TypeError and ValueError for bad arguments.";
constexpr char kDlpackDevice[] =
    "__dlpack_device__($self)\n--\n\nThe (device_type, device_id) pair of the tensor (DLPack).";

// NumPy's last resort, and its only way to a bfloat16 array.
constexpr char kArray[] = "__array__($self, dtype=None, *, copy=None)\n--\n\n"
                          "A NumPy array that shares the memory. Raises TypeError for a tensor on a device.";
PyObject* tensor_array(PyObject* object, const Call& a) {
  constexpr char kOperation[] = "Tensor.__array__()";
  TensorObject* self = as_tensor(object);
  if (!is_host(self->tensor.dl.device))
    throw_issue(kOperation, ErrorCode::kWrongType,
                "the tensor is on " + device_name(self->tensor.dl.device) +
                    ", and NumPy reads host memory only. Copy it there: asdlpack(x, device='cpu')");
  Ref array = owned(frameworks::make_numpy(self, kOperation));
  if (a[0] == nullptr && a[1] == nullptr) return array.release();
  static PythonFunction numpy_array("numpy", "array");
  const auto given = [&](std::size_t i) { return a[i] != nullptr ? a[i] : Py_None; };
  const Ref options = owned(Py_BuildValue("{s:O,s:O}", "dtype", given(0), "copy", given(1)));
  return PyObject_VectorcallDict(numpy_array.get(), std::array{array.get()}.data(), 1, options.get());
}

constexpr char kReduceEx[] =
    "__reduce_ex__($self, protocol, /)\n--\n\nPickles a host tensor; protocol 5 passes the data out of band.";
PyObject* tensor_reduce_ex(PyObject* self, PyObject* protocol) {
  static PythonFunction reduce_ex("dlbridge._pickle", "reduce_ex");
  return reduce_ex(self, protocol).release();
}

constexpr char kRecordStream[] =
    "record_stream($self, stream, /)\n--\n\n"
    "Says that work on a CUDA stream uses the memory: it is not given back to a pool, and the producer does not\n"
    "use it again, before the work that the stream holds when the tensor dies is done. Nothing waits on the host.\n"
    "The stream must live as long as the tensor.\n\n"
    "stream: a handle, 1 (legacy default), 2 (per-thread default), or an object with __cuda_stream__.\n"
    "Raises BufferError for a tensor on the host, TypeError and ValueError for anything that is not a stream.";
PyObject* tensor_record_stream(PyObject* object, PyObject* argument) {
  checked(record_stream(as_tensor(object), argument));
  Py_RETURN_NONE;
}

constexpr char kArrowSchema[] = "__arrow_c_schema__($self)\n--\n\n"
                                "A capsule with the type of the Arrow array (Arrow PyCapsule interface).";
constexpr char kArrowArray[] =
    "__arrow_c_array__($self, requested_schema=None)\n--\n\n"
    "Capsules of an Arrow schema and of an array that shares the memory: 1-d tensors as a primitive array, others as\n"
    "arrow.fixed_shape_tensor with one row for each index of axis 0.\n\n"
    "requested_schema: a schema of bool gives a 1-d bool tensor as a packed copy; any other is a wish that is not\n"
    "met.\n"
    "Raises BufferError for bools without it, dtypes that Arrow lacks, 0-d tensors and those not dense in C order.";
constexpr char kArrowDeviceArray[] =
    "__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\n"
    "The same with the device: on CUDA the array has an event that happens when the data is ready.\n\n"
    "kwargs: names of later versions of the interface, whose value must be None.\n"
    "Raises NotImplementedError for any other value of them (Arrow PyCapsule interface).";
PyObject* tensor_arrow_array(PyObject* self, const Call& a) {
  return arrow_c::tensor_arrow_array(self, a[0] != nullptr ? a[0] : Py_None);
}
PyObject* tensor_arrow_device_array(PyObject* self, const Call& a) {
  return arrow_c::tensor_arrow_device_array(self, a[0] != nullptr ? a[0] : Py_None);
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorHead, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  throw_error(PyExc_TypeError, "%s cannot be made directly: it describes an array that exists. Use asdlpack(obj)",
              type->tp_name);
}

constexpr char kTensorDoc[] =
    "A light handle on an array in somebody else's memory: one descriptor, every protocol.\n\n"
    "Made by asdlpack(). Tensors on the host are HostTensor, on CUDA devices CudaTensor, so that each has the\n"
    "attributes that its device allows and no others. Exports may be taken many times.";

// The exchange table goes into each type's own __dict__: consumers compare types exactly, as the facts on the C
// exchange API ask, and must find it there.
PyTypeObject* add_tensor_type(PyObject* module, const char* name, std::vector<PyType_Slot> slots, PyTypeObject* base) {
  for (const PyType_Slot& life :
       {slot<tensor_dealloc>(Py_tp_dealloc), slot<tensor_traverse>(Py_tp_traverse), slot<tensor_clear>(Py_tp_clear)})
    slots.push_back(life);
  PyTypeObject* type =
      add_type(module, name, sizeof(TensorObject),
               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
               std::move(slots), reinterpret_cast<PyObject*>(base));
  const Ref capsule = owned(dlpack::make_exchange_api_capsule(dlpack::own_exchange_api()));
  checked(PyDict_SetItem(type->tp_dict, names.dlpack_c_exchange_api, capsule.get()));
  PyType_Modified(type);
  return type;
}

}  // namespace

void init_tensor_types(PyObject* module) {
  tensor_types.base = add_tensor_type(
      module, "dlbridge.Tensor",
      {slot<tensor_repr>(Py_tp_repr), getters_slot(attributes()),
       methods_slot({method<kDlpack, dlpack::tensor_dlpack>(), method<kDlpackDevice, dlpack::tensor_dlpack_device>(),
                     method<kArray, tensor_array>(), method<kRecordStream, tensor_record_stream>(),
                     method<kReduceEx, tensor_reduce_ex>()}),
       slot(Py_tp_members, members), slot<refuse_new>(Py_tp_new), doc_slot(kTensorDoc)},
      nullptr);
  tensor_types.host = add_tensor_type(
      module, "dlbridge.HostTensor",
      {getters_slot({getter<array_interface::tensor_array_interface>("__array_interface__",
                                                                     "dict: NumPy's array interface, version 3."),
                     getter<array_interface::tensor_array_struct>("__array_struct__",
                                                                  "capsule: NumPy's array interface as a C struct.")}),
       methods_slot({method<kArrowSchema, arrow_c::tensor_arrow_schema>(), method<kArrowArray, tensor_arrow_array>(),
                     method<kArrowDeviceArray, tensor_arrow_device_array>()}),
       slot<buffer::get_buffer>(Py_bf_getbuffer), slot<buffer::release_buffer>(Py_bf_releasebuffer),
       doc_slot("A Tensor in host memory: also a buffer, an __array_interface__ and an Arrow array.")},
      tensor_types.base);
  tensor_types.cuda = add_tensor_type(
      module, "dlbridge.CudaTensor",
      {getters_slot({getter<cuda_array_interface::tensor_cuda_array_interface>(
           "__cuda_array_interface__",
           "dict: CUDA Array Interface, version 3, or 2 with DLBRIDGE_CUDA_ARRAY_INTERFACE_EXPORT_VERSION=2.")}),
       // Not __arrow_c_array__: that is host memory.
       methods_slot({method<kArrowSchema, arrow_c::tensor_arrow_schema>(),
                     method<kArrowDeviceArray, tensor_arrow_device_array>()}),
       doc_slot("A Tensor in CUDA device or managed memory: also a __cuda_array_interface__.")},
      tensor_types.base);
}

}  // namespace dlbridge::py
