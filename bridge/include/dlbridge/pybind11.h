// Arrays as arguments and results of pybind11 functions: Arg, stream_arg, Tensor, like(a, tensor) and as<"torch">.
//
//   m.def("blur", [](dlbridge::Arg<float, dlbridge::shape<dyn, dyn, 3>, dlbridge::c_contig> a) { blur(a.view()); });
//
// takes the arrays of every framework without a copy. The installed package dlbridge does the reading: its functions
// come through a C ABI (dlbridge/c_api.h), fetched at the first call or by connect().
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dlbridge/arg.h"
#include "dlbridge/pybind11/connect.h"
#include "dlbridge/pybind11/function.h"
#include "dlbridge/pybind11/variant.h"

namespace dlbridge {

namespace detail {

template <const ConstText& Text, std::size_t... I>
constexpr auto make_descr(std::index_sequence<I...>) {
  return ::pybind11::detail::descr<sizeof...(I)>(Text.text[I]...);
}
template <const ConstText& Text>
constexpr auto descr_of() {
  return make_descr<Text>(std::make_index_sequence<Text.size>{});
}

// Whom a result without an owner shows memory of.
inline PyObject* parent_of(::pybind11::return_value_policy policy, ::pybind11::handle parent) {
  return policy == ::pybind11::return_value_policy::reference_internal ? parent.ptr() : nullptr;
}

}  // namespace detail

// keep() of an object of pybind11's.
inline Owner keep(const ::pybind11::object& object) { return keep(object.ptr()); }

}  // namespace dlbridge

namespace pybind11::detail {

template <class T, dlbridge::Constraint... Constraints>
struct type_caster<dlbridge::Arg<T, Constraints...>> {
  using Arg = dlbridge::Arg<T, Constraints...>;
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kArgumentText<Arg>>();

  bool load(handle source, bool convert) {
    const dlbridge::detail::Place place = dlbridge::detail::current_place(convert);
    if (PyCapsule_CheckExact(source.ptr()) && !fits(source, convert, place)) return false;
    return load(source, convert, place);
  }
  // For whoever asks fits() before where `source` is a capsule, which is good for one reading. `place`: what messages
  // are to name.
  bool load(handle source, bool convert, const dlbridge::detail::Place& place) {
    dlbridge::detail::connected();
    return value_.load(source.ptr(), convert, place);
  }
  bool fits(handle capsule, bool convert, const dlbridge::detail::Place& place) {
    dlbridge::detail::connected();
    return value_.fits(capsule.ptr(), convert, place);
  }

  static handle cast(const Arg& argument, return_value_policy, handle) {
    return dlbridge::detail::checked_result(dlbridge::like(argument).to_python());
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator Arg&() noexcept { return value_.get(); }                 // NOLINT(google-explicit-constructor)
  operator Arg*() noexcept { return &value_.get(); }                // NOLINT(google-explicit-constructor)
  operator Arg&&() && noexcept { return std::move(value_.get()); }  // NOLINT(google-explicit-constructor)

 private:
  dlbridge::detail::Loaded<Arg> value_;
};

template <>
struct type_caster<dlbridge::stream_arg> {
  PYBIND11_TYPE_CASTER(dlbridge::stream_arg, dlbridge::detail::descr_of<dlbridge::detail::kStreamText>());

  bool load(handle source, bool convert) { return load(source, convert, dlbridge::detail::current_place(convert)); }
  bool load(handle source, bool, const dlbridge::detail::Place& place) {
    dlbridge::detail::connected();
    return dlbridge::detail::load_stream(source.ptr(), place, value);
  }
};

// As an argument: any array on any device, which the tensor keeps alive. As a result: a dlbridge.Tensor.
template <>
struct type_caster<dlbridge::Tensor> {
  using Any = dlbridge::Arg<const void, dlbridge::any_device>;
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kTensorText>();

  bool load(handle source, bool convert) { return load(source, convert, dlbridge::detail::current_place(convert)); }
  bool load(handle source, bool convert, const dlbridge::detail::Place& place) {
    make_caster<Any> any;
    if (!any.load(source, convert, place)) return false;
    value_ = static_cast<Any&>(any).tensor();
    return true;
  }
  static handle cast(dlbridge::Tensor&& tensor, return_value_policy policy, handle parent) {
    dlbridge::detail::connected();
    dlbridge::detail::keep_parent(tensor, dlbridge::detail::parent_of(policy, parent));
    return dlbridge::detail::checked_result(dlbridge::detail::to_python(std::move(tensor)));
  }
  static handle cast(dlbridge::Tensor& tensor, return_value_policy policy, handle parent) {
    return cast(tensor.share(), policy, parent);
  }
  template <class Never = void>
  static handle cast(const dlbridge::Tensor&, return_value_policy, handle) {
    static_assert(!sizeof(Never*),
                  "a const Tensor cannot be a result, as a share of the owner changes the tensor. Return it "
                  "by value, tensor.share(), or by a reference that is not const");
    return {};
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator dlbridge::Tensor&() noexcept { return value_; }                 // NOLINT(google-explicit-constructor)
  operator dlbridge::Tensor*() noexcept { return &value_; }                // NOLINT(google-explicit-constructor)
  operator dlbridge::Tensor&&() && noexcept { return std::move(value_); }  // NOLINT(google-explicit-constructor)

 private:
  dlbridge::Tensor value_;
};

// Neither an argument nor a result; pybind11 would take it for a class that is to be defined.
template <class T, int Rank, class Layout, class Device>
struct type_caster<dlbridge::TensorView<T, Rank, Layout, Device>> {
  static_assert(!sizeof(T*), "a TensorView owns nothing: as a result its memory would be gone, and as an argument "
                             "nobody would keep it. Return a dlbridge::Tensor, and take a dlbridge::Arg");
  using View = dlbridge::TensorView<T, Rank, Layout, Device>;
  static constexpr auto name = const_name("TensorView");
  template <class U>
  using cast_op_type = View;
  bool load(handle, bool) { return false; }
  template <class U>
  static handle cast(U&&, return_value_policy, handle) {
    return {};
  }
  operator View();
};

template <dlbridge::framework_name Framework>
struct type_caster<dlbridge::As<Framework>> {
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kResultText<Framework>>();

  static handle cast(dlbridge::As<Framework>&& result, return_value_policy policy, handle parent) {
    dlbridge::detail::connected();
    dlbridge::detail::keep_parent(result.tensor, dlbridge::detail::parent_of(policy, parent));
    PyObject* tensor = dlbridge::detail::to_python(std::move(result.tensor));
    return dlbridge::detail::checked_result(dlbridge::detail::to_framework(tensor, Framework.text));
  }
};

template <>
struct type_caster<dlbridge::Result> {
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kAnyResultText>();

  static handle cast(dlbridge::Result&& result, return_value_policy policy, handle parent) {
    dlbridge::detail::connected();
    result.keep_parent(dlbridge::detail::parent_of(policy, parent));
    return dlbridge::detail::checked_result(std::move(result).to_python());
  }
};

}  // namespace pybind11::detail
