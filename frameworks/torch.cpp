// torch.Tensor through PyTorch's exchange table, with the checks that the table leaves out: tensors that require grad
// and those with the conj or neg bit pass through it as if they were plain data.
#include "frameworks/torch.h"

#include <memory>
#include <string>
#include <string_view>

#include "dlbridge/cuda_device.h"
#include "dlbridge/dlpack_codec.h"
#include "dlbridge/torch_caps.h"
#include "frameworks/exchange.h"
#include "frameworks/torch_bits.h"
#include "protocols/common/errors.h"
#include "protocols/dlpack/dlpack.h"

namespace dlbridge::frameworks {

using py::Read;

namespace {

// PyTorch's own C functions behind Tensor.requires_grad, .is_conj() and .is_neg(), taken from their descriptors once:
// calling them directly saves the attribute lookup.
struct TorchChecks {
  getter requires_grad = nullptr;
  void* requires_grad_closure = nullptr;
  PyCFunction is_conj = nullptr;
  PyCFunction is_neg = nullptr;
};
Atomic<const TorchChecks*> known_checks;  // found once, never freed
TorchBits bits;

PyCFunction find_method(PyObject* type, PyObject* name) {
  const py::Ref descriptor(PyObject_GetAttr(type, name));
  if (!descriptor || !Py_IS_TYPE(descriptor.get(), &PyMethodDescr_Type)) return nullptr;
  const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(descriptor.get())->d_method;
  return method->ml_flags == METH_NOARGS ? method->ml_meth : nullptr;
}

[[gnu::cold, gnu::noinline]] const TorchChecks& find_checks(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  auto made = std::make_unique<TorchChecks>();
  TorchChecks& checks = *made;
  const py::Ref descriptor(PyObject_GetAttr(object, py::names.requires_grad));
  if (descriptor && Py_IS_TYPE(descriptor.get(), &PyGetSetDescr_Type)) {
    const PyGetSetDef* getset = reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset;
    checks.requires_grad = getset->get;
    checks.requires_grad_closure = getset->closure;
  }
  checks.is_conj = find_method(object, py::names.is_conj);
  checks.is_neg = find_method(object, py::names.is_neg);
  PyErr_Clear();
  const TorchChecks* before = nullptr;
  return known_checks.replace(before, made.get()) ? *made.release() : *before;
}

// 1 true, 0 false, -1 with a Python error set. `fast` null: the attribute is looked up.
int ask_method(PyObject* object, PyCFunction fast, PyObject* name) {
  const py::Ref answer(fast != nullptr ? fast(object, nullptr) : PyObject_CallMethodNoArgs(object, name));
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

int asks_grad(PyObject* object, const TorchChecks& by) {
  const py::Ref answer(by.requires_grad != nullptr ? by.requires_grad(object, by.requires_grad_closure)
                                                   : PyObject_GetAttr(object, py::names.requires_grad));
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

[[gnu::cold]] bool refuse(int answer, py::ReadCall& call, const char* what, const char* remedy) {
  if (answer > 0)
    call.refuse(refused(std::string("the torch.Tensor ") + what + ", which DLPack cannot express. Use " + remedy));
  return false;
}

// The answers in PyTorch's own words. Without functions in `by`, the attributes are looked up.
bool ask_torch(PyObject* object, bool may_be_complex, const TorchChecks& by, py::ReadCall& call) {
  if (const int answer = asks_grad(object, by); answer != 0) [[unlikely]]
    return refuse(answer, call, "requires grad", "x.detach()");
  if (const int answer = ask_method(object, by.is_neg, py::names.is_neg); answer != 0) [[unlikely]]
    return refuse(answer, call, "has the neg bit set", "x.resolve_neg()");
  if (!may_be_complex) return true;
  if (const int answer = ask_method(object, by.is_conj, py::names.is_conj); answer != 0) [[unlikely]]
    return refuse(answer, call, "has the conj bit set", "x.resolve_conj()");
  return true;
}

bool check_lazy_bits(PyObject* object, DLDataType dtype, py::ReadCall& call) {
  if (bits.ready() && bits.surely_plain(object)) [[likely]]
    return true;
  const TorchChecks* checks = known_checks;
  if (checks == nullptr) [[unlikely]]
    checks = &find_checks(Py_TYPE(object));
  return ask_torch(object, dtype.code == kDLComplex, *checks, call);
}

// PyTorch's default and pooled streams live as long as the process; one that it was given (torch.cuda.ExternalStream)
// is the user's. The id of such a stream is its handle, that of PyTorch's own is none.
[[gnu::cold, gnu::noinline]] void note_own_stream(StreamHandle stream, int device) {
  static constinit Atomic<StreamHandle> last_foreign;
  if (stream == last_foreign) return;
  py::ErrorGuard guard;
  const py::Ref cuda_module = py::loaded_global("torch", "cuda");
  const py::Ref current(cuda_module ? PyObject_CallMethod(cuda_module.get(), "current_stream", "i", device) : nullptr);
  const py::Ref handle(current ? PyObject_GetAttrString(current.get(), "cuda_stream") : nullptr);
  const py::Ref id(handle ? PyObject_GetAttrString(current.get(), "stream_id") : nullptr);
  const bool known = id && PyLong_Check(handle.get()) && PyLong_Check(id.get()) &&
                     PyLong_AsVoidPtr(handle.get()) == reinterpret_cast<void*>(stream) &&
                     PyLong_AsVoidPtr(id.get()) != reinterpret_cast<void*>(stream);
  PyErr_Clear();
  if (known) cuda::note_lasting_stream(stream);
  else last_foreign.store(stream);
}

// What a tensor without readable memory is, in the words of dlbridge/_wrappers.py; empty: none of those it knows.
[[gnu::cold, gnu::noinline]] std::string describe_wrapper(PyObject* object) {
  const py::ErrorGuard guard;
  const py::Ref module(PyImport_ImportModule("dlbridge._wrappers"));
  const py::Ref text(module ? PyObject_CallMethod(module.get(), "describe", "O", object) : nullptr);
  const char* utf8 = text && PyUnicode_Check(text.get()) ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string described = utf8 != nullptr ? utf8 : "";
  PyErr_Clear();
  return described;
}

// PyTorch's own RuntimeError, several lines of C++, becomes a cause.
[[gnu::cold, gnu::noinline]] Read refuse_layout(PyObject* object, py::ReadCall& call) {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) return Read::kFailed;
  py::Ref cause = py::take_exception();
  std::string why = describe_wrapper(object);
  if (why.empty()) {
    const py::Ref text(PyObject_Str(cause.get()));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    const std::string_view whole = utf8 != nullptr ? utf8 : "no reason given";
    why = "PyTorch does not export the torch.Tensor: " + std::string(whole.substr(0, whole.find('\n'))) +
          ". Make it dense on a real device first, for example x.to_dense()";
  }
  PyErr_Clear();
  call.refuse(refused(std::move(why)));
  py::set_exception(std::move(cause));
  return Read::kFailed;
}

// Wrappers of tracers are exported with no data: that is no damage of the struct.
[[gnu::cold, gnu::noinline]] Read refuse_struct(PyObject* object, Status& status, py::ReadCall& call) {
  std::string why = describe_wrapper(object);
  return call.refuse(why.empty() ? std::move(status) : refused(std::move(why)));
}

bool is_named_as_wrapper(PyTypeObject* type) noexcept {
  const std::string_view name = type->tp_name;
  return name == "FakeTensor" || name == "FunctionalTensor" || name == "NestedTensor" || name == "DTensor";
}

bool check_tensor(PyObject* object, py::ReadCall& call) {
  if (is_named_as_wrapper(Py_TYPE(object))) [[unlikely]] {
    if (std::string why = describe_wrapper(object); !why.empty()) return call.refuse(refused(std::move(why))), false;
  }
  return ask_torch(object, true, TorchChecks{}, call);
}

bool refuse_proxy(PyObject*, py::ReadCall& call) {
  call.refuse(refused("the object is a torch.fx.Proxy, which stands for a value while torch.fx traces; it has no "
                      "memory. Convert outside "
                      "of the traced code, or make the function that converts a leaf: torch.fx.wrap('name')"));
  return false;
}

// The borrowed DLTensor (the object keeps the memory), with the checks that the table leaves out.
Read read_tensor(PyObject* object, const DLPackExchangeAPI* api, py::ReadCall& call, py::TensorObject* self) {
  self->protocol = py::Protocol::kDLPack;
  if (api->dltensor_from_py_object_no_sync == nullptr) return dlpack::read_exchange(object, api, call, self);
  // Borrowed: PyTorch's tensor object keeps the memory and is held. Its struct has no flags, and PyTorch has no
  // read-only tensors.
  DLTensor borrowed;
  if (api->dltensor_from_py_object_no_sync(object, &borrowed) != 0) return refuse_layout(object, call);
  if (!check_lazy_bits(object, borrowed.dtype, call)) return Read::kFailed;
  if (Status status = decode_dltensor(borrowed, 0, self->tensor); !status.ok()) [[unlikely]]
    return refuse_struct(object, status, call);
  if (!dlpack::query_stream(api, call, self->tensor)) return Read::kFailed;
  if (const Ordering& ready = self->tensor.ready; ready.handle > kPerThreadStream) [[unlikely]]
    if (!cuda::is_lasting_stream(ready.handle)) note_own_stream(ready.handle, self->tensor.dl.device.device_id);
  self->tensor.owner = make_swap_guard(object);
  if (!self->tensor.owner) [[unlikely]]
    return Read::kFailed;
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

bool is_tensor(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  const py::Ref tensor = py::loaded_global("torch", "Tensor");
  return tensor && PyType_Check(tensor.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor.get())) != 0;
}
bool is_exact_tensor(PyTypeObject* type, const DLPackExchangeAPI* api) noexcept {
  return api != nullptr && py::loaded_global("torch", "Tensor").get() == reinterpret_cast<PyObject*>(type);
}

bool is_proxy(PyTypeObject* type, const DLPackExchangeAPI*) noexcept {
  const py::Ref proxy = py::loaded_global("torch.fx.proxy", "Proxy");
  return proxy && PyType_Check(proxy.get()) &&
         PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(proxy.get())) != 0;
}

// Subclasses inherit the table but not what it promises; and only __dlpack__ refuses conj and requires_grad.
constexpr ArrayKind kArrays[] = {{.recognises = is_exact_tensor, .read = read_tensor, .check = check_tensor},
                                 {.recognises = is_tensor, .check = check_tensor, .only_dlpack = true},
                                 {.recognises = is_proxy, .check = refuse_proxy}};

// Its importer has no name for pinned and for managed memory (pytorch#96318), and uses both.
constexpr caps kNamedByTorch = [] {
  caps named = kTorchCaps;
  named.devices = kOnCpu | devices(kDLCUDA);
  return named;
}();
constexpr Consumer kTakes[] = {{.takes = kNamedByTorch, .enter = "from_dlpack"}};
constexpr const char* kNames[] = {"pytorch"};

// By its C exchange table (PyTorch 2.10 and newer): from_dlpack() costs about ten times as much. The table lives as
// long as the process.
PyObject* give(py::TensorObject* tensor, const char* operation) {
  static constinit Atomic<const DLPackExchangeAPI*> known;
  const DLPackExchangeAPI* api = known;
  if (api == nullptr) known.store(api = exchange_table_of("torch", "Tensor"));
  return api != nullptr ? dlpack::give_to_exchange(tensor, api, operation) : nullptr;
}

}  // namespace

extern constinit const Framework kTorch{.name = "torch",
                                        .module = "torch",
                                        .aliases = kNames,
                                        .arrays = kArrays,
                                        .consumers = kTakes,
                                        .give = give,
                                        .shares = takes_as_is<kTakes>};

}  // namespace dlbridge::frameworks
