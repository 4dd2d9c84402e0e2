// torch.Tensor through PyTorch's exchange table, with the checks that the table leaves out: tensors that require grad
// and those with the conj or neg bit pass through it as if they were plain data.
#include <string>
#include <string_view>

#include "dlbridge/dlpack_codec.h"
#include "protocols/common/errors.h"
#include "protocols/dlpack/dlpack.h"
#include "protocols/dlpack/torch_bits.h"

namespace dlbridge::dlpack {

namespace {

constexpr char kOperation[] = "asdlpack()";

// PyTorch's own C functions behind Tensor.requires_grad, .is_conj() and .is_neg(), taken from their descriptors once:
// calling them directly saves the attribute lookup.
struct TorchChecks {
  getter requires_grad = nullptr;
  void* requires_grad_closure = nullptr;
  PyCFunction is_conj = nullptr;
  PyCFunction is_neg = nullptr;
  bool ready = false;
};
TorchChecks checks;
TorchBits bits;

PyCFunction find_method(PyObject* type, PyObject* name) {
  const py::Ref descriptor(PyObject_GetAttr(type, name));
  if (!descriptor || !Py_IS_TYPE(descriptor.get(), &PyMethodDescr_Type)) return nullptr;
  const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(descriptor.get())->d_method;
  return method->ml_flags == METH_NOARGS ? method->ml_meth : nullptr;
}

void find_checks(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  checks.ready = true;
  const py::Ref descriptor(PyObject_GetAttr(object, py::names.requires_grad));
  if (descriptor && Py_IS_TYPE(descriptor.get(), &PyGetSetDescr_Type)) {
    const PyGetSetDef* getset = reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset;
    checks.requires_grad = getset->get;
    checks.requires_grad_closure = getset->closure;
  }
  checks.is_conj = find_method(object, py::names.is_conj);
  checks.is_neg = find_method(object, py::names.is_neg);
  PyErr_Clear();
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

[[gnu::cold]] bool refuse(int answer, const char* what, const char* remedy) {
  if (answer > 0)
    py::raise(kOperation, ErrorCode::kRefused,
              std::string("the torch.Tensor ") + what + ", which DLPack cannot say. Use " + remedy);
  return false;
}

// The answers in PyTorch's own words. Without functions in `by`, the attributes are looked up.
bool ask_torch(PyObject* object, bool may_be_complex, const TorchChecks& by) {
  if (const int answer = asks_grad(object, by); answer != 0) [[unlikely]]
    return refuse(answer, "requires grad", "x.detach()");
  if (const int answer = ask_method(object, by.is_neg, py::names.is_neg); answer != 0) [[unlikely]]
    return refuse(answer, "has the neg bit set", "x.resolve_neg()");
  if (!may_be_complex) return true;
  if (const int answer = ask_method(object, by.is_conj, py::names.is_conj); answer != 0) [[unlikely]]
    return refuse(answer, "has the conj bit set", "x.resolve_conj()");
  return true;
}

bool check_lazy_bits(PyObject* object, DLDataType dtype) {
  if (bits.ready() && bits.surely_plain(object)) [[likely]] return true;
  if (!checks.ready) [[unlikely]] find_checks(Py_TYPE(object));
  return ask_torch(object, dtype.code == kDLComplex, checks);
}

// Sparse, quantised, MKL-DNN and meta tensors: PyTorch's own RuntimeError, several lines of C++, becomes a cause.
[[gnu::cold]] Read refuse_layout() {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) return Read::kFailed;
  py::Ref cause = py::take_exception();
  const py::Ref text(PyObject_Str(cause.get()));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  const std::string_view whole = utf8 != nullptr ? utf8 : "no reason given";
  py::raise(kOperation, ErrorCode::kRefused,
            "PyTorch does not export the torch.Tensor: " + std::string(whole.substr(0, whole.find('\n'))) +
                ". Make it dense on a real device first, for example x.to_dense()");
  py::Ref error = py::take_exception();
  PyException_SetCause(error.get(), cause.release());
  py::set_exception(std::move(error));
  return Read::kFailed;
}

}  // namespace

bool check_torch(PyObject* object) { return ask_torch(object, true, TorchChecks{}); }

Read read_torch(PyObject* object, const DLPackExchangeAPI* api, py::TensorObject* self) {
  if (api->dltensor_from_py_object_no_sync == nullptr) return read_exchange(object, api, self);
  // Borrowed: PyTorch's tensor object keeps the memory and is held. Its struct has no flags, and PyTorch has no
  // read-only tensors.
  DLTensor borrowed;
  if (api->dltensor_from_py_object_no_sync(object, &borrowed) != 0) return refuse_layout();
  if (!check_lazy_bits(object, borrowed.dtype)) return Read::kFailed;
  if (const Status status = decode_dltensor(borrowed, 0, self->tensor); !status.ok()) [[unlikely]] {
    py::raise(kOperation, status.issue());
    return Read::kFailed;
  }
  if (!query_stream(api, self->tensor)) return Read::kFailed;
  Py_INCREF(object);
  self->source = object;
  return Read::kDone;
}

}  // namespace dlbridge::dlpack
