// convert(): read, plan, copy where it must be, and in: by the framework's C way, or by its function in
// dlbridge/_convert.py.
#include "python/src/convert.h"

#include <string>

#include "frameworks/buffer.h"
#include "frameworks/numpy.h"
#include "frameworks/plan.h"
#include "frameworks/table.h"
#include "protocols/common/bool_bytes.h"
#include "protocols/common/copying.h"
#include "protocols/common/errors.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/kit/call.h"

namespace dlbridge::py {

namespace {

using frameworks::Framework;
using frameworks::Plan;

constexpr char kOperation[] = "convert()";

// --- in -------------------------------------------------------------------------------------------------------------

// A framework's own exception becomes the cause of ours; what says nothing about the tensor passes through.
[[gnu::cold]] PyObject* refuse_for(const char* name, const char* note, PyObject* tensor) {
  if (is_final_error() || PyErr_ExceptionMatches(exceptions.exchange) != 0) return nullptr;
  const bool is_import = PyErr_ExceptionMatches(PyExc_ImportError) != 0;
  Ref cause = take_exception();
  const Ref text(PyObject_Str(cause.get()));
  const Ref shown(PyObject_Repr(tensor));
  const char* said = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const char* what = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  std::string message = std::string(name) + (is_import ? " cannot take " : " refused ") +
                        (what != nullptr ? what : "the tensor") + ": " + (said != nullptr ? said : "no reason given");
  if (is_import && *note != '\0') message += std::string(". ") + note;
  set_exception(std::move(cause));
  raise_refusal(kOperation, refused(std::move(message)));
  return nullptr;
}

PyObject* enter(const char* function, PyObject* module, PyObject* tensor) {
  PyObject* const half = python_half();
  return half != nullptr ? PyObject_CallMethod(half, function, "OO", module, tensor) : nullptr;
}

[[gnu::cold]] PyObject* refuse(const Framework& framework, const Plan& plan, const Tensor& tensor) {
  const auto [reason, remedy] = frameworks::explain(plan, framework, tensor);
  const bool needs_copy = plan.is_copy();
  raise(kOperation, needs_copy ? ErrorCode::kCopyRefused : ErrorCode::kRefused,
        std::string(framework.name) + (needs_copy ? " needs a copy: " : ": ") + reason + ". " + remedy);
  return nullptr;
}

// The framework's module, imported if nobody has. Null with a Python error set.
Ref import_module(const Framework& framework) {
  const Ref name(PyUnicode_InternFromString(framework.module));
  Ref module(name ? PyImport_GetModule(name.get()) : nullptr);
  if (module || PyErr_Occurred() != nullptr) return module;
  module = Ref(PyImport_Import(name.get()));
  if (module || PyErr_ExceptionMatches(PyExc_ImportError) == 0) return module;
  Ref cause = take_exception();
  if (PyObject* const half = python_half(); half != nullptr)
    static_cast<void>(
        Ref(PyObject_CallMethod(half, "refuse_import", "ssO", framework.name, framework.module, cause.get())));
  return {};
}

// What nearly every tensor needs: it is taken as it is. Null, with no Python error set: deliver() knows what becomes
// of it.
[[gnu::always_inline]] inline PyObject* share(TensorObject* self, const Framework& framework) {
  if (framework.shares == nullptr || !framework.shares(self->tensor)) [[unlikely]]
    return nullptr;
  PyObject* const given = framework.give(self, kOperation);
  if (given == nullptr && PyErr_Occurred() != nullptr) [[unlikely]]
    return refuse_for(framework.name, framework.consumers.front().note, as_object(self));
  return given;
}

// The same memory as "cpu" or "cuda", for a consumer that takes it and has no name for pinned or managed memory.
[[gnu::cold]] Ref under_plain_name(TensorObject* self) {
  Tensor out = dlbridge::detail::alias_of(self->tensor);
  out.dl.device = plain_memory_of(out.dl.device);
  return owned(as_object(wrap_tensor(std::move(out), self->protocol, as_object(self))));
}

// By the table: shared, copied, or refused.
PyObject* deliver(Ref tensor, const Framework& framework, bool never_copy) {
  if (&framework == &kOwnTarget) return settled(as_tensor(tensor.release()), kOperation);
  TensorObject* self = as_tensor(tensor.get());
  const Plan plan = frameworks::plan(framework, self->tensor);
  if (plan.outcome != Plan::Outcome::kShared) [[unlikely]] {
    if (plan.consumer == nullptr || (never_copy && plan.is_copy())) return refuse(framework, plan, self->tensor);
    if (plan.outcome == Plan::Outcome::kCopied) {
      tensor = Ref(as_object(copy_tensor(self, self->tensor.dl.device, kOperation)));
      if (!tensor) return nullptr;
      self = as_tensor(tensor.get());
    }
  }
  if (!plan.consumer->knows(self->tensor.dl.device)) [[unlikely]] {
    tensor = under_plain_name(self);
    self = as_tensor(tensor.get());
  }
  if (framework.give != nullptr) {
    PyObject* const given = framework.give(self, kOperation);
    if (given != nullptr) [[likely]]
      return given;
    if (PyErr_Occurred() != nullptr) return refuse_for(framework.name, plan.consumer->note, tensor.get());
  }
  const Ref module = import_module(framework);
  if (!module) return nullptr;
  // What was imported just now may have the C way.
  PyObject* given = framework.give != nullptr ? framework.give(self, kOperation) : nullptr;
  if (given == nullptr && PyErr_Occurred() == nullptr) {
    tensor = Ref(settled(as_tensor(tensor.release()), kOperation));  // it may be kept
    if (!tensor) return nullptr;
    given = enter(plan.consumer->enter, module.get(), tensor.get());
  }
  return given != nullptr ? given : refuse_for(framework.name, plan.consumer->note, tensor.get());
}

PyObject* deliver(Ref tensor, PyObject* module) {
  tensor = Ref(settled(as_tensor(tensor.release()), kOperation));
  if (!tensor) return nullptr;
  PyObject* const given = enter("from_dlpack", module, tensor.get());
  return given != nullptr ? given : refuse_for(PyModule_GetName(module), "", tensor.get());
}

TensorObject* expect_tensor(PyObject* object, const char* operation) {
  if (is_tensor(object)) return as_tensor(object);
  raise(operation, ErrorCode::kWrongType, "the object is " + type_name(object) + ", not a dlbridge.Tensor");
  return nullptr;
}

constexpr char kNameAFramework[] = "Name one: convert(x, 'numpy')";

PyObject* deliver(Ref tensor, PyObject* object, const Conversion& wanted) {
  if (wanted.target.module) return deliver(std::move(tensor), wanted.target.module.get());
  const Framework* framework = wanted.target.framework;
  if (framework == nullptr) framework = own_target(object, kOperation, kNameAFramework);
  return framework != nullptr ? deliver(std::move(tensor), *framework, wanted.read.never_copy) : nullptr;
}

[[gnu::cold]] void refuse_cast(const Tensor& tensor, DLDataType dtype) {
  throw_issue(kOperation, ErrorCode::kCopyRefused,
              "the array is " + std::string(tensor.dtype().name) + " and dtype asks for " + dtype_name(dtype) +
                  ", which needs a copy that copy=False forbids. Leave copy out");
}

const ReadOptions kCopyOnly = [] {
  ReadOptions out;
  out.operation = kOperation;
  out.must_copy = true;
  return out;
}();

}  // namespace

PyObject* convert_array(PyObject* object, const Conversion& wanted) {
  if (wanted.is_plain) [[likely]]
    return deliver(owned(read_any(object, kOperation)), object, wanted);
  ReadOptions options = wanted.read;
  bool swapped = false;
  Ref tensor = owned(read_unapplied(object, options, swapped));
  if (wanted.dtype && !same_dtype(as_tensor(tensor.get())->tensor.dl.dtype, *wanted.dtype)) {
    if (options.never_copy) refuse_cast(as_tensor(tensor.get())->tensor, *wanted.dtype);
    if (swapped) tensor = owned(apply_options(std::move(tensor), kCopyOnly, true));
    tensor = cast_tensor(std::move(tensor), *wanted.dtype, kOperation);
    options.must_copy = swapped = false;
  }
  if (wanted.layout) tensor = with_axes(std::move(tensor), *wanted.layout, object, kOperation);
  return deliver(owned(apply_options(std::move(tensor), options, swapped)), object, wanted);
}

namespace {

// PyTorch's tensors say nothing of their memory while they require grad: then it is asked of x.detach().
Ref read_like(PyObject* like, const Framework& framework) {
  Ref tensor(read_any(like, kOperation));
  if (tensor || std::string_view(framework.name) != "torch") return owned(tensor.release());
  if (PyErr_ExceptionMatches(exceptions.exchange) == 0) throw PythonError();
  Ref refusal = take_exception();
  const Ref detached(PyObject_CallMethod(like, "detach", nullptr));
  if (detached) tensor = Ref(read_any(detached.get(), kOperation));
  if (!tensor) set_exception(std::move(refusal));
  return owned(tensor.release());
}

}  // namespace

void follow_array(PyObject* like, bool and_dtype, Conversion& out) {
  if (!frameworks::facts_of(Py_TYPE(like)).kind->only_alone || PyMemoryView_Check(like))
    out.target.framework = own_target(like, kOperation, "Give an array of the framework that is wanted, or name it");
  else
    throw_issue(kOperation, ErrorCode::kWrongType,
                "like is of type " + type_name(like) + "; give an array of the framework that is wanted, or name it");
  checked(out.target.framework != nullptr);
  const Ref tensor = read_like(like, *out.target.framework);
  const DLTensor& described = as_tensor(tensor.get())->tensor.dl;
  if (!out.read.device) out.read.device = plain_memory_of(described.device);
  if (and_dtype) out.dtype = described.dtype;
}

namespace {

// dtype="like" is the dtype of that array.
bool means_like(PyObject* dtype) noexcept {
  return dtype != nullptr && PyUnicode_Check(dtype) && PyUnicode_CompareWithASCIIString(dtype, "like") == 0;
}

Conversion parse_conversion(const Call& call) {
  enum { kTree, kTo, kLike, kDType, kDevice, kCopy, kLayout, kStream };
  Conversion out;
  out.read.operation = kOperation;
  if (call[kTo] != nullptr && call[kLike] != nullptr)
    throw_error(PyExc_TypeError, "%s takes to or like, not both: each says which framework", kOperation);
  if (call[kTo] != nullptr) {
    out.target = find_target(call[kTo]);
    checked(static_cast<bool>(out.target));
  }
  checked(parse_read_options(call.given(kStream), call.given(kDevice), call.given(kCopy), out.read));
  const bool like_dtype = means_like(call[kDType]);
  if (like_dtype && call[kLike] == nullptr)
    throw_error(PyExc_TypeError, "%s: dtype='like' needs like, the array whose dtype is meant", kOperation);
  if (call[kDType] != nullptr && !like_dtype) out.dtype = parse_cast(call[kDType], kOperation);
  if (call[kLayout] != nullptr) out.layout = parse_layout(call[kLayout], kOperation);
  if (call[kLike] != nullptr) follow_array(call[kLike], like_dtype, out);
  const bool asks_nothing =
      !out.target && !out.dtype && !out.layout && call[kDevice] == nullptr && call[kCopy] == nullptr;
  if (asks_nothing)
    throw_error(PyExc_TypeError,
                "%s needs at least one of to, like, dtype, device, copy and layout; to names a framework: "
                "convert(x, 'numpy')",
                kOperation);
  return out;
}

bool is_plain_container(PyObject* object) noexcept {
  constexpr unsigned long kContainers = Py_TPFLAGS_DICT_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS;
  return PyType_HasFeature(Py_TYPE(object), kContainers);
}

// What speaks no protocol may hold arrays: looked at only now, so that it costs other arrays nothing.
bool is_other_container(PyObject* object) {
  if (PyErr_ExceptionMatches(exceptions.protocol) == 0) return false;
  const ErrorGuard refusal;
  return is_container(Py_TYPE(object));
}

PyObject* convert_any(PyObject* object, const Conversion& wanted) {
  if (is_plain_container(object)) return convert_tree(object, wanted, kOperation, "tree");
  try {
    return checked(convert_array(object, wanted));
  } catch (const PythonError&) {
    if (!is_other_container(object)) return nullptr;
    PyErr_Clear();
    return convert_tree(object, wanted, kOperation, "tree");
  }
}

// convert(x, "torch") of a container, or where the short way found no protocol.
[[gnu::cold, gnu::noinline]] PyObject* convert_slowly(PyObject* object, Target target) {
  Conversion wanted;
  wanted.read.operation = kOperation;
  wanted.target = std::move(target);
  wanted.is_plain = true;
  return convert_any(object, wanted);
}

}  // namespace

PyObject* convert(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    if (nargs != 2 || kwnames != nullptr || args[1] == Py_None) [[unlikely]] {
      static constexpr Signature kSignature(kConvertDoc);
      const Call call(kSignature, kOperation, args, nargs, kwnames);
      return convert_any(call.given(0), parse_conversion(call));
    }
    Target target = find_target(args[1]);  // an unknown name is the caller's mistake, whatever the object is
    if (!target) return nullptr;
    if (is_plain_container(args[0])) return convert_slowly(args[0], std::move(target));
    Ref tensor(read_any(args[0], kOperation));
    if (!tensor) [[unlikely]] {
      if (!is_other_container(args[0])) return nullptr;
      PyErr_Clear();
      return convert_slowly(args[0], std::move(target));
    }
    if (target.framework == nullptr) return deliver(std::move(tensor), target.module.get());
    PyObject* const shared = share(as_tensor(tensor.get()), *target.framework);
    if (shared != nullptr || PyErr_Occurred() != nullptr) [[likely]]
      return shared;
    return deliver(std::move(tensor), *target.framework, false);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* convert_like(PyObject* tensor, PyObject* example) noexcept {
  return guarded([&]() -> PyObject* {
    const Framework* framework = find_own_target(example);
    // bytes and capsules are nothing that results come in; the buffers' own array is memoryview.
    const bool is_none = framework == nullptr || (framework == &frameworks::kBuffer && !PyMemoryView_Check(example));
    if (is_none || framework == &kOwnTarget) return Py_NewRef(tensor);
    PyObject* const shared = share(as_tensor(tensor), *framework);
    if (shared != nullptr || PyErr_Occurred() != nullptr) [[likely]]
      return shared;
    return deliver(Ref::borrow(tensor), *framework, false);
  });
}

PyObject* to_exchange(PyObject*, PyObject* const* args, Py_ssize_t nargs) noexcept {
  try {
    if (nargs != 2 || !PyType_Check(args[1])) {
      PyErr_SetString(PyExc_TypeError, "to_exchange() takes a tensor and a type");
      return nullptr;
    }
    TensorObject* self = expect_tensor(args[0], kOperation);
    if (self == nullptr) return nullptr;
    auto* type = reinterpret_cast<PyTypeObject*>(args[1]);
    const DLPackExchangeAPI* api = dlpack::find_exchange_api(type);
    if (api == nullptr || api->managed_tensor_to_py_object_no_sync == nullptr) {
      raise(kOperation, ErrorCode::kRefused, std::string(type->tp_name) + " has no usable __dlpack_c_exchange_api__");
      return nullptr;
    }
    return dlpack::give_to_exchange(self, api, kOperation);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* to_numpy(PyObject*, PyObject* object) noexcept {
  try {
    TensorObject* self = expect_tensor(object, kOperation);
    if (self == nullptr) return nullptr;
    if (is_host(self->tensor.dl.device)) return frameworks::make_numpy(self, kOperation);
    raise(kOperation, ErrorCode::kRefused, "NumPy reads host memory only. Copy there: asdlpack(x, device='cpu')");
    return nullptr;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

TensorObject* copy_tensor(const TensorObject* source, DLDevice target, const char* operation, StreamHandle stream) {
  Tensor copy;
  const Status status = copy_without_gil(source->tensor, target, stream, copy);
  if (!status.ok()) {
    raise(operation, status.issue());
    return nullptr;
  }
  copy.flags &= ~kFlagReadOnly;
  if (copy.dl.dtype.code == kDLBool && is_host(copy.dl.device)) normalise_bool_bytes(copy);
  return wrap_tensor(std::move(copy), source->protocol, nullptr);
}

}  // namespace dlbridge::py
