// What an error is about: the function and the argument that are being loaded; and what other overloads have said.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/python/refusals.h"

namespace dlbridge::detail {

namespace pyd = ::pybind11::detail;

struct [[gnu::visibility("hidden")]] Place {
  const pyd::function_record* function = nullptr;  // null: unknown, as in object.cast<Arg<…>>()
  std::size_t index = 0;
  bool first_pass = false;               // pybind11 only tries the overload, and asks again: refusals are silent
  Alternatives* alternatives = nullptr;  // set: refusals are collected here

  // What was said of it with py::arg; there is none for *args.
  const pyd::argument_record* declared() const {
    if (function == nullptr) return nullptr;
    const std::size_t i = index - (function->has_args && index > function->nargs_pos ? 1 : 0);
    return i < function->args.size() ? &function->args[i] : nullptr;
  }
  [[gnu::cold, gnu::noinline]] std::string argument() const {
    if (function == nullptr) return "a";
    const char* name = declared() != nullptr ? declared()->name : nullptr;
    if ((name == nullptr || *name == '\0') && is_property()) return "value";
    return name != nullptr && *name != '\0' ? name
                                            : joined({"arg", std::to_string(index - (function->is_method ? 1 : 0))});
  }
  bool is_property() const {
    return (function->name == nullptr || *function->name == '\0') && !function->is_constructor && function->scope &&
           PyType_Check(function->scope.ptr());
  }
  // "blur()", "Filter.blur()", "Filter()", "Filter.size", which is a property.
  [[gnu::cold, gnu::noinline]] std::string callable() const {
    std::string owner;
    if (PyObject* scope = function->scope.ptr(); scope != nullptr && PyType_Check(scope)) {
      const char* name = reinterpret_cast<PyTypeObject*>(scope)->tp_name;
      const char* dot = std::strrchr(name, '.');
      owner = dot == nullptr ? name : dot + 1;
      if (function->is_constructor) return joined({owner, "()"});
      owner += ".";
      if (is_property()) return joined({owner, property_name(reinterpret_cast<PyTypeObject*>(scope)->tp_dict)});
    }
    if (function->name == nullptr || *function->name == '\0') return "a function without a name";
    return joined({owner, function->name, "()"});
  }
  [[gnu::cold, gnu::noinline]] std::string prefix() const {
    return function == nullptr ? std::string() : joined({callable(), ": argument '", argument(), "': "});
  }
  bool default_is_none() const { return declared() != nullptr && declared()->value && declared()->value.is_none(); }

  // pybind11 asks all overloads without conversion, and then again with it. Reasons are collected the second time and
  // given by the last overload that takes arrays.
  //
  // True where something else is asked after this refusal: another overload, or the other operand of an operator.
  [[gnu::cold, gnu::noinline]] bool another_follows(const std::string& reason,
                                                    int distance = Refusal::kFarthest) const {
    if (alternatives != nullptr) return alternatives->add(reason, distance), true;
    if (function == nullptr) return false;
    if (function->is_operator) return true;
    if (function->next == nullptr || refusals().call == function) return false;
    refusals().all.push_back(refusal(reason, distance));
    return true;
  }
  // Throws the refusals of all overloads; returns where this one is alone.
  [[gnu::cold, gnu::noinline]] void throw_if_others_refused(const std::string& reason,
                                                            int distance = Refusal::kFarthest) const {
    if (function == nullptr || refusals().call != function) return;
    std::vector<Refusal> all = std::exchange(refusals().all, {});
    if (all.empty()) return;
    all.push_back(refusal(reason, distance));
    throw ::pybind11::type_error(refusals_text(callable(), all));
  }
  [[noreturn]] static void throw_pending() { throw ::pybind11::error_already_set(); }

  [[gnu::cold, gnu::noinline]] Refusal refusal(const std::string& reason, int distance) const {
    return {joined({"argument '", argument(), "': ", reason}), index, distance};
  }

 private:
  // pybind11 tells the functions of a property no name, but the class has it.
  [[gnu::cold, gnu::noinline]] std::string property_name(PyObject* names) const {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(names, &at, &key, &value) != 0;)
      if (PyObject_TypeCheck(value, &PyProperty_Type) &&
          (is_of(::pybind11::getattr(value, "fset")) || is_of(::pybind11::getattr(value, "fget"))))
        return ::pybind11::str(key);
    return "(a property)";
  }
  bool is_of(const ::pybind11::object& callable) const {
    const ::pybind11::handle bare = pyd::get_function(callable);
    if (!bare || !PyCFunction_Check(bare.ptr())) return false;
    PyObject* self = PyCFunction_GET_SELF(bare.ptr());
    return self != nullptr && pyd::function_record_ptr_from_PyObject(self) == function;
  }
};
inline void note_first_pass(const pyd::function_record& function) { refusals().begin(&function); }

// The place for casters that lie within another's, as that of Arg in std::optional<Arg<…>>.
[[gnu::visibility("hidden")]] inline constinit thread_local const Place* loading = nullptr;

class [[gnu::visibility("hidden")]] Loading {
 public:
  explicit Loading(const Place& place) noexcept : before_(std::exchange(loading, &place)) {}
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;
  ~Loading() { loading = before_; }

 private:
  const Place* before_;
};
inline Place current_place(bool convert) noexcept {
  Place place = loading != nullptr ? *loading : Place{nullptr, 0, !convert};
  if (place.alternatives != nullptr && !convert) place.first_pass = true;  // std::variant asks again
  return place;
}

}  // namespace dlbridge::detail
