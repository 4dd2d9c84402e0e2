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

// A nested sequence, flattened.
struct Nested {
  Shape shape;
  std::vector<core::Scalar> leaves;
  std::vector<Ref> alive;
};

bool ragged() {
  raise("nd.array()", ErrorCode::kMalformed,
        "the nested sequences have different lengths; an array needs the same at each depth");
  return false;
}

bool collect(PyObject* object, int depth, Nested& out) {
  if (depth == out.shape.ndim &&
      (PyFloat_CheckExact(object) || PyLong_CheckExact(object))) {  // of most leaves, at once
    int past = 0;
    const bool is_float = PyFloat_CheckExact(object);
    const long long whole = is_float ? 0 : PyLong_AsLongLongAndOverflow(object, &past);
    if (past == 0) {
      out.leaves.push_back(is_float ? core::Scalar::of_float(PyFloat_AS_DOUBLE(object)) : core::Scalar::of_int(whole));
      return true;
    }
  }
  if (is_sequence(object)) {
    if (depth == kMaxDims) return ragged();
    // Elements have code of their own (item(), dtype), which may change a list.
    const Ref items(PyRange_Check(object) ? Ref(PySequence_Tuple(object)) : fixed_items(object));
    if (!items) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
    if (depth == out.shape.ndim) {
      if (!out.leaves.empty()) return ragged();
      out.shape.dims[out.shape.ndim++] = n;
    } else if (out.shape.dims[depth] != n) {
      return ragged();
    }
    if (out.leaves.empty()) out.leaves.reserve(static_cast<std::size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k)
      if (!collect(PyTuple_GET_ITEM(items.get(), k), depth + 1, out)) return false;
    return true;
  }
  if (depth != out.shape.ndim) return ragged();
  core::Input input;
  const Parsed parsed = parse_operand(object, input);
  if (parsed == Parsed::kError) return false;
  if (parsed == Parsed::kNo) {
    PyErr_Format(PyExc_TypeError, "nd.array(): an element is %R; give numbers, nested sequences of numbers or arrays",
                 Py_TYPE(object));
    return false;
  }
  out.leaves.push_back(input.scalar);
  return true;
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
  Nested nested;
  if (!collect(object, 0, nested)) return nullptr;
  return make_result("nd.array()", [&](Tensor& out) -> Status {
    Tensor host;
    DLBRIDGE_TRY(core::make_from_scalars(host, nested.leaves, dtype, nested.shape.get()));
    if (!is_host(device)) return core::copy_to(host, device, out);
    out = std::move(host);
    return {};
  });
}

}  // namespace dlbridge::py::nd
