// Results that are known at run time: in the framework of an argument, or in one that is named; and what keeps a
// result's memory where that is a Python object.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "dlbridge/managed.h"
#include "dlbridge/python/argument.h"

namespace dlbridge {

namespace detail {

// Python's objects of results: new references, or null with a Python error set. The GIL is held, and the table known.
//
// Takes the tensor's owner, also where it fails. In the framework of `example`; null: a dlbridge.Tensor.
[[gnu::noinline]] inline PyObject* to_python(Tensor&& tensor, PyObject* example = nullptr) noexcept {
  const c_api::Made made{tensor.dl,
                         tensor.flags,
                         tensor.ready.handle,
                         static_cast<std::uint8_t>(tensor.ready.kind),
                         tensor.owner.context(),
                         tensor.owner.release_function()};
  tensor.owner.forget();
  return api_table->result_like(&made, example);
}
// `wrapped` is what to_python() has made, or null.
inline PyObject* to_framework(PyObject* wrapped, const char* name) noexcept {
  if (wrapped == nullptr) return nullptr;
  PyObject* out = api_table->convert(wrapped, name);
  Py_DECREF(wrapped);
  return out;
}

// What return policies call reference_internal: a tensor without an owner shows memory of the object that `parent` is.
inline void keep_parent(Tensor& tensor, PyObject* parent) {
  if (!tensor.owner && parent != nullptr) tensor.owner = Reference::share(parent);
}

}  // namespace detail

// An owner that keeps a Python object: the one whose memory a tensor shows, or a capsule with a destructor. To be made
// with the GIL held; it may be dropped on any thread, with the GIL or without.
//   Tensor t = from(borrow(std::span(grid.values), keep(py::cast(grid).ptr())));
inline Owner keep(PyObject* object) {
  detail::api();
  return detail::Reference::share(object);
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

  // The casters'. A new reference, or null with a Python error set.
  PyObject* to_python() && noexcept {
    if (is_same_) return Py_NewRef(object_.get());
    PyObject* made = detail::to_python(std::move(tensor_), object_.get());
    return framework_.empty() ? made : detail::to_framework(made, framework_.c_str());
  }
  void keep_parent(PyObject* parent) { detail::keep_parent(tensor_, parent); }

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
