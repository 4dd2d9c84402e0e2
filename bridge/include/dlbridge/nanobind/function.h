// def(): the def() of a module or class of nanobind's, with errors that name the function and the argument.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "dlbridge/nanobind/pending.h"
#include "dlbridge/nanobind/within.h"

namespace dlbridge {

namespace detail {

// It may release the GIL for as long as parameters live.
template <class Extra>
inline constexpr bool kIsCallGuard = false;
template <class... Guards>
inline constexpr bool kIsCallGuard<::nanobind::call_guard<Guards...>> = true;

// What nanobind is told of a parameter, and the argument of the function itself.
template <class A>
using Passed = std::conditional_t<kIsPending<A>, Pending<std::remove_cvref_t<A>>&,
                                  std::conditional_t<kHoldsArrays<A>, Within<std::remove_cvref_t<A>>&, A>>;

template <class A>
void require(Passed<A>& passed, const NanobindFunction& function, std::size_t index) {
  if constexpr (kIsPending<A> || kHoldsArrays<A>) passed.require({&function, index});
}
template <class A, bool kHoldsGil>
decltype(auto) unwrap(Passed<A>& passed, const NanobindFunction& function, std::size_t index) {
  if constexpr (kHoldsArrays<A>) return passed.template get<A>();
  else if constexpr (!kIsPending<A>) return static_cast<A&&>(passed);
  else if constexpr (std::is_lvalue_reference_v<A>) return static_cast<A>(passed.get({&function, index}));
  else if constexpr (kIsArg<A> && kHoldsGil && !std::is_reference_v<A>)
    return Handed<A>{passed.get({&function, index})};
  else return std::move(passed.get({&function, index}));
}

template <bool kHoldsGil, class F, class Return, class... Args>
auto with_names(F&& f, NanobindFunction&& named, Return (*)(Args...)) {
  return [f = std::forward<F>(f), function = std::move(named)](Passed<Args>... passed) -> Return {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> Return {
      (require<Args>(passed, function, I), ...);
      return f(unwrap<Args, kHoldsGil>(passed, function, I)...);
    }(std::index_sequence_for<Args...>{});
  };
}

// f as an object that is called as a function is, and its signature.
template <class Return, class... Args>
auto callable_of(Return (*f)(Args...)) {
  return std::pair{f, static_cast<Return (*)(Args...)>(nullptr)};
}
template <class Class, class Return, class... Args>
auto callable_of(Return (Class::*f)(Args...)) {
  return std::pair{[f](Class& self, Args... args) -> Return { return (self.*f)(std::forward<Args>(args)...); },
                   static_cast<Return (*)(Class&, Args...)>(nullptr)};
}
template <class Class, class Return, class... Args>
auto callable_of(Return (Class::*f)(Args...) const) {
  return std::pair{[f](const Class& self, Args... args) -> Return { return (self.*f)(std::forward<Args>(args)...); },
                   static_cast<Return (*)(const Class&, Args...)>(nullptr)};
}
template <class Class, class Return, class... Args>
auto signature_of(Return (Class::*)(Args...) const) -> Return (*)(Args...);
template <class Class, class Return, class... Args>
auto signature_of(Return (Class::*)(Args...)) -> Return (*)(Args...);
template <class F>
  requires requires { &F::operator(); }
auto callable_of(F f) {
  return std::pair{std::move(f), decltype(signature_of(&F::operator()))(nullptr)};
}

// What annotations say of one argument.
struct Declared {
  const char* name = nullptr;
  bool has_default = false;
  bool default_is_none = false;
};
template <class Extra>
void add_declared(Declared*& end, const Extra& extra) {
  using Traits = ::nanobind::detail::arg_traits<Extra>;
  if constexpr (Traits::is_arg) {
    *end = {extra.name_, Traits::has_default};
    if constexpr (Traits::has_default) end->default_is_none = extra.value.is_none();
    ++end;
  }
}

// "blur()"; of a class "Filter.blur()", "Filter()".
[[gnu::cold, gnu::noinline]] inline std::string callable_text(::nanobind::handle scope, std::string_view name) {
  if (!PyType_Check(scope.ptr())) return joined({name, "()"});
  const ::nanobind::object class_name = ::nanobind::getattr(scope, "__name__");
  const std::string owner = PythonError::utf8(class_name.ptr());
  return name == "__init__" ? joined({owner, "()"}) : joined({owner, ".", name, "()"});
}

// Of a function with `count` parameters. `declared`: what is known of the first ones, without `self`; `arrays`: which
// of them take an array and nothing else.
[[gnu::cold, gnu::noinline]] inline NanobindFunction describe_function(::nanobind::handle scope, const char* name,
                                                                       std::span<const Declared> declared,
                                                                       const bool* arrays, std::size_t count,
                                                                       bool starred) {
  const std::size_t first = PyType_Check(scope.ptr()) ? 1 : 0;
  OverloadSet::Arity arity{0, starred ? static_cast<std::size_t>(-1) : count};
  NanobindFunction out{callable_text(scope, name), {}, &overload_set(scope.ptr(), name)};
  for (std::size_t i = 0; i < count; ++i) {
    const Declared one = i >= first && i - first < declared.size() ? declared[i - first] : Declared{};
    arity.least += one.has_default || starred ? 0U : 1U;
    if (i < first) out.arguments.emplace_back("self");
    else if (one.name != nullptr && *one.name != '\0') out.arguments.emplace_back(one.name);
    else out.arguments.push_back(joined({"arg", std::to_string(i - first)}));
    if (arrays[i] && one.default_is_none)
      throw ::nanobind::type_error(joined({NanobindPlace{&out, i}.prefix(), "its default is None, which no Arg takes. "
                                                                            "Declare it "
                                                                            "std::optional<dlbridge::Arg<...>>"})
                                       .c_str());
  }
  out.overload = out.overloads->arities.size();
  out.overloads->arities.push_back(arity);
  return out;
}
template <class Return, class... Args, class... Extra>
NanobindFunction describe_function(::nanobind::handle scope, const char* name, Return (*)(Args...),
                                   const Extra&... extra) {
  Declared declared[sizeof...(Extra) + 1];
  Declared* end = declared;
  (add_declared(end, extra), ...);
  constexpr bool kStarred = ((std::is_same_v<std::remove_cvref_t<Args>, ::nanobind::args> ||
                              std::is_same_v<std::remove_cvref_t<Args>, ::nanobind::kwargs>) ||
                             ...);
  constexpr bool kArrays[] = {kIsArg<Args>..., false};
  return describe_function(scope, name, {declared, end}, kArrays, sizeof...(Args), kStarred);
}

}  // namespace detail

// scope.def(name, f, extra...) of a module or a class, for functions that take arrays: functions, lambdas (also with
// captures) and members. Errors name the function and the argument, and those of overloads tell which came closest; a
// capsule is read once all of the arguments fit.
template <class Scope, class F, class... Extra>
Scope& def(Scope& scope, const char* name, F&& f, const Extra&... extra) {
  auto [callable, signature] = detail::callable_of(std::forward<F>(f));
  detail::NanobindFunction function = detail::describe_function(scope, name, signature, extra...);
  constexpr bool kHoldsGil = !(detail::kIsCallGuard<Extra> || ...);
  scope.def(name, detail::with_names<kHoldsGil>(std::move(callable), std::move(function), signature), extra...);
  return scope;
}

// scope.def(nb::init<...>(), extra...): errors name the class.
template <class Class, class... Options, class... Args, class... Extra>
::nanobind::class_<Class, Options...>& def(::nanobind::class_<Class, Options...>& scope, ::nanobind::init<Args...>,
                                           const Extra&... extra) {
  static_assert(
      std::is_same_v<typename ::nanobind::class_<Class, Options...>::Alias, Class>,
      "def(nb::init<...>()) of a class that Python may derive from with a trampoline: define \"__init__\" with "
      "a function that makes the trampoline");
  const auto make = [](::nanobind::pointer_and_handle<Class> self, Args... args) {
    ::new (static_cast<void*>(self.p)) Class(static_cast<Args&&>(args)...);
  };
  return def(scope, "__init__", make, extra...);
}

// scope.def_prop_rw(name, getter, setter, extra...) with a setter that takes an array: errors name the property.
template <class Class, class... Options, class Getter, class Setter, class... Extra>
::nanobind::class_<Class, Options...>& def_prop_rw(::nanobind::class_<Class, Options...>& scope, const char* name,
                                                   Getter&& getter, Setter&& setter, const Extra&... extra) {
  auto [callable, signature] = detail::callable_of(std::forward<Setter>(setter));
  detail::NanobindFunction named = detail::describe_function(scope, name, signature, ::nanobind::arg("value"));
  named.callable.erase(named.callable.size() - 2);  // no parentheses
  scope.def_prop_rw(name, std::forward<Getter>(getter),
                    detail::with_names<false>(std::move(callable), std::move(named), signature), extra...);
  return scope;
}

}  // namespace dlbridge
