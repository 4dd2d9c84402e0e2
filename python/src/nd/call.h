// The arguments of a call of nd's functions: arrays, dtypes, axes, devices, as they read them.
#pragma once

#include "python/src/kit/tables.h"
#include "python/src/nd/array.h"

namespace dlbridge::py::nd {

class Call : public ::dlbridge::py::Call {
 public:
  using ::dlbridge::py::Call::Call;

  // The same call, by another name in messages.
  Call renamed(const char* operation) const {
    Call out = *this;
    out.operation_ = operation;
    return out;
  }
  const char* text(std::size_t i) const {
    const char* found = PyUnicode_AsUTF8(given(i));
    checked(found != nullptr);
    return found;
  }
  const Tensor& array(std::size_t i) const { return need_array(given(i), operation()); }
  const Tensor* optional_array(std::size_t i) const { return (*this)[i] == nullptr ? nullptr : &array(i); }
  core::Input operand(std::size_t i) const { return need_operand(given(i), operation()); }
  std::optional<DType> dtype(std::size_t i) const { return parse_dtype(given(i), operation()); }
  Shape shape(std::size_t i) const { return parse_shape(given(i), operation()); }
  // Of a variadic parameter: f(2, 3) and f((2, 3)) are the same, and so is the parameter's name.
  Shape variadic_shape(std::size_t i) const {
    if ((*this)[i] != nullptr) return shape(i);
    if (all_count() == 1 && !PyLong_Check(all()[0])) return parse_shape(all()[0], operation());
    return parse_shape(all(), all_count(), operation());
  }
  int axis(std::size_t i, int ndim) const { return parse_axis(given(i), ndim, operation()); }
  std::uint64_t axes(std::size_t i, int ndim) const { return parse_axes(given(i), ndim, operation()); }
  char order(std::size_t i, char otherwise) const { return parse_order(given(i), operation(), otherwise); }
  core::Casting casting(std::size_t i, core::Casting otherwise) const {
    return parse_casting(given(i), operation(), otherwise);
  }
  // copy=: None and absent give nullopt. A text is refused: 'never' would be true.
  std::optional<bool> copy(std::size_t i) const {
    if ((*this)[i] == nullptr) return std::nullopt;
    if (PyUnicode_Check(given(i)))
      throw_error(PyExc_ValueError, "%s: copy is %R, and strings are not allowed for it; give True, False or None",
                  operation(), given(i));
    return flag(i, false);
  }
  std::optional<DLDevice> device(std::size_t i) const { return parse_device(given(i), operation()); }
};

// The array that `fill` makes of an empty one, by a Status. New reference.
template <class Fill>
PyObject* make_result(const char* operation, Fill fill) {
  NewArray out;
  throw_if_bad(fill(out.tensor()), operation);
  return out.commit();
}

}  // namespace dlbridge::py::nd
