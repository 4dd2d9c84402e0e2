// Arrays as arguments and results of nanobind functions: what dlbridge/pybind11.h is for pybind11, over the same C ABI.
//
//   dlbridge::def(m, "blur", [](dlbridge::Arg<float, dlbridge::rank<2>> a) { blur(a.view()); }, nb::arg("a"));
//
// Compiles against CPython's limited API, too, as nanobind's stable ABI and split mode want.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <new>
#include <utility>

#include "dlbridge/arg.h"
#include "dlbridge/nanobind/function.h"
#include "dlbridge/nanobind/pending.h"

namespace dlbridge {

// Imports dlbridge now rather than at the first call, and turns dlbridge::Error into the exceptions of the package.
// Call it in NB_MODULE.
inline void connect() {
  if (!detail::connected()) throw ::nanobind::python_error();
}
// keep() of an object of nanobind's.
inline Owner keep(const ::nanobind::object& object) { return keep(object.ptr()); }

namespace detail {

template <const ConstText& Text, std::size_t... I>
constexpr auto make_descr(std::index_sequence<I...>) {
  return ::nanobind::detail::descr<sizeof...(I)>(Text.text[I]...);
}
template <const ConstText& Text>
constexpr auto descr_of() {
  return make_descr<Text>(std::make_index_sequence<Text.size>{});
}

// A result's object: what `make` returns. Whatever goes wrong becomes a Python error.
template <class Make>
::nanobind::handle made_result(Make&& make) noexcept {
  try {
    return connected() ? make() : nullptr;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return nullptr;
  }
}
inline PyObject* parent_of(::nanobind::rv_policy policy, ::nanobind::detail::cleanup_list* cleanup) noexcept {
  return policy == ::nanobind::rv_policy::reference_internal && cleanup != nullptr ? cleanup->self() : nullptr;
}

// X as an argument.
template <class X>
struct PendingCaster {
  template <class U>
  using Cast = ::nanobind::detail::movable_cast_t<U>;

  bool from_python(::nanobind::handle source, std::uint32_t flags, ::nanobind::detail::cleanup_list*) noexcept {
    using ::nanobind::detail::cast_flags;
    is_manual_ = (flags & static_cast<std::uint32_t>(cast_flags::manual)) != 0;
    return pending_.from_python(source.ptr(), (flags & static_cast<std::uint32_t>(cast_flags::convert)) != 0);
  }
  // Asked by casters that hold this one, and by nb::cast(), which raises the error that is set.
  template <class U>
  bool can_cast() noexcept {
    if (pending_.can_get()) return true;
    if (is_manual_) {
      try {
        std::rethrow_exception(pending_.failure());
      } catch (::nanobind::python_error& error) {
        error.restore();
      } catch (...) {  // nb::cast() says that it could not
      }
    }
    return false;
  }
  explicit operator X*() { return &pending_.get({}); }
  explicit operator X&() { return pending_.get({}); }
  explicit operator X&&() { return std::move(pending_.get({})); }

  Pending<X> pending_;

 private:
  bool is_manual_ = false;
};

}  // namespace detail
}  // namespace dlbridge

namespace nanobind::detail {

// Of def(): the caster's own state, which names come to later.
template <class X>
struct type_caster<dlbridge::detail::Pending<X>> : dlbridge::detail::PendingCaster<X> {
  using Pending = dlbridge::detail::Pending<X>;
  static constexpr auto Name = type_caster<X>::Name;
  template <class U>
  using Cast = Pending&;
  operator Pending&() noexcept { return this->pending_; }  // NOLINT(google-explicit-constructor)
};

template <class T, dlbridge::Constraint... Constraints>
struct type_caster<dlbridge::Arg<T, Constraints...>>
    : dlbridge::detail::PendingCaster<dlbridge::Arg<T, Constraints...>> {
  using Arg = dlbridge::Arg<T, Constraints...>;
  static constexpr auto Name = dlbridge::detail::descr_of<dlbridge::detail::kArgumentText<Arg>>();

  static handle from_cpp(const Arg& argument, rv_policy, cleanup_list*) noexcept {
    return dlbridge::detail::made_result([&] { return dlbridge::like(argument).to_python(); });
  }
};

template <>
struct type_caster<dlbridge::stream_arg> : dlbridge::detail::PendingCaster<dlbridge::stream_arg> {
  static constexpr auto Name = dlbridge::detail::descr_of<dlbridge::detail::kStreamText>();
};

// As an argument: any array on any device, which the tensor keeps alive. As a result: a dlbridge.Tensor.
template <>
struct type_caster<dlbridge::Tensor> : dlbridge::detail::PendingCaster<dlbridge::Tensor> {
  static constexpr auto Name = dlbridge::detail::descr_of<dlbridge::detail::kTensorText>();

  static handle from_cpp(dlbridge::Tensor&& tensor, rv_policy policy, cleanup_list* cleanup) noexcept {
    return dlbridge::detail::made_result([&] {
      dlbridge::detail::keep_parent(tensor, dlbridge::detail::parent_of(policy, cleanup));
      return dlbridge::detail::to_python(std::move(tensor));
    });
  }
  static handle from_cpp(dlbridge::Tensor& tensor, rv_policy policy, cleanup_list* cleanup) noexcept {
    return from_cpp(tensor.share(), policy, cleanup);
  }
  template <class Never = void>
  static handle from_cpp(const dlbridge::Tensor&, rv_policy, cleanup_list*) noexcept {
    static_assert(!sizeof(Never*),
                  "a const Tensor cannot be a result, as a share of the owner changes the tensor. Return it "
                  "by value, tensor.share(), or by a reference that is not const");
    return {};
  }
};

// Neither an argument nor a result; nanobind would take it for a class that is to be defined.
template <class T, int Rank, class Layout, class Device>
struct type_caster<dlbridge::TensorView<T, Rank, Layout, Device>> {
  static_assert(!sizeof(T*), "a TensorView owns nothing: as a result its memory would be gone, and as an argument "
                             "nobody would keep it. Return a dlbridge::Tensor, and take a dlbridge::Arg");
  using View = dlbridge::TensorView<T, Rank, Layout, Device>;
  static constexpr auto Name = const_name("TensorView");
  template <class U>
  using Cast = View;
  bool from_python(handle, std::uint32_t, cleanup_list*) noexcept { return false; }
  template <class U>
  static handle from_cpp(U&&, rv_policy, cleanup_list*) noexcept {
    return {};
  }
  operator View();
};

template <dlbridge::framework_name Framework>
struct type_caster<dlbridge::As<Framework>> {
  static constexpr auto Name = dlbridge::detail::descr_of<dlbridge::detail::kResultText<Framework>>();

  static handle from_cpp(dlbridge::As<Framework>&& result, rv_policy policy, cleanup_list* cleanup) noexcept {
    return dlbridge::detail::made_result([&] {
      dlbridge::detail::keep_parent(result.tensor, dlbridge::detail::parent_of(policy, cleanup));
      return dlbridge::detail::to_framework(dlbridge::detail::to_python(std::move(result.tensor)), Framework.text);
    });
  }
};

template <>
struct type_caster<dlbridge::Result> {
  static constexpr auto Name = dlbridge::detail::descr_of<dlbridge::detail::kAnyResultText>();

  static handle from_cpp(dlbridge::Result&& result, rv_policy policy, cleanup_list* cleanup) noexcept {
    return dlbridge::detail::made_result([&] {
      result.keep_parent(dlbridge::detail::parent_of(policy, cleanup));
      return std::move(result).to_python();
    });
  }
};

}  // namespace nanobind::detail
