// What functions of the host alone share. Each gives None, or False where it writes, for what it does not serve; then
// the way of every device is taken, in Python, which is also where errors are told.
#pragma once

#include "python/src/nd/call.h"

namespace dlbridge::py::nd {

inline const Tensor* host_array(PyObject* object) noexcept {
  return object != nullptr && Py_TYPE(object) == array_types.host ? &tensor_of(object) : nullptr;
}

// A Python int that 64 bits hold; false for what is none.
inline bool parse_integer(PyObject* object, std::int64_t& out) {
  if (!PyLong_CheckExact(object)) return false;
  int past = 0;
  out = PyLong_AsLongLongAndOverflow(object, &past);
  return past == 0;
}

// A place among n, or with `end` one behind them; negative ones count from the end.
inline bool parse_place(PyObject* object, std::int64_t n, bool end, std::int64_t& out) {
  const bool exists = parse_integer(object, out) && out >= -n && out < n + (end ? 1 : 0);
  if (out < 0) out += n;
  return exists;
}

// The array that `fill` makes of an empty one, by a Status; it says by its second argument whether it did. Else None.
template <class Fill>
PyObject* made_or_none(const Call& a, Fill fill) {
  bool done = false;
  NewArray out;
  throw_if_bad(fill(out.tensor(), done), a.operation());
  return done ? out.commit() : Ref::borrow(Py_None).release();
}

// A tuple of arrays, which are taken.
inline PyObject* tuple_of(std::span<Tensor> tensors) {
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    NewArray part;
    part.tensor() = std::move(tensors[k]);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), part.commit());
  }
  return tuple.release();
}

}  // namespace dlbridge::py::nd
