// _native.call_sharing and by_numpy: functions of libraries on host arrays, as NumPy arrays of the same memory.
#include <vector>

#include "frameworks/numpy.h"
#include "protocols/common/threads.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// NumPy warns of nothing while one lives. NumPy 2 keeps that in a context variable, so in a context where it is set: in
// a copy of it, for a context is entered once at a time. NumPy 1 keeps it for each thread.
class Quiet {
 public:
  Quiet() {
    static Atomic<PyObject*> quiet;
    PyObject* const context = checked(find_once(quiet, [] { return guarded(make_context); }));
    if (context == Py_None) {
      before_ = set_errors("ignore");
    } else {
      context_ = owned(PyContext_Copy(context));
      checked(PyContext_Enter(context_.get()));
    }
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet() {
    if (context_) PyContext_Exit(context_.get());
    if (before_) restore();
  }

 private:
  static PythonFunction seterr;

  static Ref set_errors(const char* all) { return seterr(owned(PyUnicode_FromString(all)).get()); }

  static PyObject* make_context() {  // None for NumPy 1
    const Ref numpy = owned(PyImport_ImportModule("numpy"));
    const Ref version = owned(PyObject_GetAttrString(numpy.get(), "__version__"));
    if (PyUnicode_ReadChar(version.get(), 0) == '1') return Ref::borrow(Py_None).release();
    Ref context = owned(PyContext_New());
    checked(PyContext_Enter(context.get()));
    const int status = guarded([] { return set_errors("ignore") ? 0 : -1; });
    checked(PyContext_Exit(context.get()));
    checked(status);
    return context.release();
  }

  void restore() noexcept {
    const ErrorGuard pending;
    const int status = guarded(
        [&] { return owned(PyObject_Call(seterr.get(), owned(PyTuple_New(0)).get(), before_.get())) ? 0 : -1; });
    if (status < 0) PyErr_Clear();
  }

  Ref context_;
  Ref before_;  // what seterr() gave, of NumPy 1
};
PythonFunction Quiet::seterr("numpy", "seterr");

bool lies_on_host(PyObject* object) noexcept { return Py_TYPE(object) == array_types.host; }

// What a function gives for arguments, with its arrays adopted. New reference.
PyObject* call_sharing(PyObject* function, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  const Py_ssize_t all = count + (kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames));
  std::vector<Ref> shared;
  std::vector<PyObject*> given(args, args + all);
  for (PyObject*& x : std::span(given).first(static_cast<std::size_t>(count))) {
    if (lies_on_host(x)) x = shared.emplace_back(owned(frameworks::make_numpy(as_tensor(x), "asnumpy()"))).get();
  }
  Ref found;
  {
    const Quiet quiet;
    found = owned(PyObject_Vectorcall(function, given.data(), static_cast<std::size_t>(count), kwnames));
  }
  const auto adopted = [](PyObject* value) {
    return is_array(value) ? Ref::borrow(value).release()
                           : to_array(value, std::nullopt, DLDevice{kDLCPU, 0}, std::nullopt);
  };
  if (!PyTuple_Check(found.get())) return adopted(found.get());
  const Py_ssize_t parts = PyTuple_GET_SIZE(found.get());
  Ref results = owned(PyTuple_New(parts));
  for (Py_ssize_t k = 0; k < parts; ++k)
    PyTuple_SET_ITEM(results.get(), k, checked(adopted(PyTuple_GET_ITEM(found.get(), k))));
  return results.release();
}

constexpr char kCallSharing[] =
    "call_sharing($module, function, *arguments, **keywords)\n--\n\n"
    "What a function gives for arguments, the host arrays among them as NumPy arrays of the same memory: its NumPy "
    "arrays\nas ndarrays. NumPy warns of nothing meanwhile, as functions of the ndarray do not.";
PyObject* sharing(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  return call_sharing(args[0], args + 1, count - 1, kwnames);
}

// NumPy's function of a name, else its method; None where it has neither. Borrowed.
PyObject* numpys_own(PyObject* name) {
  static Atomic<PyObject*> kept;
  PyObject* const known = checked(find_once(kept, PyDict_New));
  if (PyObject* found = PyDict_GetItemWithError(known, name); found != nullptr) return found;
  checked(PyErr_Occurred() == nullptr);
  const Ref numpy = owned(PyImport_ImportModule("numpy"));
  Ref function = optional_attribute(numpy.get(), name);
  if (!function) function = optional_attribute(reinterpret_cast<PyObject*>(frameworks::numpy_array_type.load()), name);
  checked(PyErr_Occurred() == nullptr);
  checked(PyDict_SetItem(known, name, function ? function.get() : Py_None));
  return PyDict_GetItemWithError(known, name);
}

constexpr char kByNumpy[] =
    "by_numpy($module, name, *arrays, **keywords)\n--\n\n"
    "call_sharing() of NumPy's function or method of that name, whose loops are faster than kernels one after "
    "another.\n"
    "\n"
    "None where NumPy is not loaded or lacks the function, and for arrays of a device or of a dtype that it does not\n"
    "have: then the caller's own way is taken, which gives the same.";
PyObject* by_numpy(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  if (!loaded_module("numpy")) Py_RETURN_NONE;
  checked(frameworks::connect_numpy());
  for (PyObject* x : std::span(args, static_cast<std::size_t>(count)).subspan(1))
    if (!lies_on_host(x) || core::dtype_of(tensor_of(x)) == DType::kBFloat16) Py_RETURN_NONE;
  PyObject* function = checked(numpys_own(args[0]));
  return function == Py_None ? Ref::borrow(Py_None).release() : call_sharing(function, args + 1, count - 1, kwnames);
}

}  // namespace

void init_numpys(PyObject* module) {
  add_functions(module, {method<kCallSharing, sharing>(), method<kByNumpy, by_numpy>()});
}

}  // namespace dlbridge::py::nd
