// Results in a framework that is known at compile time: as<"torch">(tensor).
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "dlbridge/argument_text.h"
#include "dlbridge/managed.h"

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

consteval ConstText const_text(std::string_view text) {
  ConstText out;
  out.add(text);
  return out;
}
inline constexpr ConstText kStreamText = const_text("typing.Annotated[typing.Any, \"CUDA stream\"] | None");
inline constexpr ConstText kTensorText =
    const_text("@typing.Annotated[dlbridge.AnyArray, \"Tensor\"]@dlbridge.Tensor@");
inline constexpr ConstText kAnyResultText = const_text("typing.Annotated[typing.Any, \"array\"]");

}  // namespace detail
}  // namespace dlbridge
