// Results that are known at run time: in the framework of an argument, or in one that is named; and what keeps a
// result's memory where that is a Python object.
#pragma once

#include <string>
#include <utility>

#include "dlbridge/managed.h"
#include "dlbridge/pybind11/argument.h"

namespace dlbridge {

namespace detail {

inline ::pybind11::object checked_object(PyObject* object) {
  if (object == nullptr) throw ::pybind11::error_already_set();
  return ::pybind11::reinterpret_steal<::pybind11::object>(object);
}
// Takes the tensor, also where it throws. A dlbridge.Tensor.
inline ::pybind11::object to_python(Tensor&& tensor) {
  const c_api::Table& table = api();
  const Ordering ready = tensor.ready;
  DLManagedTensorVersioned* managed = std::move(tensor).release();
  return checked_object(table.wrap(managed, static_cast<std::uint8_t>(ready.kind), ready.handle));
}
inline ::pybind11::object to_framework(Tensor&& tensor, const char* name) {
  const ::pybind11::object wrapped = to_python(std::move(tensor));
  return checked_object(api().convert(wrapped.ptr(), name));
}

// return_value_policy::reference_internal: a tensor without an owner shows memory of the object that `parent` is.
inline void keep_parent(Tensor& tensor, ::pybind11::return_value_policy policy, ::pybind11::handle parent) {
  if (!tensor.owner && parent && policy == ::pybind11::return_value_policy::reference_internal)
    tensor.owner = Reference::share(parent.ptr());
}

}  // namespace detail

// An owner that keeps a Python object: the one whose memory a tensor shows, or a capsule with a destructor. To be made
// with the GIL held; it may be dropped on any thread, with the GIL or without.
//   Tensor t = from(borrow(std::span(grid.values), keep(py::cast(grid))));
inline Owner keep(const ::pybind11::object& object) {
  detail::api();
  return detail::Reference::share(object.ptr());
}

// A result whose type in Python is known at run time only: made by like() and as(tensor, name), or of a Tensor, and
// then it is a dlbridge.Tensor. Move-only; may be made and dropped without the GIL.
class Result {
 public:
  Result(Tensor&& tensor) noexcept : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)

  // The object that Python gave for `argument`; where it was converted, what it became, in the framework that it is of.
  template <class T, Constraint... Constraints>
  static Result same(const Arg<T, Constraints...>& argument) {
    if (argument.converted_) return like(argument, argument.tensor());
    Result out{Tensor()};
    out.object_ = detail::Reference::to(argument.given());
    out.is_same_ = true;
    return out;
  }
  template <class T, Constraint... Constraints>
  static Result like(const Arg<T, Constraints...>& argument, Tensor&& tensor) {
    Result out(std::move(tensor));
    out.object_ = detail::Reference::to(argument.given());
    return out;
  }
  static Result named(Tensor&& tensor, std::string framework) {
    Result out(std::move(tensor));
    out.framework_ = std::move(framework);
    return out;
  }

  // The casters'. Throws error_already_set.
  ::pybind11::object to_python() && {
    if (is_same_) return ::pybind11::reinterpret_borrow<::pybind11::object>(object_.get());
    if (!framework_.empty()) return detail::to_framework(std::move(tensor_), framework_.c_str());
    ::pybind11::object wrapped = detail::to_python(std::move(tensor_));
    if (object_.get() == nullptr) return wrapped;
    return detail::checked_object(detail::api().convert_like(wrapped.ptr(), object_.get()));
  }
  void keep_parent(::pybind11::return_value_policy policy, ::pybind11::handle parent) {
    detail::keep_parent(tensor_, policy, parent);
  }

 private:
  Tensor tensor_;
  detail::Reference object_;
  std::string framework_;
  bool is_same_ = false;
};

// The argument itself, as a result: Python gets the object that it gave. So does a function that returns an Arg.
template <class T, Constraint... Constraints>
Result like(const Arg<T, Constraints...>& argument) {
  return Result::same(argument);
}
// `tensor` in the framework of the argument: a torch.Tensor for a torch.Tensor, an ndarray for an ndarray; where that
// is of none that dlbridge.convert() knows (a capsule, bytes), a dlbridge.Tensor. It stays on its device.
template <class T, Constraint... Constraints>
Result like(const Arg<T, Constraints...>& argument, Tensor&& tensor) {
  return Result::like(argument, std::move(tensor));
}
template <class T, Constraint... Constraints>
Result like(const Arg<T, Constraints...>& argument, Tensor& tensor) {
  static_assert(!sizeof(T*), "a tensor that is to be like an argument is given away: like(a, std::move(tensor)), or "
                             "like(a, tensor.share())");
  return Result::like(argument, std::move(tensor));
}
// `tensor` in the framework of that name, as dlbridge.convert(tensor, framework).
inline Result as(Tensor&& tensor, std::string framework) {
  return Result::named(std::move(tensor), std::move(framework));
}

}  // namespace dlbridge
