// Methods, attributes, slots and types, as tables of C++ functions. The functions may throw: the tables hold their
// guarded forms.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "protocols/common/threads.h"
#include "python/src/kit/call.h"

#include <structmember.h>

namespace dlbridge::py {

// --- functions as C calls them ---------------------------------------------------------------------------------------

template <auto kFunction, class Type = decltype(kFunction)>
struct Guard;
template <auto kFunction, class Result, class... Args>
struct Guard<kFunction, Result (*)(Args...)> {
  using Plain = Result (*)(Args...);
  static Result call(Args... args) noexcept {
    return guarded([&] { return kFunction(args...); });
  }
};
template <auto kFunction, class Result, class... Args>
struct Guard<kFunction, Result (*)(Args...) noexcept> {
  using Plain = Result (*)(Args...);
  static constexpr auto* call = kFunction;  // itself: CPython's trashcan looks for a deallocator by its address
};

// --- methods ---------------------------------------------------------------------------------------------------------

inline constexpr char kOwnName[] = "";

// How a function is called follows from its type; what it takes, from the signature in its docstring.
template <const auto& kDoc, auto kFunction, const auto& kOperation, class Type = typename Guard<kFunction>::Plain>
struct Method;

template <const auto& kDoc, auto kFunction, const auto& kOperation, class Arguments>
struct Method<kDoc, kFunction, kOperation, PyObject* (*)(PyObject*, const Arguments&)> {
  static constexpr int kFlags = METH_FASTCALL | METH_KEYWORDS;
  static PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
    static constexpr Signature kSignature(kDoc);
    const char* operation = kOperation[0] != '\0' ? kOperation : kSignature.operation.text;
    return guarded([&] { return kFunction(self, Arguments(kSignature, operation, args, nargs, kwnames)); });
  }
};
template <const auto& kDoc, auto kFunction, const auto& kOperation>
struct Method<kDoc, kFunction, kOperation, PyObject* (*)(PyObject*)> {
  static constexpr int kFlags = METH_NOARGS;
  static PyObject* call(PyObject* self, PyObject*) noexcept {
    return guarded([&] { return kFunction(self); });
  }
};
template <const auto& kDoc, auto kFunction, const auto& kOperation>
struct Method<kDoc, kFunction, kOperation, PyObject* (*)(PyObject*, PyObject*)> : Guard<kFunction> {
  static constexpr int kFlags = METH_O;
};
template <const auto& kDoc, auto kFunction, const auto& kOperation>
struct Method<kDoc, kFunction, kOperation, PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t)> : Guard<kFunction> {
  static constexpr int kFlags = METH_FASTCALL;
};
template <const auto& kDoc, auto kFunction, const auto& kOperation>
struct Method<kDoc, kFunction, kOperation, PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
    : Guard<kFunction> {
  static constexpr int kFlags = METH_FASTCALL | METH_KEYWORDS;
};

// `kOperation`: what messages call the function, where that is not its name.
template <const auto& kDoc, auto kFunction, const auto& kOperation = kOwnName>
PyMethodDef method() {
  using Form = Method<kDoc, kFunction, kOperation>;
  static constexpr Signature kSignature(kDoc);
  return {kSignature.function.text, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Form::call)),
          Form::kFlags, kDoc};
}

// --- attributes and slots --------------------------------------------------------------------------------------------

template <PyObject* (*kFunction)(PyObject*)>
PyGetSetDef getter(const char* name, const char* doc = nullptr) {
  const auto get = [](PyObject* self, void*) noexcept { return guarded([&] { return kFunction(self); }); };
  return {name, get, nullptr, doc, nullptr};
}

// One that is written to, too; kSet returns 0. It is never deleted.
template <PyObject* (*kGet)(PyObject*), int (*kSet)(PyObject*, PyObject*)>
PyGetSetDef attribute(const char* name, const char* doc) {
  PyGetSetDef row = getter<kGet>(name, doc);
  row.set = [](PyObject* self, PyObject* value, void*) noexcept {
    return guarded([&] {
      if (value == nullptr)
        throw_error(PyExc_AttributeError, "an attribute of %s cannot be deleted", Py_TYPE(self)->tp_name);
      return kSet(self, value);
    });
  };
  return row;
}

template <auto kFunction>
PyType_Slot slot(int id) {
  return {id, reinterpret_cast<void*>(Guard<kFunction>::call)};
}
inline PyType_Slot slot(int id, void* value) { return {id, value}; }
inline PyType_Slot doc_slot(const char* text) { return {Py_tp_doc, const_cast<char*>(text)}; }

// A table as CPython takes it: with a row of nothing at its end, and for as long as the process lives.
template <class Row>
Row* table(std::vector<Row> rows) {
  static auto* kept = new std::vector<std::vector<Row>>;
  rows.push_back({});
  return kept->emplace_back(std::move(rows)).data();
}
inline PyType_Slot methods_slot(std::vector<PyMethodDef> rows) { return slot(Py_tp_methods, table(std::move(rows))); }
inline PyType_Slot getters_slot(std::vector<PyGetSetDef> rows) { return slot(Py_tp_getset, table(std::move(rows))); }
inline void add_functions(PyObject* module, std::vector<PyMethodDef> rows) {
  checked(PyModule_AddFunctions(module, table(std::move(rows))));
}

// --- types -----------------------------------------------------------------------------------------------------------

// Objects that begin with PyObject_HEAD vectorcallfunc vectorcall.
template <class Object>
inline PyMemberDef kVectorcallMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Object, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// An immortal type, borrowed; also in the module, by the last part of `name`. `base`: a type, a tuple of them, or null.
PyTypeObject* add_type(PyObject* module, const char* name, std::size_t bytes, unsigned long flags,
                       std::vector<PyType_Slot> slots, PyObject* base = nullptr);

// --- Python's half of the package ------------------------------------------------------------------------------------

// A function of a module that is imported when it is first called; never let go.
class PythonFunction {
 public:
  constexpr PythonFunction(const char* module, const char* name) noexcept : module_(module), name_(name) {}
  PyObject* get();  // borrowed; throws with a Python error set
  template <class... Args>
  Ref operator()(Args... args) {
    PyObject* const arguments[] = {args...};
    return owned(PyObject_Vectorcall(get(), arguments, sizeof...(args), nullptr));
  }

 private:
  const char* module_;
  const char* name_;
  Atomic<PyObject*> function_;
};

}  // namespace dlbridge::py
