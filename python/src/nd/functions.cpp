// Functions over arrays that dlbridge/nd/*.py builds on: joins of Python's arguments and the core's calls.
#include <algorithm>
#include <string>
#include <vector>

#include "ndarray/core/indexing.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/linear.h"
#include "ndarray/core/move.h"
#include "ndarray/core/reduction.h"
#include "ndarray/kernels/random/philox.h"
#include "python/src/bridge.h"
#include "python/src/nd/array_type.h"
#include "python/src/nd/keywords.h"

namespace dlbridge::py::nd {

namespace {

using Args = PyObject* const*;

template <class Info, std::size_t kRows>
bool find_row(const std::array<Info, kRows>& table, PyObject* name, const char* operation, std::size_t& row) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return false;
  for (row = 0; row < kRows; ++row)
    if (table[row].name == text) return true;
  PyErr_Format(PyExc_ValueError, "%s: unknown operation '%s'", operation, text);
  return false;
}

PyObject* reduce(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<7> a;
  const Tensor* x = nullptr;
  core::ReduceOptions options;
  std::size_t row = 0;
  std::uint64_t axes = 0;
  if (!a.parse("reduce()", {"name", "x", "axis", "dtype", "keepdims", "out", "correction"}, 2, 7, args, nargs, kwnames) ||
      !find_row(core::kReduceOps, a.values[0], "reduce()", row) || !need_array(a.values[1], "reduce()", x))
    return nullptr;
  const char* name = core::kReduceOps[row].name.data();
  if (!parse_axes(a[2], x->dl.ndim, name, axes) || !parse_dtype(a[3], name, options.dtype) ||
      !parse_flag(a[4], false, options.keepdims) || (a[5] != nullptr && !need_array(a[5], name, options.out)))
    return nullptr;
  if (a[6] != nullptr) options.correction = PyFloat_AsDouble(a[6]);
  if (options.correction == -1 && PyErr_Occurred() != nullptr) return nullptr;
  NewArray out;
  if (!out) return nullptr;
  const Status status = core::reduce(static_cast<core::ReduceOp>(row), *x, axes, options, out.tensor());
  if (options.out == nullptr) return finish(name, status, out);
  return succeeded(name, status) ? Ref::borrow(a[5]).release() : nullptr;
}

PyObject* scan(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<4> a;
  const Tensor* x = nullptr;
  std::optional<DType> dtype;
  int axis = 0;
  if (!a.parse("scan()", {"name", "x", "axis", "dtype"}, 3, 4, args, nargs, kwnames) ||
      !need_array(a.values[1], "scan()", x) || !parse_axis(a.values[2], x->dl.ndim, "scan()", axis) ||
      !parse_dtype(a[3], "scan()", dtype))
    return nullptr;
  const bool product = PyUnicode_CompareWithASCIIString(a.values[0], "prod") == 0;
  if (!product && PyUnicode_CompareWithASCIIString(a.values[0], "sum") != 0)
    return PyErr_Format(PyExc_ValueError, "scan(): the name must be 'sum' or 'prod', got %R", a.values[0]);
  NewArray out;
  if (!out) return nullptr;
  return finish("scan()", core::scan(product ? core::ScanOp::kProd : core::ScanOp::kSum, *x, axis, dtype, out.tensor()), out);
}

template <bool kIndices>
PyObject* sort(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  constexpr const char* kName = kIndices ? "argsort()" : "sort()";
  Arguments<4> a;
  const Tensor* x = nullptr;
  core::SortOptions options;
  int axis = -1;
  if (!a.parse(kName, {"x", "axis", "descending", "stable"}, 1, 4, args, nargs, kwnames) ||
      !need_array(a.values[0], kName, x) || !parse_flag(a[2], false, options.descending) ||
      !parse_flag(a[3], true, options.stable))
    return nullptr;
  const Ref last(PyLong_FromLong(-1));
  if (!parse_axis(a[1] != nullptr ? a[1] : last.get(), x->dl.ndim, kName, axis)) return nullptr;
  NewArray out;
  if (!out) return nullptr;
  const auto run = kIndices ? core::argsort : core::sort;
  return finish(kName, run(*x, axis, options, out.tensor()), out);
}

PyObject* take(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  const Tensor* x = nullptr;
  int axis = 0;
  if (!a.parse("take()", {"x", "indices", "axis"}, 2, 3, args, nargs, kwnames) || !need_array(a.values[0], "take()", x))
    return nullptr;
  Tensor flat;
  if (a[2] == nullptr) {
    const std::int64_t shape[1] = {x->size};
    bool viewed = false;
    Status status = core::reshape_view(*x, shape, core::Order::kC, flat, viewed);
    if (status.ok() && !viewed) status = core::copy_as(*x, core::dtype_of(*x), core::CopyOrder::kC, flat);
    if (status.ok() && !viewed) {
      Tensor dense = std::move(flat);
      status = core::reshape_view(dense, shape, core::Order::kC, flat, viewed);
    }
    if (!succeeded("take()", status)) return nullptr;
    x = &flat;
  } else if (!parse_axis(a[2], x->dl.ndim, "take()", axis)) {
    return nullptr;
  }
  const Ref indices(is_array(a.values[1]) ? Ref::borrow(a.values[1]).release()
                                          : to_array(a.values[1], std::nullopt, x->dl.device, std::nullopt));
  if (!indices) return nullptr;
  if (core::is_bool(core::dtype_of(tensor_of(indices.get())))) {
    raise("take()", ErrorCode::kIndex, "the indices are bool; take wants integers. Use x[mask] for a mask");
    return nullptr;
  }
  core::IndexItem items[kMaxDims];
  items[axis].kind = core::IndexItem::Kind::kArray;
  items[axis].array = &tensor_of(indices.get());
  NewArray out;
  if (!out) return nullptr;
  return finish("take()", core::gather_at(*x, {items, static_cast<std::size_t>(axis) + 1}, out.tensor()), out);
}

// index_add(x, (i0, i1, …), values): x[i0, i1, …] += values, duplicates counted.
PyObject* index_add(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  const Tensor* x = nullptr;
  core::Input value;
  if (!a.parse("index_add()", {"x", "indices", "values"}, 3, 3, args, nargs, kwnames) ||
      !need_array(a.values[0], "index_add()", x) || !need_operand(a.values[2], "index_add()", value))
    return nullptr;
  const Ref tuple(PySequence_Tuple(a.values[1]));
  if (!tuple) return nullptr;
  std::vector<core::IndexItem> items;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple.get()); ++k) {
    const Tensor* index = nullptr;
    if (!need_array(PyTuple_GET_ITEM(tuple.get(), k), "index_add()", index)) return nullptr;
    core::IndexItem item;
    item.kind = core::IndexItem::Kind::kArray;
    item.array = index;
    items.push_back(item);
  }
  if (!succeeded("index_add()", core::assign_at(*x, items, value, true))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* nonzero(PyObject*, PyObject* object) noexcept {
  try {
    const Tensor* x = nullptr;
    if (!need_array(object, "nonzero()", x)) return nullptr;
    if (x->dl.ndim == 0) {
      raise("nonzero()", ErrorCode::kMalformed, "the array has no axes. Use x.reshape(1)");
      return nullptr;
    }
    std::vector<Tensor> coordinates(static_cast<std::size_t>(x->dl.ndim));
    if (!succeeded("nonzero()", core::nonzero(*x, coordinates))) return nullptr;
    Ref tuple(PyTuple_New(x->dl.ndim));
    for (std::size_t k = 0; tuple && k < coordinates.size(); ++k) {
      NewArray out;
      if (!out) return nullptr;
      out.tensor() = std::move(coordinates[k]);
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), out.commit());
    }
    return tuple.release();
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* searchsorted_flat(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  const Tensor *sorted = nullptr, *values = nullptr;
  bool right = false;
  if (!a.parse("searchsorted()", {"sorted", "values", "right"}, 2, 3, args, nargs, kwnames) ||
      !need_array(a.values[0], "searchsorted()", sorted) || !need_array(a.values[1], "searchsorted()", values) ||
      !parse_flag(a[2], false, right))
    return nullptr;
  if (sorted->dl.ndim != 1 || core::dtype_of(*sorted) != core::dtype_of(*values) ||
      !same_device(sorted->dl.device, values->dl.device)) {
    raise("searchsorted()", ErrorCode::kMalformed, "needs a sorted 1-D array and values of one dtype and device, got " +
                                                       core::describe(*sorted) + " and " + core::describe(*values));
    return nullptr;
  }
  NewArray out;
  if (!out) return nullptr;
  return finish("searchsorted()", core::searchsorted(*sorted, *values, right, out.tensor()), out);
}

PyObject* matmul(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  const Tensor *x = nullptr, *y = nullptr, *target = nullptr;
  if (!a.parse("matmul()", {"x1", "x2", "out"}, 2, 3, args, nargs, kwnames) || !need_array(a.values[0], "matmul()", x) ||
      !need_array(a.values[1], "matmul()", y) || (a[2] != nullptr && !need_array(a[2], "matmul()", target)))
    return nullptr;
  NewArray out;
  if (!out) return nullptr;
  Status status = core::matmul(*x, *y, out.tensor());
  if (target == nullptr) return finish("matmul()", status, out);
  if (status.ok() && !std::ranges::equal(core::shape_of(*target), core::shape_of(out.tensor())))
    status = malformed("the output has shape " + core::shape_text(core::shape_of(*target)) + ", the result " +
                       core::shape_text(core::shape_of(out.tensor())));
  if (status.ok()) status = core::assign(*target, core::Input{&out.tensor(), {}}, "matmul()");
  return succeeded("matmul()", status) ? Ref::borrow(a[2]).release() : nullptr;
}

PyObject* as_strided(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<5> a;
  const Tensor* x = nullptr;
  Shape shape, strides;
  std::optional<DType> dtype;
  if (!a.parse("as_strided()", {"x", "shape", "strides", "offset", "dtype"}, 3, 5, args, nargs, kwnames) ||
      !need_array(a.values[0], "as_strided()", x) || !parse_shape(a.values[1], "as_strided()", shape) ||
      !parse_shape(a.values[2], "as_strided()", strides) || !parse_dtype(a[4], "as_strided()", dtype))
    return nullptr;
  const Py_ssize_t offset = a[3] == nullptr ? 0 : PyNumber_AsSsize_t(a[3], PyExc_OverflowError);
  if (offset == -1 && PyErr_Occurred() != nullptr) return nullptr;
  const DType wanted = dtype.value_or(core::dtype_of(*x));
  const std::int64_t item = core::itemsize(wanted);
  NewArray out;
  if (!out) return nullptr;
  Status status;
  if (shape.ndim != strides.ndim) status = malformed("shape and strides have different lengths");
  for (int k = 0; k < strides.ndim && status.ok(); ++k) {
    if (strides.dims[k] % item != 0) status = malformed("the strides must be whole elements");
    strides.dims[k] /= item;
  }
  std::int64_t size = 0;
  if (status.ok()) status = core::count_elements(shape.get(), item, size);
  if (status.ok()) status = core::make_view(*x, shape.get(), strides.get(), 0, out.tensor());
  if (status.ok()) {
    out.tensor().set_dtype(dlbridge::info(wanted));
    if (size != 0) out.tensor().dl.data = static_cast<char*>(x->dl.data) + offset;
    if (!core::is_loadable(out.tensor()))
      status = malformed("the view would lie at no multiple of its itemsize, which a GPU cannot load");
    const core::ByteRange made = core::byte_range(out.tensor());
    const core::Storage* storage = core::storage_of(*x);
    const auto base = reinterpret_cast<std::uintptr_t>(storage->data);
    const std::uintptr_t end = base + storage->bytes;
    const core::ByteRange own = core::byte_range(*x);  // foreign storages begin at their first element
    if (size != 0 && (made.first < std::min(base, own.first) || made.last > std::max(end, own.last)))
      status = malformed("the view would leave the array's memory");
  }
  return finish("as_strided()", status, out);
}

PyObject* broadcast_to(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<2> a;
  const Tensor* x = nullptr;
  Shape shape;
  if (!a.parse("broadcast_to()", {"x", "shape"}, 2, 2, args, nargs, kwnames) ||
      !need_array(a.values[0], "broadcast_to()", x) || !parse_shape(a.values[1], "broadcast_to()", shape))
    return nullptr;
  NewArray out;
  if (!out) return nullptr;
  return finish("broadcast_to()", core::broadcast_view(*x, shape.get(), out.tensor()), out);
}

PyObject* copyto(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<2> a;
  const Tensor* target = nullptr;
  core::Input source;
  if (!a.parse("copyto()", {"dst", "src"}, 2, 2, args, nargs, kwnames) ||
      !need_array(a.values[0], "copyto()", target) || !need_operand(a.values[1], "copyto()", source))
    return nullptr;
  if (target->readonly()) {
    raise("copyto()", ErrorCode::kMalformed, "the output array is read-only");
    return nullptr;
  }
  if (source.array == nullptr) source.scalar.strong = true;
  Tensor moved;
  if (source.array != nullptr && !same_device(source.array->dl.device, target->dl.device)) {
    bool copied = false;
    if (!succeeded("copyto()", core::copy_alike(*source.array, *target, copied))) return nullptr;
    if (copied) Py_RETURN_NONE;
    if (!succeeded("copyto()", core::copy_to(*source.array, target->dl.device, moved))) return nullptr;
    source.array = &moved;
  }
  if (!succeeded("copyto()", core::assign(*target, source, "copyto()"))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* result_type(PyObject*, Args args, Py_ssize_t nargs) noexcept {
  if (nargs == 0) {
    PyErr_SetString(PyExc_ValueError, "result_type() needs at least one array or dtype");
    return nullptr;
  }
  try {
    std::vector<core::Input> inputs(static_cast<std::size_t>(nargs));
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool plain = PyFloat_Check(args[k]) || PyLong_Check(args[k]) || PyComplex_Check(args[k]) || is_array(args[k]);
      if (plain) {
        if (parse_operand(args[k], inputs[k]) != Parsed::kYes) return nullptr;
        continue;
      }
      std::optional<DType> dtype;
      if (!parse_dtype(args[k], "result_type()", dtype)) return nullptr;
      inputs[k].scalar.strong = true;
      inputs[k].scalar.dtype = dtype.value_or(core::kDefaultFloat);
    }
    return make_dtype(to_dl(core::result_type(inputs)));
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* can_cast(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<3> a;
  std::optional<DType> from, to;
  if (!a.parse("can_cast()", {"from_", "to", "casting"}, 2, 3, args, nargs, kwnames)) return nullptr;
  if (is_array(a.values[0])) from = core::dtype_of(tensor_of(a.values[0]));
  else if (!parse_dtype(a.values[0], "can_cast()", from)) return nullptr;
  if (!parse_dtype(a.values[1], "can_cast()", to)) return nullptr;
  const DType source = from.value_or(core::kDefaultFloat), target = to.value_or(core::kDefaultFloat);
  const char* casting = a[2] == nullptr ? "safe" : PyUnicode_AsUTF8(a[2]);
  if (casting == nullptr) return nullptr;
  const std::string_view how(casting);
  if (how == "unsafe") Py_RETURN_TRUE;
  if (how == "no" || how == "equiv") return PyBool_FromLong(source == target);
  if (how == "safe") return PyBool_FromLong(core::can_cast_safely(source, target));
  if (how == "same_kind") return PyBool_FromLong(core::can_cast_same_kind(source, target));
  return PyErr_Format(PyExc_ValueError, "can_cast(): casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got '%s'",
                      casting);
}

PyObject* shares_memory(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<2> a;
  const Tensor *x = nullptr, *y = nullptr;
  if (!a.parse("shares_memory()", {"a", "b"}, 2, 2, args, nargs, kwnames) ||
      !need_array(a.values[0], "shares_memory()", x) || !need_array(a.values[1], "shares_memory()", y))
    return nullptr;
  return PyBool_FromLong(same_device(x->dl.device, y->dl.device) && core::may_overlap(*x, *y));
}

// --- fills: the output is dense and ours ------------------------------------------------------------------------------

bool need_dense(PyObject* object, const char* operation, const Tensor*& out) {
  if (!need_array(object, operation, out)) return false;
  if (core::is_c_contiguous(*out) && !out->readonly()) return true;
  raise(operation, ErrorCode::kMalformed, "the output must be dense in C order and writable");
  return false;
}

template <class KernelArgs>
Status fill(const Tensor& out, KernelArgs& args, int (*core::Backend::*kernel)(const KernelArgs&), const char* name) {
  core::KernelCall call(out.dl.device);
  DLBRIDGE_TRY(call.begin({&out}));
  args.stream = call.stream();
  return call.end((call.backend().*kernel)(args), name);
}

// range_fill(out, start, step, stop=None): start + i * step; the last element is stop where that is given (linspace).
PyObject* range_fill(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  Arguments<4> a;
  const Tensor* out = nullptr;
  if (!a.parse("range_fill()", {"out", "start", "step", "stop"}, 3, 4, args, nargs, kwnames) ||
      !need_dense(a.values[0], "range_fill()", out))
    return nullptr;
  core::Input start, step, stop;
  if (!need_operand(a.values[1], "range_fill()", start) || !need_operand(a.values[2], "range_fill()", step) ||
      (a[3] != nullptr && !need_operand(a[3], "range_fill()", stop)))
    return nullptr;
  if (out->size == 0) Py_RETURN_NONE;
  core::RangeArgs range{};
  range.dtype = core::dtype_of(*out);
  range.n = out->size;
  range.out = out->dl.data;
  range.start = start.scalar.re;
  range.step = step.scalar.re;
  range.stop = stop.scalar.re;
  const auto integer_of = [](const core::Scalar& s) {
    return s.kind <= core::ScalarKind::kInt ? s.i : static_cast<std::int64_t>(s.re);
  };
  range.int_start = integer_of(start.scalar);
  range.int_step = integer_of(step.scalar);
  range.endpoint = a[3] != nullptr;
  if (!succeeded("range_fill()", fill(*out, range, &core::Backend::range, "range_fill()"))) return nullptr;
  Py_RETURN_NONE;
}

// random_fill(out, kind, seed, offset, a=0., b=1., low=0, range=0) -> counters used
PyObject* random_fill(PyObject*, Args args, Py_ssize_t nargs, PyObject* kwnames) {
  constexpr const char* kNames[] = {"uniform", "normal", "integer", "exponential"};
  Arguments<8> v;
  const Tensor* out = nullptr;
  if (!v.parse("random_fill()", {"out", "kind", "seed", "offset", "a", "b", "int_low", "int_range"}, 4, 8, args, nargs,
               kwnames) ||
      !need_dense(v.values[0], "random_fill()", out))
    return nullptr;
  core::RandomArgs random{};
  int kind = 0;
  while (kind < 4 && PyUnicode_CompareWithASCIIString(v.values[1], kNames[kind]) != 0) ++kind;
  if (kind == 4) return PyErr_Format(PyExc_ValueError, "random_fill(): unknown kind %R", v.values[1]);
  random.distribution = static_cast<core::Distribution>(kind);
  random.dtype = core::dtype_of(*out);
  random.n = out->size;
  random.out = out->dl.data;
  random.seed = PyLong_AsUnsignedLongLongMask(v.values[2]);
  random.offset = PyLong_AsUnsignedLongLongMask(v.values[3]);
  random.a = v[4] == nullptr ? 0.0 : PyFloat_AsDouble(v[4]);
  random.b = v[5] == nullptr ? 1.0 : PyFloat_AsDouble(v[5]);
  random.int_low = v[6] == nullptr ? 0 : static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(v[6]));
  random.int_range = v[7] == nullptr ? 0 : PyLong_AsUnsignedLongLongMask(v[7]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (out->size != 0 &&
      !succeeded("random_fill()", fill(*out, random, &core::Backend::random, "random_fill()")))
    return nullptr;
  return PyLong_FromUnsignedLongLong(core::philox::counters_used(random.distribution, random.dtype, out->size));
}

#define DLBRIDGE_ND_FUNCTION(function) as_c_function(guarded<function>), METH_FASTCALL | METH_KEYWORDS

PyMethodDef functions[] = {
    {"reduce", DLBRIDGE_ND_FUNCTION(reduce),
     "reduce($module, name, x, axis=None, dtype=None, keepdims=False, out=None, correction=0.0)\n--\n\nA reduction by name."},
    {"scan", DLBRIDGE_ND_FUNCTION(scan), "scan($module, name, x, axis, dtype=None)\n--\n\nCumulative 'sum' or 'prod'."},
    {"sort", DLBRIDGE_ND_FUNCTION(sort<false>),
     "sort($module, x, axis=-1, descending=False, stable=True)\n--\n\nA sorted copy; NaN last."},
    {"argsort", DLBRIDGE_ND_FUNCTION(sort<true>),
     "argsort($module, x, axis=-1, descending=False, stable=True)\n--\n\nThe positions that sort, int64."},
    {"take", DLBRIDGE_ND_FUNCTION(take), "take($module, x, indices, axis=None)\n--\n\nElements or slices by integer index."},
    {"index_add", DLBRIDGE_ND_FUNCTION(index_add),
     "index_add($module, x, indices, values)\n--\n\nx[indices] += values, where duplicates all count."},
    {"nonzero", nonzero, METH_O, "nonzero($module, x, /)\n--\n\nThe coordinates of the elements that are not zero."},
    {"searchsorted_flat", DLBRIDGE_ND_FUNCTION(searchsorted_flat),
     "searchsorted_flat($module, sorted, values, right=False)\n--\n\nWhere values go into a sorted 1-D array."},
    {"matmul", DLBRIDGE_ND_FUNCTION(matmul), "matmul($module, x1, x2, out=None)\n--\n\nThe matrix product x1 @ x2."},
    {"as_strided", DLBRIDGE_ND_FUNCTION(as_strided),
     "as_strided($module, x, shape, strides, offset=0, dtype=None)\n--\n\nA view with strides and an offset in bytes."},
    {"broadcast_to", DLBRIDGE_ND_FUNCTION(broadcast_to), "broadcast_to($module, x, shape)\n--\n\nA read-only view."},
    {"copyto", DLBRIDGE_ND_FUNCTION(copyto), "copyto($module, dst, src)\n--\n\ndst[...] = src, across devices, too."},
    {"result_type", as_c_function(result_type), METH_FASTCALL,
     "result_type($module, /, *arrays_and_dtypes)\n--\n\nThe dtype that they promote to (NEP 50)."},
    {"can_cast", DLBRIDGE_ND_FUNCTION(can_cast), "can_cast($module, from_, to, casting='safe')\n--\n\nWhether a cast is allowed."},
    {"shares_memory", DLBRIDGE_ND_FUNCTION(shares_memory),
     "shares_memory($module, a, b)\n--\n\nWhether the address ranges of two arrays overlap."},
    {"range_fill", DLBRIDGE_ND_FUNCTION(range_fill),
     "range_fill($module, out, start, step, stop=None)\n--\n\nFills a dense array with start + i * step."},
    {"random_fill", DLBRIDGE_ND_FUNCTION(random_fill),
     "random_fill($module, out, kind, seed, offset, a=0.0, b=1.0, int_low=0, int_range=0)\n--\n\nFills a dense array "
     "with Philox numbers; returns the counters used."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_functions(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace dlbridge::py::nd
