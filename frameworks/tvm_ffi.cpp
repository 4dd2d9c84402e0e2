// tvm-ffi: its tensors' __dlpack__ takes a stream and looks away.
#include "frameworks/exchange.h"

namespace dlbridge::frameworks {

namespace {

// With a C exchange table of its own it says its stream itself.
bool is_tensor(PyTypeObject* type, const DLPackExchangeAPI* api) noexcept {
  const py::Ref tensor = py::loaded_global("tvm_ffi", "Tensor");
  return api == nullptr && tensor && PyType_Check(tensor.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor.get())) != 0;
}

// tvm-ffi orders nothing, neither what it exports nor what it imports: its tensors are ready on the stream that it
// works on, the legacy default one unless tvm_ffi.use_raw_stream() names another.
bool order(PyObject* tensor, py::ReadCall&, py::TensorObject* self) {
  if (!is_cuda(self->tensor.dl.device)) [[likely]]
    return true;
  const py::Ref device(PyObject_GetAttrString(tensor, "device"));
  const py::Ref module = py::loaded_module("tvm_ffi");
  const py::Ref function(device && module ? PyObject_GetAttrString(module.get(), "get_raw_stream") : nullptr);
  const py::Ref stream(function ? PyObject_CallOneArg(function.get(), device.get()) : nullptr);
  if (!stream) return PyErr_Occurred() == nullptr;
  const unsigned long long handle = PyLong_AsUnsignedLongLong(stream.get());
  if (PyErr_Occurred() != nullptr) return false;
  self->tensor.ready = Ordering::on_stream(handle);
  return true;
}

constexpr ArrayKind kArrays[] = {{.recognises = is_tensor, .order = order}};

// Its own dtype has no complex code: "DLDataType contains unknown type_code=5".
constexpr Consumer kTakes[] = {
    {.takes = {.dtypes = kBoolAndNumbers | kBFloat16 | kFloat8 | dtypes(DType::kFloat4E2M1FNx2),
               .devices = kOnHost | kOnCuda,
               .strides = stride_rule::any},
     .enter = "tvm_ffi"}};

// Where tvm_ffi.Tensor has a C exchange table: 0.1.15 has none.
PyObject* give(py::TensorObject* tensor, const char* operation) {
  const DLPackExchangeAPI* api = exchange_table_of("tvm_ffi", "Tensor");
  return api != nullptr ? dlpack::give_to_exchange(tensor, api, operation) : nullptr;
}

}  // namespace

extern constinit const Framework kTvmFfi{
    .name = "tvm_ffi", .module = "tvm_ffi", .arrays = kArrays, .consumers = kTakes, .give = give};

}  // namespace dlbridge::frameworks
