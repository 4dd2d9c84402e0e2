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
#include <iterator>
#include <string_view>
#include <utility>

#include "dlbridge/managed.h"
#include "dlbridge/pybind11/api.h"
#include "dlbridge/pybind11/argument.h"
#include "dlbridge/pybind11/function.h"
#include "dlbridge/pybind11/result.h"
#include "dlbridge/pybind11/visit.h"

namespace dlbridge {

namespace detail {
// What dlbridge.convert() knows by name, and what a signature says of the result; empty: no type of one name.
struct KnownFramework {
  std::string_view name, type;
};
// clang-format off
inline constexpr KnownFramework kKnownFrameworks[] = {
    {"numpy", "numpy.ndarray"}, {"torch", "torch.Tensor"}, {"cupy", "cupy.ndarray"}, {"jax", "jax.Array"},
    {"tensorflow", "tensorflow.Tensor"}, {"numba", ""}, {"cudf", ""}, {"paddle", "paddle.Tensor"},
    {"tvm_ffi", "tvm_ffi.Tensor"}, {"pyarrow", ""}, {"onnxruntime", ""}, {"dpnp", "dpnp.ndarray"},
    {"mlx", "mlx.core.array"}, {"openvino", "openvino.Tensor"}, {"nd", "dlbridge.nd.ndarray"}, {"buffer", "memoryview"},
    {"xarray", ""}, {"pandas", ""}, {"polars", ""}, {"nanoarrow", ""}, {"warp", ""}, {"duckdb", ""},
    {"opencv", "numpy.ndarray"}, {"cvcuda", ""}, {"dali", ""}, {"cv2", "numpy.ndarray"}, {"nvidia.dali", ""},
    {"np", "numpy.ndarray"}, {"pytorch", "torch.Tensor"}, {"tf", "tensorflow.Tensor"},
    {"jnp", "jax.Array"}, {"jax.numpy", "jax.Array"}, {"jax.dlpack", "jax.Array"}, {"numba.cuda", ""}, {"arrow", ""},
    {"ort", ""}, {"mlx.core", "mlx.core.array"}, {"memoryview", "memoryview"}, {"builtins", "memoryview"},
    {"dlbridge.nd", "dlbridge.nd.ndarray"},
};
// clang-format on
// Its row, or std::size(kKnownFrameworks): with UBSan, GCC 12 compares no addresses in constant expressions.
consteval std::size_t find_framework(std::string_view name) {
  std::size_t row = 0;
  while (row < std::size(kKnownFrameworks) && kKnownFrameworks[row].name != name) ++row;
  return row;
}
}  // namespace detail

// A framework that dlbridge.convert() knows, as a template argument: "numpy", "torch", "jax", "cupy", ….
template <std::size_t N>
struct framework_name {
  char text[N];
  bool other = false;
  consteval framework_name(const char (&name)[N])  // NOLINT(google-explicit-constructor)
      : framework_name(name, false) {}
  consteval framework_name(const char (&name)[N], bool is_other) : other(is_other) {
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
  constexpr std::string_view view() const noexcept { return {text, N - 1}; }
};
// A module that convert() does not know by name, and that has the Array API's from_dlpack().
template <std::size_t N>
consteval framework_name<N> other_module(const char (&name)[N]) {
  return framework_name<N>(name, true);
}

// A result that Python gets as an array of the framework. It shares the memory; what the framework cannot take as it
// is (read-only memory into PyTorch, …) is copied, as convert() does.
template <framework_name Framework>
struct As {
  static_assert(Framework.other || detail::find_framework(Framework.view()) < std::size(detail::kKnownFrameworks),
                "as<\"...\">: dlbridge.convert() knows no framework of this name. A module of another name that has "
                "from_dlpack(): as<dlbridge::other_module(\"...\")>(tensor)");
  Tensor tensor;
};
template <framework_name Framework>
As<Framework> as(Tensor&& tensor) noexcept {
  return {std::move(tensor)};
}

namespace detail {

template <class A>
inline constexpr ConstText kArgumentText = signature_text(A::kRequirement);

consteval ConstText result_text(std::string_view framework) {
  const std::size_t row = find_framework(framework);
  ConstText out;
  if (row < std::size(kKnownFrameworks) && !kKnownFrameworks[row].type.empty()) {
    out.add(kKnownFrameworks[row].type);
  } else {
    out.add("typing.Annotated[typing.Any, \"array of ");
    out.add(framework);
    out.add("\"]");
  }
  return out;
}
template <framework_name Framework>
inline constexpr ConstText kResultText = result_text(Framework.view());

template <const ConstText& Text, std::size_t... I>
constexpr auto make_descr(std::index_sequence<I...>) {
  return ::pybind11::detail::descr<sizeof...(I)>(Text.text[I]...);
}
template <const ConstText& Text>
constexpr auto descr_of() {
  return make_descr<Text>(std::make_index_sequence<Text.size>{});
}

}  // namespace detail
}  // namespace dlbridge

namespace pybind11::detail {

template <class T, dlbridge::Constraint... Constraints>
struct type_caster<dlbridge::Arg<T, Constraints...>> {
  using Arg = dlbridge::Arg<T, Constraints...>;
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kArgumentText<Arg>>();

  type_caster() noexcept : value_(nullptr) {}
  type_caster(type_caster&&) = default;
  type_caster& operator=(type_caster&&) = default;
  ~type_caster() {  // pybind11 destroys casters with the GIL held
    value_.holder_.reset_with_gil();
    value_.given_.reset_with_gil();
  }

  bool load(handle source, bool convert) {
    const dlbridge::detail::Place place = dlbridge::detail::current_place(convert);
    if (PyCapsule_CheckExact(source.ptr()) && !fits(source, convert, place)) return false;
    return load(source, convert, place);
  }
  // For whoever asks fits() before where `source` is a capsule, which is good for one reading. `place`: what messages
  // are to name.
  bool load(handle source, bool convert, const dlbridge::detail::Place& place) {
    return value_.load(source.ptr(), convert, place);
  }
  bool fits(handle capsule, bool convert, const dlbridge::detail::Place& place) {
    return Arg::fits(capsule.ptr(), convert, place);
  }

  static handle cast(const Arg& argument, return_value_policy, handle) {
    return dlbridge::like(argument).to_python().release();
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator Arg&() noexcept { return value_; }                 // NOLINT(google-explicit-constructor)
  operator Arg*() noexcept { return &value_; }                // NOLINT(google-explicit-constructor)
  operator Arg&&() && noexcept { return std::move(value_); }  // NOLINT(google-explicit-constructor)

 private:
  Arg value_;
};

template <>
struct type_caster<dlbridge::stream_arg> {
  PYBIND11_TYPE_CASTER(dlbridge::stream_arg, const_name("typing.Annotated[typing.Any, \"CUDA stream\"] | None"));

  bool load(handle source, bool convert) { return load(source, convert, dlbridge::detail::current_place(convert)); }
  bool load(handle source, bool, const dlbridge::detail::Place& place) {
    std::intptr_t handle = 0;
    if (dlbridge::detail::api().parse_stream(source.ptr(), &handle) != 0) [[unlikely]] {
      dlbridge::detail::Unreadable error;
      if (error.is_refusal() && (place.first_pass || dlbridge::detail::another_follows(place, error.text())))
        return false;
      error.raise(place);
    }
    if (handle == -1) {  // dlbridge 0.1 leaves that to the extension
      if (place.first_pass) return false;
      throw value_error(place.prefix() +
                        "stream -1 names no stream to work on. Give None, a CUDA stream handle as int, "
                        "or an object with __cuda_stream__");
    }
    value = dlbridge::stream_ref::from_handle(static_cast<dlbridge::StreamHandle>(handle));
    return true;
  }
};

// As an argument: any array on any device, which the tensor keeps alive. As a result: a dlbridge.Tensor.
template <>
struct type_caster<dlbridge::Tensor> {
  using Any = dlbridge::Arg<const void, dlbridge::any_device>;
  static constexpr auto name = io_name("typing.Annotated[typing.Any, \"Tensor\"]", "dlbridge.Tensor");

  bool load(handle source, bool convert) { return load(source, convert, dlbridge::detail::current_place(convert)); }
  bool load(handle source, bool convert, const dlbridge::detail::Place& place) {
    make_caster<Any> any;
    if (!any.load(source, convert, place)) return false;
    value_ = static_cast<Any&>(any).tensor();
    return true;
  }
  static handle cast(dlbridge::Tensor&& tensor, return_value_policy policy, handle parent) {
    dlbridge::detail::keep_parent(tensor, policy, parent);
    return dlbridge::detail::to_python(std::move(tensor)).release();
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
    dlbridge::detail::keep_parent(result.tensor, policy, parent);
    return dlbridge::detail::to_framework(std::move(result.tensor), Framework.text).release();
  }
};

template <>
struct type_caster<dlbridge::Result> {
  static constexpr auto name = const_name("typing.Annotated[typing.Any, \"array\"]");

  static handle cast(dlbridge::Result&& result, return_value_policy policy, handle parent) {
    result.keep_parent(policy, parent);
    return std::move(result).to_python().release();
  }
};

}  // namespace pybind11::detail
