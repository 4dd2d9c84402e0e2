// Arrays as arguments and results of pybind11 functions: Arg, stream_arg, Tensor and as<"torch">.
//
//   m.def("blur", [](dlbridge::Arg<float, dlbridge::shape<dyn, dyn, 3>, dlbridge::c_contig> a) { blur(a.view()); });
//
// takes the arrays of every framework without a copy. The installed package dlbridge does the reading: its functions
// come through a C ABI (dlbridge/c_api.h), fetched at the first call or by connect().
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "dlbridge/managed.h"
#include "dlbridge/pybind11/api.h"
#include "dlbridge/pybind11/argument.h"
#include "dlbridge/pybind11/function.h"

namespace dlbridge {

// A framework that dlbridge.convert() knows, as a template argument: "numpy", "torch", "jax", "cupy", ….
template <std::size_t N>
struct framework_name {
  char text[N];
  consteval framework_name(const char (&name)[N]) {  // NOLINT(google-explicit-constructor)
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
  constexpr std::string_view view() const noexcept { return {text, N - 1}; }
};

// A result that Python gets as an array of the framework. It shares the memory; what the framework cannot take as it
// is (read-only memory into PyTorch, …) is copied, as convert() does.
template <framework_name Framework>
struct As {
  Tensor tensor;
};
template <framework_name Framework>
As<Framework> as(Tensor&& tensor) noexcept {
  return {std::move(tensor)};
}

namespace detail {

template <class A>
inline constexpr ConstText kArgumentText = signature_text(A::kRequirement, A::kHasExtents);

struct KnownResult {
  std::string_view framework, type;
};
inline constexpr KnownResult kKnownResults[] = {
    {"numpy", "numpy.ndarray"}, {"torch", "torch.Tensor"}, {"jax", "jax.Array"},
    {"cupy", "cupy.ndarray"},   {"tensorflow", "tensorflow.Tensor"},
};
consteval ConstText result_text(std::string_view framework) {
  ConstText out;
  for (const KnownResult& known : kKnownResults)
    if (known.framework == framework) framework = known.type;
  out.add(framework);
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

// Takes the tensor, also where it throws. New reference to a dlbridge.Tensor.
inline PyObject* to_python(Tensor&& tensor) {
  const c_api::Table& table = api();
  const Ordering ready = tensor.ready;
  DLManagedTensorVersioned* managed = std::move(tensor).release();
  PyObject* object = table.wrap(managed, static_cast<std::uint8_t>(ready.kind), ready.handle);
  if (object == nullptr) throw ::pybind11::error_already_set();
  return object;
}

}  // namespace detail
}  // namespace dlbridge

namespace pybind11::detail {

template <class T, dlbridge::Constraint... Constraints>
struct type_caster<dlbridge::Arg<T, Constraints...>> {
  using Arg = dlbridge::Arg<T, Constraints...>;
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kArgumentText<Arg>>();

  type_caster() = default;
  type_caster(type_caster&&) = default;
  type_caster& operator=(type_caster&&) = default;
  ~type_caster() { value_.holder_.reset_with_gil(); }  // pybind11 destroys casters with the GIL held

  bool load(handle source, bool convert) { return load(source, convert, {}); }
  // `place`: what messages are to name.
  bool load(handle source, bool convert, const dlbridge::detail::Place& place) {
    // A capsule is good for one reading: not while overloads are only tried.
    if (!convert && PyCapsule_CheckExact(source.ptr())) [[unlikely]] return false;
    return value_.load(source.ptr(), convert, place);
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator Arg&() noexcept { return value_; }              // NOLINT(google-explicit-constructor)
  operator Arg*() noexcept { return &value_; }             // NOLINT(google-explicit-constructor)
  operator Arg&&() && noexcept { return std::move(value_); }  // NOLINT(google-explicit-constructor)

 private:
  Arg value_;
};

template <>
struct type_caster<dlbridge::stream_arg> {
  PYBIND11_TYPE_CASTER(dlbridge::stream_arg, const_name("Stream | None"));

  bool load(handle source, bool convert) {
    std::intptr_t handle = 0;
    if (dlbridge::detail::api().parse_stream(source.ptr(), &handle) != 0) {
      if (convert) throw error_already_set();
      dlbridge::detail::clear_refusal();
      return false;
    }
    if (handle == -1) {
      if (!convert) return false;
      throw value_error("stream: -1 says that no synchronisation is wanted, and names no stream to work on. Give None, "
                        "a CUDA stream handle as int, or an object with __cuda_stream__");
    }
    value = dlbridge::stream_ref::from_handle(static_cast<dlbridge::StreamHandle>(handle));
    return true;
  }
};

// As an argument: any array on any device, which the tensor keeps alive. As a result: a dlbridge.Tensor.
template <>
struct type_caster<dlbridge::Tensor> {
  static constexpr auto name = const_name("Tensor");

  bool load(handle source, bool convert) {
    make_caster<dlbridge::Arg<const void, dlbridge::any_device>> any;
    if (!any.load(source, convert)) return false;
    value_ = static_cast<dlbridge::Arg<const void, dlbridge::any_device>&>(any).tensor();
    return true;
  }
  static handle cast(dlbridge::Tensor&& tensor, return_value_policy, handle) {
    return dlbridge::detail::to_python(std::move(tensor));
  }
  static handle cast(dlbridge::Tensor& tensor, return_value_policy, handle) {
    return dlbridge::detail::to_python(tensor.share());
  }

  template <class U>
  using cast_op_type = movable_cast_op_type<U>;
  operator dlbridge::Tensor&() noexcept { return value_; }                 // NOLINT(google-explicit-constructor)
  operator dlbridge::Tensor*() noexcept { return &value_; }                // NOLINT(google-explicit-constructor)
  operator dlbridge::Tensor&&() && noexcept { return std::move(value_); }  // NOLINT(google-explicit-constructor)

 private:
  dlbridge::Tensor value_;
};

template <dlbridge::framework_name Framework>
struct type_caster<dlbridge::As<Framework>> {
  static constexpr auto name = dlbridge::detail::descr_of<dlbridge::detail::kResultText<Framework>>();

  static handle cast(dlbridge::As<Framework>&& result, return_value_policy, handle) {
    const object tensor = reinterpret_steal<object>(dlbridge::detail::to_python(std::move(result.tensor)));
    PyObject* array = dlbridge::detail::api().convert(tensor.ptr(), Framework.text);
    if (array == nullptr) throw error_already_set();
    return array;
  }
};

}  // namespace pybind11::detail
