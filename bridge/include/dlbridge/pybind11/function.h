// def(): module_.def() with two things added: errors name the function and the argument, and a call goes
// straight to the casters.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dlbridge/pybind11/loader.h"

namespace dlbridge {

namespace detail {

// Casters of these never keep a temporary object alive for the call.
template <class T>
inline constexpr bool kIsPlain =
    kIsArg<T> || std::is_arithmetic_v<std::remove_cvref_t<T>> || std::is_same_v<std::remove_cvref_t<T>, stream_arg>;

// Annotations that the direct way can do without, or sees in the function record.
template <class Extra>
inline constexpr bool kIsPlainExtra =
    std::is_base_of_v<::pybind11::arg, Extra> || std::is_same_v<std::decay_t<Extra>, const char*> ||
    std::is_same_v<std::decay_t<Extra>, char*> || pyd::is_call_guard<Extra>::value ||
    std::is_same_v<Extra, ::pybind11::kw_only> || std::is_same_v<Extra, ::pybind11::pos_only> ||
    std::is_same_v<Extra, ::pybind11::doc> || std::is_same_v<Extra, ::pybind11::return_value_policy>;

// pybind11's own entry, one function for a whole module. Of its own type: CPython's has a signed count.
using Entry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
using Pybind11Entry = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);
[[gnu::visibility("hidden")]] inline Pybind11Entry pybind11_entry = nullptr;

// The entry of one function. Whatever is not plain goes to pybind11: overloads, *args, wrong counts and names, an
// argument that its caster does not take; so every error but those of Arg is pybind11's.
template <class F, class Guard, class Return, class... Args>
class DirectEntry {
 public:
  static PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
    const pyd::function_record& record = *reinterpret_cast<pyd::function_record_PyObject*>(self)->cpp_func_rec;
    PyObject* values[kCount + 1];
    if (!gather(record, given, count, keywords, values)) [[unlikely]]
      return pybind11_entry(self, given, static_cast<std::size_t>(count), keywords);
    try {
      [[maybe_unused]] Frame frame{};
      Casters casters;
      const Given arguments{record, values};
      if (load_arguments<Args...>(record, casters, arguments, std::index_sequence_for<Args...>{})) [[likely]]
        return invoke(record, casters, kCount == 0 ? nullptr : values[0], std::index_sequence_for<Args...>{});
    } catch (::pybind11::error_already_set& error) {
      error.restore();
      return nullptr;
    } catch (const ::pybind11::reference_cast_error&) {
      // None for a reference: pybind11 words the error
#ifdef __GLIBCXX__
    } catch (::abi::__forced_unwind&) {
      throw;
#endif
    } catch (...) {
      pyd::try_translate_exceptions();
      return nullptr;
    }
    return pybind11_entry(self, given, static_cast<std::size_t>(count), keywords);
  }

 private:
  static constexpr std::size_t kCount = sizeof...(Args);
  using Casters = std::tuple<pyd::make_caster<Args>...>;
  using Frame = std::conditional_t<(kIsPlain<Args> && ...), pyd::void_type, pyd::loader_life_support>;

  struct Given {
    const pyd::function_record& record;
    PyObject** values;
    PyObject* value(std::size_t i) const { return values[i]; }
    bool convert(std::size_t i) const { return i >= record.args.size() || record.args[i].convert; }
    static bool first_pass() noexcept { return false; }  // there are no overloads
  };

  // The arguments in the function's order, with the defaults of those that were left out. False: not plain.
  static bool gather(const pyd::function_record& record, PyObject* const* given, Py_ssize_t count, PyObject* keywords,
                     PyObject** out) {
    const auto n = static_cast<std::size_t>(count);
    if (record.next != nullptr || n > record.nargs_pos) return false;
    const auto& declared = record.args;
    for (std::size_t i = 0; i < kCount; ++i)
      out[i] = i < n ? given[i] : i < declared.size() ? declared[i].value.ptr() : nullptr;
    if (keywords != nullptr && !gather_keywords(record, n, given + n, keywords, out)) return false;
    for (std::size_t i = 0; i < kCount; ++i)
      if (out[i] == nullptr || (out[i] == Py_None && i < declared.size() && !declared[i].none)) return false;
    return true;
  }
  [[gnu::noinline]] static bool gather_keywords(const pyd::function_record& record, std::size_t positional,
                                                PyObject* const* given, PyObject* keywords, PyObject** out) {
    const std::size_t first = positional > record.nargs_pos_only ? positional : record.nargs_pos_only;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
      std::size_t i = first;
      while (i < kCount && (i >= record.args.size() || record.args[i].name == nullptr ||
                            PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, k), record.args[i].name) != 0))
        ++i;
      if (i >= kCount) return false;
      out[i] = given[k];
    }
    return true;
  }

  // The function, from where functional.h of pybind11 takes it, too; a lambda without captures has no state to find.
  static decltype(auto) function(const pyd::function_record& record) {
    if constexpr (std::is_pointer_v<F>) return *reinterpret_cast<const F*>(&record.data);
    else return F{};
  }

  template <class A, class Caster>
  static decltype(auto) handed(Caster& caster) {
    if constexpr (kIsArg<A> && !std::is_reference_v<A> && std::is_same_v<Guard, pyd::void_type>)
      return Handed<A>{static_cast<A&>(caster)};
    else return pyd::cast_op<A>(std::move(caster));
  }
  template <std::size_t... I>
  static PyObject* invoke([[maybe_unused]] const pyd::function_record& record, [[maybe_unused]] Casters& casters,
                          [[maybe_unused]] PyObject* parent, std::index_sequence<I...>) {
    const auto run = [&]() -> Return {
      [[maybe_unused]] Guard guard{};
      return function(record)(handed<Args>(std::get<I>(casters))...);
    };
    if constexpr (std::is_void_v<Return>) {
      run();
      return Py_NewRef(Py_None);
    } else {
      const auto policy = pyd::return_value_policy_override<Return>::policy(record.policy);
      const ::pybind11::handle result = pyd::make_caster<Return>::cast(run(), policy, parent);
      if (!result && PyErr_Occurred() == nullptr)
        PyErr_SetString(PyExc_TypeError, "Unable to convert function return value to a Python type");
      return result.ptr();
    }
  }
};

template <class F, class... Extra>
inline constexpr bool kCanBeDirect =
    (std::is_pointer_v<F> || (std::is_empty_v<F> && std::is_default_constructible_v<F>)) &&
    (kIsPlainExtra<std::remove_cvref_t<Extra>> && ...);

// Puts `entry` before pybind11's, in the function that module_.def() has made.
inline void install_entry(const ::pybind11::object& function, Entry entry) {
  PyObject* object = function.ptr();
  if (!PyCFunction_Check(object)) return;
  auto* self = PyCFunction_GET_SELF(object);
  const pyd::function_record* record = self != nullptr ? pyd::function_record_ptr_from_PyObject(self) : nullptr;
  // An overload was added: the chain is pybind11's. Older releases of pybind11 take a tuple: nothing to put before.
  if (record == nullptr || record->next != nullptr || record->is_method || record->def == nullptr ||
      record->def->ml_flags != (METH_FASTCALL | METH_KEYWORDS))
    return;
  pybind11_entry = reinterpret_cast<Pybind11Entry>(reinterpret_cast<void (*)()>(record->def->ml_meth));
  record->def->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry));
}

// Of the overload that was defined last.
template <class Return, class... Args>
void refuse_none_as_default(const ::pybind11::object& given, Return (*)(Args...)) {
  const ::pybind11::handle function = pyd::get_function(given);
  PyObject* self = PyCFunction_Check(function.ptr()) ? PyCFunction_GET_SELF(function.ptr()) : nullptr;
  const pyd::function_record* record = self != nullptr ? pyd::function_record_ptr_from_PyObject(self) : nullptr;
  while (record != nullptr && record->next != nullptr) record = record->next;
  if (record == nullptr) return;
  constexpr bool kArrays[] = {kIsArg<Args>..., false};
  for (std::size_t i = 0; i < sizeof...(Args); ++i)
    if (const Place place{record, i}; kArrays[i] && place.default_is_none())
      throw ::pybind11::type_error(place.prefix() + "its default is None, which no Arg takes. Declare it "
                                                    "std::optional<dlbridge::Arg<...>>");
}

template <class F, class Guard, class Return, class... Args>
void install_direct(const ::pybind11::object& function, Return (*)(Args...)) {
  constexpr bool kStarred = ((std::is_base_of_v<::pybind11::args, std::remove_cvref_t<Args>> ||
                              std::is_base_of_v<::pybind11::kwargs, std::remove_cvref_t<Args>>) ||
                             ...);
  if constexpr (!kStarred) install_entry(function, &DirectEntry<F, Guard, Return, Args...>::call);
}

// The signature of what a class defines, `self` included.
template <class Class, class F>
auto method_signature(F&&) -> pyd::function_signature_t<std::decay_t<F>>*;
template <class Class, class Return, class Base, class... Args>
auto method_signature(Return (Base::*)(Args...)) -> Return (*)(Class&, Args...);
template <class Class, class Return, class Base, class... Args>
auto method_signature(Return (Base::*)(Args...) const) -> Return (*)(const Class&, Args...);
template <class Class, class Return, class Base, class... Args>
auto method_signature(Return (Base::*)(Args...) noexcept) -> Return (*)(Class&, Args...);
template <class Class, class Return, class Base, class... Args>
auto method_signature(Return (Base::*)(Args...) const noexcept) -> Return (*)(const Class&, Args...);

}  // namespace detail

// module.def(name, f, extra...), for functions that take an Arg. Function pointers and lambdas without captures, with
// arguments, defaults, docstrings and call guards, are called directly; the rest as pybind11 does. An Arg whose default
// is None is refused here, rather than at the first call.
template <class F, class... Extra>
::pybind11::module_& def(::pybind11::module_& module, const char* name, F&& f, const Extra&... extra) {
  using Function = std::decay_t<F>;
  using Signature = detail::pyd::function_signature_t<Function>;
  module.def(name, std::forward<F>(f), extra...);
  const ::pybind11::object function = module.attr(name);
  detail::refuse_none_as_default(function, static_cast<Signature*>(nullptr));
  if constexpr (detail::kCanBeDirect<Function, Extra...>)
    detail::install_direct<Function, detail::pyd::extract_guard_t<Extra...>>(function,
                                                                             static_cast<Signature*>(nullptr));
  return module;
}

// scope.def(name, f, extra...) of a class, for members, lambdas and functions, and scope.def(py::init<...>(), ...),
// called as pybind11 calls them. The errors of a class's own def(), def_static() and def_property() name the function
// and the argument, too; only an Arg whose default is None is refused here and not there.
template <class Class, class... Options, class F, class... Extra>
::pybind11::class_<Class, Options...>& def(::pybind11::class_<Class, Options...>& scope, const char* name, F&& f,
                                           const Extra&... extra) {
  using Signature = decltype(detail::method_signature<Class>(f));
  scope.def(name, std::forward<F>(f), extra...);
  detail::refuse_none_as_default(scope.attr(name), Signature(nullptr));
  return scope;
}
template <class Class, class... Options, class... Args, class... Extra>
::pybind11::class_<Class, Options...>& def(::pybind11::class_<Class, Options...>& scope,
                                           const detail::pyd::initimpl::constructor<Args...>& init,
                                           const Extra&... extra) {
  scope.def(init, extra...);
  using Signature = void (*)(Class&, Args...);
  detail::refuse_none_as_default(scope.attr("__init__"), Signature(nullptr));
  return scope;
}

}  // namespace dlbridge
