// convert(): read, plan, copy where it must be, and in: by the framework's C way, or by its function in
// dlbridge/_convert.py.
#include <string>

#include "frameworks/numpy.h"
#include "frameworks/plan.h"
#include "frameworks/table.h"
#include "protocols/common/errors.h"
#include "protocols/common/streams.h"
#include "protocols/dlpack/dlpack.h"
#include "python/src/bridge.h"
#include "python/src/convert.h"

namespace dlbridge::py {

namespace {

using frameworks::Framework;
using frameworks::Plan;

constexpr char kOperation[] = "convert()";

// A borrowed reference, kept for good. Null with a Python error set.
PyObject* python_half() {
  static PyObject* module = nullptr;
  if (module == nullptr) module = PyImport_ImportModule("dlbridge._convert");
  return module;
}

// --- where to -------------------------------------------------------------------------------------------------------

// A framework of the table, or a module that is none but has from_dlpack(): it knows best what it takes.
struct Target {
  const Framework* framework = nullptr;
  Ref module;

  explicit operator bool() const noexcept { return framework != nullptr || module; }
};

// The names and modules that were asked for last, each held so that its address stays its own.
struct KnownTarget {
  PyObject* to = nullptr;
  const Framework* framework = nullptr;
};
KnownTarget known_targets[16];  // guarded by the GIL

KnownTarget& known_target(PyObject* to) noexcept {
  return known_targets[(reinterpret_cast<std::uintptr_t>(to) >> 4) % std::size(known_targets)];
}

// Empty with a Python error set.
[[gnu::noinline]] Target search_target(PyObject* to) {
  const bool is_module = PyModule_Check(to);
  if (!is_module && !PyUnicode_Check(to)) {
    raise(kOperation, ErrorCode::kWrongType,
          "to is of type " + std::string(Py_TYPE(to)->tp_name) + "; it names a framework, as 'torch' or as the module");
    return {};
  }
  const Ref name = is_module ? Ref(PyModule_GetNameObject(to)) : Ref::borrow(to);
  Py_ssize_t length = 0;
  const char* text = name ? PyUnicode_AsUTF8AndSize(name.get(), &length) : nullptr;
  if (text == nullptr) return {};
  const Framework* found = frameworks::find_framework({text, static_cast<std::size_t>(length)});
  if (found == nullptr) {
    PyObject* const half = python_half();
    return {nullptr, Ref(half != nullptr ? PyObject_CallMethod(half, "find_importer", "O", name.get()) : nullptr)};
  }
  if (is_module || PyUnicode_CheckExact(to)) {
    Py_INCREF(to);
    const Ref old(std::exchange(known_target(to), {to, found}).to);
  }
  return {found, {}};
}

Target find_target(PyObject* to) {
  const KnownTarget& known = known_target(to);
  if (known.to == to) [[likely]]
    return {known.framework, {}};
  return search_target(to);
}

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

// By the table: shared, copied, or refused.
PyObject* deliver(Ref tensor, const Framework& framework, bool never_copy) {
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

}  // namespace

PyObject* convert(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    if (nargs != 2) {
      PyErr_Format(PyExc_TypeError, "%s takes two positional arguments, the array and where to; got %zd", kOperation,
                   nargs);
      return nullptr;
    }
    const Target target = find_target(args[1]);  // an unknown name is the caller's mistake, whatever the object is
    if (!target) return nullptr;
    bool never_copy = false;
    Ref tensor(kwnames == nullptr ? read_any(args[0], kOperation)
                                  : read_for_convert(args[0], kOperation, args + 2, kwnames, never_copy));
    if (!tensor) return nullptr;
    if (target.framework == nullptr) return deliver(std::move(tensor), target.module.get());
    return deliver(std::move(tensor), *target.framework, never_copy);
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

const Framework* find_target_framework(PyObject* to, bool& failed) {
  const Target target = find_target(to);
  failed = !target;
  return target.framework;
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

}  // namespace dlbridge::py
