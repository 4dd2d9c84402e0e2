// Methods of nd.ndarray that deserve C++: shapes, copies, casts and reductions.
#include <algorithm>
#include <string>

#include "ndarray/core/reduction.h"
#include "python/src/nd/array_type.h"
#include "python/src/nd/keywords.h"

namespace dlbridge::py::nd {

namespace {

using Args = PyObject* const*;

// reshape(2, 3) and reshape((2, 3)) are the same.
bool parse_shape_args(Args args, Py_ssize_t nargs, const char* operation, Shape& out) {
  if (nargs == 1 && !PyLong_Check(args[0])) return parse_shape(args[0], operation, out);
  return parse_shape_items(args, nargs, operation, out);
}

// Replaces the one -1 by what is left over.
bool infer_extent(const Tensor& t, Shape& shape) {
  std::int64_t known = 1;
  int unknown = -1;
  bool valid = true;
  for (int k = 0; k < shape.ndim; ++k) {
    if (shape.dims[k] == -1 && unknown < 0) unknown = k;
    else if (shape.dims[k] < 0) valid = false;
    else if (__builtin_mul_overflow(known, shape.dims[k], &known)) valid = false;
  }
  if (valid && unknown >= 0) {
    valid = known != 0 && t.size % known == 0;
    if (valid) shape.dims[unknown] = t.size / known;
  } else if (valid) {
    valid = known == t.size;
  }
  if (!valid)
    raise("reshape()", ErrorCode::kMalformed, "cannot reshape an array of shape " + core::shape_text(core::shape_of(t)) +
                                                  " into " + core::shape_text(shape.get()) +
                                                  ": the numbers of elements differ, and only one extent may be -1");
  return valid;
}

Status reshape_or_copy(const Tensor& t, const Shape& shape, core::Order order, std::optional<bool> copy, Tensor& out) {
  bool viewed = false;
  if (copy != std::optional(true)) DLBRIDGE_TRY(core::reshape_view(t, shape.get(), order, out, viewed));
  if (viewed) return {};
  out = Tensor();
  if (copy == std::optional(false))
    return {ErrorCode::kCopyRefused, "the strides do not allow this shape without a copy, and copy=False forbids one"};
  Tensor dense;
  const auto wanted = order == core::Order::kC ? core::CopyOrder::kC : core::CopyOrder::kF;
  DLBRIDGE_TRY(core::copy_as(t, core::dtype_of(t), wanted, dense));
  return core::reshape_view(dense, shape.get(), order, out, viewed);
}

PyObject* reshape(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  const Tensor& t = tensor_of(self);
  Arguments<3> keywords;
  Shape shape;
  if (!keywords.parse("reshape()", {"shape", "order", "copy"}, 0, 0, args + nargs, 0, kwnames)) return nullptr;
  char order = 'C';
  bool copy = false;
  const bool has_shape = keywords[0] != nullptr;
  if (!(has_shape ? parse_shape(keywords[0], "reshape()", shape) : parse_shape_args(args, nargs, "reshape()", shape)) ||
      !parse_order(keywords[1], "reshape()", order) || !parse_flag(keywords[2], false, copy) || !infer_extent(t, shape))
    return nullptr;
  if (order == 'A') order = core::is_f_contiguous(t) && !core::is_c_contiguous(t) ? 'F' : 'C';
  NewArray out;
  if (!out) return nullptr;
  const std::optional<bool> policy = keywords[2] == nullptr ? std::nullopt : std::optional(copy);
  return finish("reshape()",
                reshape_or_copy(t, shape, order == 'F' ? core::Order::kF : core::Order::kC, policy, out.tensor()), out);
}

PyObject* transpose(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  const Tensor& t = tensor_of(self);
  Arguments<1> keywords;
  if (!keywords.parse("transpose()", {"axes"}, 0, 0, args + nargs, 0, kwnames)) return nullptr;
  const int n = t.dl.ndim;
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < n; ++k) axes[k] = static_cast<std::int8_t>(n - 1 - k);
  PyObject* single = keywords[0] != nullptr ? keywords[0] : nargs == 1 ? args[0] : nullptr;
  Shape given;
  const bool reverse = (nargs == 0 && single == nullptr) || single == Py_None;
  if (!reverse) {
    if (!(single != nullptr ? parse_shape(single, "transpose()", given)
                            : parse_shape_items(args, nargs, "transpose()", given)))
      return nullptr;
    std::uint64_t seen = 0;
    bool valid = given.ndim == n;
    for (int k = 0; valid && k < n; ++k) {
      const std::int64_t axis = given.dims[k] < 0 ? given.dims[k] + n : given.dims[k];
      valid = axis >= 0 && axis < n && ((seen >> axis) & 1) == 0;
      if (valid) seen |= std::uint64_t{1} << axis;
      axes[k] = static_cast<std::int8_t>(axis);
    }
    if (!valid) {
      raise("transpose()", ErrorCode::kMalformed, "axes " + core::shape_text(given.get()) + " are no permutation of the " +
                                                      std::to_string(n) + " axes of the array");
      return nullptr;
    }
  }
  NewArray out;
  if (!out) return nullptr;
  return finish("transpose()", core::transpose_view(t, {axes, static_cast<std::size_t>(n)}, out.tensor()), out);
}

core::CopyOrder copy_order(const Tensor& t, char order) noexcept {
  if (order == 'A') return core::is_f_contiguous(t) && !core::is_c_contiguous(t) ? core::CopyOrder::kF : core::CopyOrder::kC;
  return order == 'C' ? core::CopyOrder::kC : order == 'F' ? core::CopyOrder::kF : core::CopyOrder::kKeep;
}

bool lies_in_order(const Tensor& t, char order) noexcept {
  if (order == 'C') return core::is_c_contiguous(t);
  if (order == 'F') return core::is_f_contiguous(t);
  return true;
}

PyObject* astype(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<5> a;
  std::optional<DType> dtype;
  char order = 'K';
  bool copy = true;
  if (!a.parse("astype()", {"dtype", "order", "casting", "subok", "copy"}, 1, 5, args, nargs, kwnames) ||
      !parse_dtype(a.values[0], "astype()", dtype) || !parse_order(a[1], "astype()", order) ||
      !parse_flag(a[4], true, copy))
    return nullptr;
  const Tensor& t = tensor_of(self);
  const DType target = dtype.value_or(core::kDefaultFloat);
  if (!copy && target == core::dtype_of(t) && lies_in_order(t, order)) return Ref::borrow(self).release();
  NewArray out;
  if (!out) return nullptr;
  return finish("astype()", core::copy_as(t, target, copy_order(t, order), out.tensor()), out);
}

PyObject* copy(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<1> a;
  char order = 'C';
  if (!a.parse("copy()", {"order"}, 0, 1, args, nargs, kwnames) || !parse_order(a[0], "copy()", order)) return nullptr;
  const Tensor& t = tensor_of(self);
  NewArray out;
  if (!out) return nullptr;
  return finish("copy()", core::copy_as(t, core::dtype_of(t), copy_order(t, order), out.tensor()), out);
}

PyObject* flattened(PyObject* self, const char* operation, char order, std::optional<bool> copy) {
  const Tensor& t = tensor_of(self);
  Shape shape;
  shape.ndim = 1;
  shape.dims[0] = t.size;
  if (order == 'A' || order == 'K') order = core::is_f_contiguous(t) && !core::is_c_contiguous(t) ? 'F' : 'C';
  // A view with gaps will not do: what asks for a flat array counts on a dense one. A copy then, as NumPy's.
  bool viewed = false;
  Tensor view;
  if (!succeeded(operation, core::reshape_view(t, shape.get(), order == 'F' ? core::Order::kF : core::Order::kC, view, viewed)))
    return nullptr;
  const bool gaps = viewed && !core::is_c_contiguous(view);
  NewArray out;
  if (!out) return nullptr;
  return finish(operation,
                reshape_or_copy(t, shape, order == 'F' ? core::Order::kF : core::Order::kC,
                                gaps ? std::optional(true) : copy, out.tensor()),
                out);
}

PyObject* ravel(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<1> a;
  char order = 'C';
  if (!a.parse("ravel()", {"order"}, 0, 1, args, nargs, kwnames) || !parse_order(a[0], "ravel()", order)) return nullptr;
  return flattened(self, "ravel()", order, std::nullopt);
}

PyObject* flatten(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<1> a;
  char order = 'C';
  if (!a.parse("flatten()", {"order"}, 0, 1, args, nargs, kwnames) || !parse_order(a[0], "flatten()", order)) return nullptr;
  return flattened(self, "flatten()", order, true);
}

PyObject* squeeze(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<1> a;
  const Tensor& t = tensor_of(self);
  std::uint64_t mask = 0;
  if (!a.parse("squeeze()", {"axis"}, 0, 1, args, nargs, kwnames) || !parse_axes(a[0], t.dl.ndim, "squeeze()", mask))
    return nullptr;
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  std::size_t n = 0;
  for (int k = 0; k < t.dl.ndim; ++k) {
    const bool asked = ((mask >> k) & 1) != 0;
    if (asked && t.dl.shape[k] == 1) continue;
    if (asked && a[0] != nullptr) {
      raise("squeeze()", ErrorCode::kMalformed, "axis " + std::to_string(k) + " has extent " +
                                                    std::to_string(t.dl.shape[k]) + "; only extent 1 can be dropped");
      return nullptr;
    }
    shape[n] = t.dl.shape[k];
    strides[n++] = t.dl.strides[k];
  }
  NewArray out;
  if (!out) return nullptr;
  return finish("squeeze()", core::make_view(t, {shape, n}, {strides, n}, 0, out.tensor()), out);
}

PyObject* swapaxes(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<2> a;
  const Tensor& t = tensor_of(self);
  int first = 0, second = 0;
  if (!a.parse("swapaxes()", {"axis1", "axis2"}, 2, 2, args, nargs, kwnames) ||
      !parse_axis(a.values[0], t.dl.ndim, "swapaxes()", first) || !parse_axis(a.values[1], t.dl.ndim, "swapaxes()", second))
    return nullptr;
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < t.dl.ndim; ++k) axes[k] = static_cast<std::int8_t>(k);
  std::swap(axes[first], axes[second]);
  NewArray out;
  if (!out) return nullptr;
  return finish("swapaxes()", core::transpose_view(t, {axes, static_cast<std::size_t>(t.dl.ndim)}, out.tensor()), out);
}

// The bytes as another dtype; the last axis must be dense where the itemsize changes.
Status reinterpret(const Tensor& t, DType dtype, Tensor& out) {
  const std::int64_t from = t.itemsize(), to = core::itemsize(dtype);
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  const auto n = static_cast<std::size_t>(t.dl.ndim);
  std::copy_n(t.dl.shape, n, shape);
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t bytes = t.dl.strides[k] * from;
    const bool last = k + 1 == n;
    if (from != to && (last ? t.dl.strides[k] != 1 && t.dl.shape[k] > 1 : bytes % to != 0))
      return malformed("a view as " + std::string(dlbridge::info(dtype).name) + " needs a dense last axis. Copy first");
    strides[k] = from == to ? t.dl.strides[k] : last ? 1 : bytes / to;
  }
  if (from != to) {
    if (n == 0 || shape[n - 1] * from % to != 0)
      return malformed("the last axis of shape " + core::shape_text(core::shape_of(t)) + " has no whole number of " +
                       std::string(dlbridge::info(dtype).name) + " elements");
    shape[n - 1] = shape[n - 1] * from / to;
  }
  DLBRIDGE_TRY(core::make_view(t, {shape, n}, {strides, n}, 0, out));
  out.set_dtype(dlbridge::info(dtype));
  if (!core::is_loadable(out))
    return malformed("the view would lie at no multiple of its itemsize, which a GPU cannot load. Copy first");
  return {};
}

PyObject* view(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<1> a;
  std::optional<DType> dtype;
  if (!a.parse("view()", {"dtype"}, 0, 1, args, nargs, kwnames) || !parse_dtype(a[0], "view()", dtype)) return nullptr;
  const Tensor& t = tensor_of(self);
  NewArray out;
  if (!out) return nullptr;
  return finish("view()", reinterpret(t, dtype.value_or(core::dtype_of(t)), out.tensor()), out);
}

PyObject* fill(PyObject* self, PyObject* value) noexcept {
  try {
    core::Input input;
    if (!need_operand(value, "fill()", input)) return nullptr;
    if (input.array == nullptr && input.scalar.kind != core::ScalarKind::kInt) input.scalar.strong = true;
    if (!succeeded("fill()", core::assign(tensor_of(self), input, "fill()"))) return nullptr;
    Py_RETURN_NONE;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* item(PyObject* self, PyObject* const* args, Py_ssize_t nargs) noexcept {
  const Tensor& t = tensor_of(self);
  if (nargs == 0 && t.size == 1) return element_to_python(t);
  if (nargs == 0) {
    raise("ndarray.item()", ErrorCode::kMalformed,
          "the array has " + std::to_string(t.size) + " elements; give the index of one");
    return nullptr;
  }
  Ref key;
  if (nargs == 1 && PyTuple_Check(args[0])) {
    key = Ref::borrow(args[0]);
  } else if (nargs == 1 && t.dl.ndim != 1) {  // a position in C order
    const Py_ssize_t position = PyNumber_AsSsize_t(args[0], PyExc_IndexError);
    if (position == -1 && PyErr_Occurred() != nullptr) return nullptr;
    std::int64_t rest = position < 0 ? position + t.size : position;
    if (rest < 0 || rest >= t.size) {
      raise("ndarray.item()", ErrorCode::kIndex, "index " + std::to_string(position) + " is out of bounds for size " +
                                                     std::to_string(t.size));
      return nullptr;
    }
    key = Ref(PyTuple_New(t.dl.ndim));
    for (int k = t.dl.ndim - 1; k >= 0 && key; --k) {
      PyTuple_SET_ITEM(key.get(), k, PyLong_FromLongLong(rest % t.dl.shape[k]));
      rest /= t.dl.shape[k];
    }
  } else {
    key = Ref(PyTuple_New(nargs));
    for (Py_ssize_t k = 0; k < nargs && key; ++k) PyTuple_SET_ITEM(key.get(), k, Ref::borrow(args[k]).release());
  }
  const Ref element(key ? PyObject_GetItem(self, key.get()) : nullptr);
  if (!element) return nullptr;
  if (!is_array(element.get()) || tensor_of(element.get()).size != 1) {
    raise("ndarray.item()", ErrorCode::kMalformed, "the index does not name one element");
    return nullptr;
  }
  return element_to_python(tensor_of(element.get()));
}

// --- reductions -------------------------------------------------------------------------------------------------------

template <core::ReduceOp kOp>
PyObject* reduce(PyObject* self, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  constexpr const char* kName = core::info(kOp).name.data();
  constexpr bool kSpread = kOp == core::ReduceOp::kVar || kOp == core::ReduceOp::kStd;
  const Tensor& t = tensor_of(self);
  Arguments<6> a;
  core::ReduceOptions options;
  std::uint64_t axes = 0;
  if (!a.parse(kName, {"axis", "dtype", "out", "keepdims", "correction", "ddof"}, 0, 4, args, nargs, kwnames) ||
      !parse_axes(a[0], t.dl.ndim, kName, axes) || !parse_dtype(a[1], kName, options.dtype) ||
      !parse_flag(a[3], false, options.keepdims))
    return nullptr;
  if (a[2] != nullptr && !need_array(a[2], kName, options.out)) return nullptr;
  if (PyObject* correction = a[4] != nullptr ? a[4] : a[5]; correction != nullptr) {
    if (!kSpread) {
      PyErr_Format(PyExc_TypeError, "%s() takes no correction", kName);
      return nullptr;
    }
    options.correction = PyFloat_AsDouble(correction);
    if (options.correction == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  NewArray out;
  if (!out) return nullptr;
  const Status status = core::reduce(kOp, t, axes, options, out.tensor());
  if (options.out == nullptr) return finish(kName, status, out);
  return succeeded(kName, status) ? Ref::borrow(a[2]).release() : nullptr;
}

#define DLBRIDGE_ND_METHOD(function) as_c_function(guarded<function>), METH_FASTCALL | METH_KEYWORDS
#define DLBRIDGE_ND_REDUCTION(id, name, text)                                                       \
  {name, DLBRIDGE_ND_METHOD(reduce<core::ReduceOp::id>),                                            \
   name "($self, axis=None, dtype=None, out=None, keepdims=False)\n--\n\n" text                     \
   "\n\naxis: an int or a tuple of ints; None: all. Returns an array, of no axes where all were reduced."}

}  // namespace

PyMethodDef array_methods[] = {
    {"reshape", DLBRIDGE_ND_METHOD(reshape),
     "reshape($self, /, *shape, order='C', copy=None)\n--\n\nThe elements in another shape: a view where the strides allow "
     "it. One extent may be -1."},
    {"transpose", DLBRIDGE_ND_METHOD(transpose), "transpose($self, /, *axes)\n--\n\nA view with the axes permuted."},
    {"astype", DLBRIDGE_ND_METHOD(astype),
     "astype($self, /, dtype, order='K', casting='unsafe', subok=True, copy=True)\n--\n\nA copy cast to a dtype, as C "
     "casts."},
    {"copy", DLBRIDGE_ND_METHOD(copy), "copy($self, /, order='C')\n--\n\nA dense copy."},
    {"ravel", DLBRIDGE_ND_METHOD(ravel), "ravel($self, /, order='C')\n--\n\nThe elements on one axis, a view if possible."},
    {"flatten", DLBRIDGE_ND_METHOD(flatten), "flatten($self, /, order='C')\n--\n\nA copy of the elements on one axis."},
    {"squeeze", DLBRIDGE_ND_METHOD(squeeze), "squeeze($self, /, axis=None)\n--\n\nA view without axes of extent 1."},
    {"swapaxes", DLBRIDGE_ND_METHOD(swapaxes), "swapaxes($self, /, axis1, axis2)\n--\n\nA view with two axes exchanged."},
    {"view", DLBRIDGE_ND_METHOD(view), "view($self, /, dtype=None)\n--\n\nThe same memory, as another dtype."},
    {"fill", fill, METH_O, "fill($self, value, /)\n--\n\nSets every element to a scalar."},
    {"item", as_c_function(item), METH_FASTCALL, "item($self, /, *index)\n--\n\nOne element as a Python scalar; waits for "
     "the device."},
    DLBRIDGE_ND_REDUCTION(kSum, "sum", "Sum; integers and bool in 64 bits."),
    DLBRIDGE_ND_REDUCTION(kProd, "prod", "Product; integers and bool in 64 bits."),
    DLBRIDGE_ND_REDUCTION(kMax, "max", "Maximum; NaN where there is one."),
    DLBRIDGE_ND_REDUCTION(kMin, "min", "Minimum; NaN where there is one."),
    DLBRIDGE_ND_REDUCTION(kAny, "any", "Whether any element is true."),
    DLBRIDGE_ND_REDUCTION(kAll, "all", "Whether all elements are true."),
    DLBRIDGE_ND_REDUCTION(kMean, "mean", "Arithmetic mean; integers in float64."),
    DLBRIDGE_ND_REDUCTION(kVar, "var", "Variance, divided by n - correction (ddof)."),
    DLBRIDGE_ND_REDUCTION(kStd, "std", "Standard deviation: the root of var()."),
    DLBRIDGE_ND_REDUCTION(kArgmax, "argmax", "Position of the first maximum, in C order of the reduced axes."),
    DLBRIDGE_ND_REDUCTION(kArgmin, "argmin", "Position of the first minimum, in C order of the reduced axes."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dlbridge::py::nd
