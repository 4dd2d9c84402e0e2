// A std::variant that begins with an Arg: pybind11's caster begins with an empty variant, and no Arg is empty.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <utility>

#include "dlbridge/python/argument.h"

namespace pybind11::detail {

template <class Variant>
struct variant_caster;  // pybind11/stl.h

// <variant> is included by those who use it.
template <template <class...> class Variant, class T, dlbridge::Constraint... Constraints, class... Rest>
struct variant_caster<Variant<dlbridge::Arg<T, Constraints...>, Rest...>> {
  using First = dlbridge::Arg<T, Constraints...>;
  using Value = Variant<First, Rest...>;
  static constexpr auto name = ::pybind11::detail::union_concat(make_caster<First>::name, make_caster<Rest>::name...);

  // First without conversions, as pybind11's does.
  bool load(handle source, bool convert) { return (convert && load_any(source, false)) || load_any(source, convert); }
  template <class Given>
  static handle cast(Given&& given, return_value_policy policy, handle parent) {
    return visit(
        [&]<class Held>(Held&& held) { return make_caster<Held>::cast(std::forward<Held>(held), policy, parent); },
        std::forward<Given>(given));
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator Value*() noexcept { return &*value_; }                // NOLINT(google-explicit-constructor)
  operator Value&() noexcept { return *value_; }                 // NOLINT(google-explicit-constructor)
  operator Value&&() && noexcept { return std::move(*value_); }  // NOLINT(google-explicit-constructor)

 private:
  bool load_any(handle source, bool convert) {
    return load_as<First>(source, convert) || (load_as<Rest>(source, convert) || ...);
  }
  template <class A>
  bool load_as(handle source, bool convert) {
    make_caster<A> caster;
    if (!caster.load(source, convert)) return false;
    value_.emplace(cast_op<A>(std::move(caster)));
    return true;
  }

  std::optional<Value> value_;
};

}  // namespace pybind11::detail
