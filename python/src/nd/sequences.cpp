#include "python/src/nd/sequences.h"

#include <algorithm>
#include <vector>

#include "dlbridge/validate.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/fill.h"
#include "protocols/common/array_arguments.h"
#include "python/src/bridge.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {
namespace {

bool ragged() {
  raise("nd.array()", ErrorCode::kMalformed,
        "the nested sequences have different lengths; an array needs the same at each depth");
  return false;
}

bool read_leaf(PyObject* object, double& out) noexcept {
  if (!PyFloat_CheckExact(object)) return false;
  out = PyFloat_AS_DOUBLE(object);
  return true;
}

bool read_leaf(PyObject* object, std::int64_t& out) noexcept {
  if (!PyLong_CheckExact(object)) return false;
  int past = 0;
  out = PyLong_AsLongLongAndOverflow(object, &past);
  return past == 0;
}

bool read_leaf(PyObject* object, core::Scalar& out) {
  if (PyFloat_CheckExact(object)) {
    out = core::Scalar::of_float(PyFloat_AS_DOUBLE(object));
    return true;
  }
  core::Input input;
  const Parsed parsed = parse_operand(object, input);
  if (parsed == Parsed::kNo)
    PyErr_Format(PyExc_TypeError, "nd.array(): an element is %R; give numbers, nested sequences of numbers or arrays",
                 Py_TYPE(object));
  out = input.scalar;
  return parsed == Parsed::kYes;
}

// A nested sequence, flattened: of any numbers, or of floats or ints alone.
template <class Leaf>
struct Nested {
  Shape shape;
  std::vector<Leaf> leaves;

  // False with a Python error, or where a leaf is not of the kind.
  bool collect(PyObject* object, int depth) {
    if (!is_sequence(object)) return depth == shape.ndim ? add(object) : ragged();
    if (depth == kMaxDims) return ragged();
    // Elements have code of their own (item(), dtype), which may change a list.
    const Ref items(PyRange_Check(object) ? Ref(PySequence_Tuple(object)) : fixed_items(object));
    if (!items) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
    if (depth == shape.ndim) {
      if (!leaves.empty()) return ragged();
      shape.dims[shape.ndim++] = n;
    } else if (shape.dims[depth] != n) {
      return ragged();
    }
    if (leaves.empty()) leaves.reserve(static_cast<std::size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
      PyObject* item = PyTuple_GET_ITEM(items.get(), k);
      const bool is_leaf = depth + 1 == shape.ndim && (PyFloat_CheckExact(item) || PyLong_CheckExact(item));
      if (!(is_leaf ? add(item) : collect(item, depth + 1))) return false;
    }
    return true;
  }

  bool add(PyObject* object) { return read_leaf(object, leaves.emplace_back()); }
};

template <class Leaf>
PyObject* from_leaves(const Nested<Leaf>& nested, std::optional<DType> dtype, DLDevice device) {
  return make_result("nd.array()", [&](Tensor& out) -> Status {
    Tensor host;
    DLBRIDGE_TRY(core::make_from<Leaf>(host, nested.leaves, dtype, nested.shape.get()));
    if (!is_host(device)) return core::copy_to(host, device, out);
    out = std::move(host);
    return {};
  });
}

// Null without an error where not all elements are of the kind.
template <class Leaf>
PyObject* from_plain(PyObject* object, std::optional<DType> dtype, DLDevice device) {
  Nested<Leaf> nested;
  if (nested.collect(object, 0)) return from_leaves(nested, dtype, device);
  PyErr_Clear();  // the general way says what is wrong
  return nullptr;
}

}  // namespace

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object); }

bool holds_array(PyObject* object) {
  Ref at = Ref::borrow(object);
  for (int depth = 0; depth < kMaxDims && is_sequence(at.get()); ++depth) {
    if (PyRange_Check(at.get()) || PySequence_Fast_GET_SIZE(at.get()) == 0) return false;
    at = Ref::borrow(PySequence_Fast_GET_ITEM(at.get(), 0));
  }
  PyObject* first = at.get();
  if (is_sequence(first) || PyUnicode_Check(first) || PyFloat_Check(first) || PyLong_Check(first)) return false;
  return !PyNumber_Check(first) || is_tensor(first) || PyObject_HasAttrString(first, "__dlpack__");
}

PyObject* from_arrays(PyObject* object, std::optional<DType> dtype, std::optional<DLDevice> device) {
  const Ref items = fixed_items(object);
  checked(items.get());
  const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  PyObject* const* first = PySequence_Fast_ITEMS(items.get());
  const auto lies_there = [&](PyObject* item) {
    return is_array(item) && same_device(tensor_of(item).dl.device, device.value_or(tensor_of(first[0]).dl.device));
  };
  if (std::all_of(first, first + n, lies_there)) {
    Ref stacked = owned(stack_arrays(first, n));
    const Tensor& t = tensor_of(stacked.get());
    if (!dtype || *dtype == core::dtype_of(t)) return stacked.release();
    return make_result("nd.array()",
                       [&](Tensor& out) { return core::copy_as(t, *dtype, core::CopyOrder::kKeep, out); });
  }
  static PythonFunction stack_sequence("dlbridge.nd._creation", "_stack_sequence");
  const Ref kind = dtype ? owned(make_dtype(to_dl(*dtype))) : Ref::borrow(Py_None);
  const Ref place = device ? owned(make_device(*device)) : Ref::borrow(Py_None);
  return stack_sequence(items.get(), kind.get(), place.get()).release();
}

PyObject* from_values(PyObject* object, std::optional<DType> dtype, DLDevice device) {
  Ref first = Ref::borrow(object);
  for (int depth = 0; depth < kMaxDims && (PyList_CheckExact(first.get()) || PyTuple_CheckExact(first.get()));
       ++depth) {
    Ref inner(PySequence_GetItem(first.get(), 0));  // its own: another thread may change a list
    if (!inner) {
      PyErr_Clear();
      break;
    }
    first = std::move(inner);
  }
  PyObject* made = nullptr;
  if (PyFloat_CheckExact(first.get())) made = from_plain<double>(object, dtype, device);
  else if (PyLong_CheckExact(first.get()) || PyRange_Check(first.get()))
    made = from_plain<std::int64_t>(object, dtype, device);
  if (made != nullptr) return made;
  Nested<core::Scalar> nested;
  return nested.collect(object, 0) ? from_leaves(nested, dtype, device) : nullptr;
}

}  // namespace dlbridge::py::nd
