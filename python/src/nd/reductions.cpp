// Reductions, scans and sorts: as methods of nd.ndarray, and by name for dlbridge/nd/*.py.
#include "ndarray/core/reduction.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlbridge/validate.h"
#include "ndarray/core/runs.h"
#include "ndarray/core/sorting.h"
#include "ndarray/core/views.h"
#include "protocols/common/array_arguments.h"
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

namespace dlbridge::py::nd {

namespace {

// --- methods of ndarray --------------------------------------------------------------------------------------------

constexpr char kReduction[] =
    "reduction($self, axis=None, dtype=None, out=None, keepdims=False, *, correction=0, ddof=0)";
template <core::ReduceOp kOp>
inline constexpr const char* kReductionName = core::info(kOp).name.data();

template <core::ReduceOp kOp>
PyObject* method_of(PyObject* self, const Call& a) {
  constexpr bool kSpread = kOp == core::ReduceOp::kVar || kOp == core::ReduceOp::kStd;
  const Tensor& t = tensor_of(self);
  const std::uint64_t axes = a.axes(0, t.dl.ndim);
  core::ReduceOptions options;
  options.dtype = a.dtype(1);
  options.keepdims = a.flag(3, false);
  options.out = a.optional_array(2);
  if (a[4] != nullptr || a[5] != nullptr) {
    if (!kSpread) throw_error(PyExc_TypeError, "%s() takes no correction", a.operation());
    options.correction = a.number(a[4] != nullptr ? 4 : 5, 0);
  }
  if (options.out == nullptr)
    return make_result(a.operation(), [&](Tensor& out) { return core::reduce(kOp, t, axes, options, out); });
  Tensor unused;
  throw_if_bad(core::reduce(kOp, t, axes, options, unused), a.operation());
  return Ref::borrow(a[2]).release();
}

template <core::ReduceOp kOp>
PyMethodDef reduction(const char* text) {
  static const std::string doc =
      std::string(kReductionName<kOp>) + "($self, axis=None, dtype=None, out=None, keepdims=False)\n--\n\n" + text +
      "\n\naxis: an int or a tuple of ints; None: all. Returns an array, of no axes where all were reduced.";
  PyMethodDef row = method<kReduction, method_of<kOp>, kReductionName<kOp>>();
  row.ml_name = kReductionName<kOp>;
  row.ml_doc = doc.c_str();
  return row;
}

// --- functions -------------------------------------------------------------------------------------------------------

constexpr char kReduce[] =
    "reduce($module, name, x, axis=None, dtype=None, keepdims=False, out=None, correction=0.0)\n--\n\n"
    "A reduction by name.";
PyObject* reduce(PyObject*, const Call& a) {
  const char* text = a.text(0);
  const auto found = std::ranges::find(core::kReduceOps, text, [](const auto& row) { return row.name; });
  if (found == core::kReduceOps.end()) throw_error(PyExc_ValueError, "reduce(): unknown operation '%s'", text);
  const Tensor& x = a.array(1);
  const Call named = a.renamed(found->name.data());
  core::ReduceOptions options;
  const std::uint64_t axes = named.axes(2, x.dl.ndim);
  options.dtype = named.dtype(3);
  options.keepdims = named.flag(4, false);
  options.out = named.optional_array(5);
  options.correction = named.number(6, options.correction);
  const auto op = static_cast<core::ReduceOp>(found - core::kReduceOps.begin());
  const auto run = [&](Tensor& out) { return core::reduce(op, x, axes, options, out); };
  if (options.out == nullptr) return make_result(named.operation(), run);
  Tensor unused;
  throw_if_bad(run(unused), named.operation());
  return Ref::borrow(a[5]).release();
}

constexpr char kScan[] = "scan($module, name, x, axis, dtype=None)\n--\n\nCumulative 'sum' or 'prod'.";
PyObject* scan(PyObject*, const Call& a) {
  const Tensor& x = a.array(1);
  const int axis = a.axis(2, x.dl.ndim);
  const std::optional<DType> dtype = a.dtype(3);
  const bool product = PyUnicode_CompareWithASCIIString(a.given(0), "prod") == 0;
  if (!product && PyUnicode_CompareWithASCIIString(a.given(0), "sum") != 0)
    throw_error(PyExc_ValueError, "scan(): the name must be 'sum' or 'prod', got %R", a.given(0));
  return make_result(a.operation(), [&](Tensor& out) {
    return core::scan(product ? core::ScanOp::kProd : core::ScanOp::kSum, x, axis, dtype, out);
  });
}

constexpr char kSort[] =
    "sort($module, x, axis=-1, descending=False, stable=True, places=None)\n--\n\nA sorted copy; NaN last.";
constexpr char kArgsort[] = "argsort($module, x, axis=-1, descending=False, stable=True, places=None)\n--\n\n"
                            "The positions that sort, int64.";
constexpr char kSortName[] = "sort()";
constexpr char kSortInPlace[] =
    "sort_in_place($module, x, axis=-1, descending=False, stable=True, places=None)\n--\n\nSorts x itself.";

int axis_or_last(const Call& a, std::size_t i, int ndim) {
  if (a[i] != nullptr) return a.axis(i, ndim);
  return ndim > 0 ? ndim - 1 : parse_axis(owned(PyLong_FromLong(-1)).get(), 0, a.operation());
}

// NumPy's names of ways to sort, and whether equal elements keep their order.
constexpr std::pair<std::string_view, bool> kSortKinds[] = {
    {"stable", true}, {"mergesort", true}, {"quicksort", false}, {"heapsort", false}};
bool keeps_order(PyObject* kind, const char* operation) {
  if (kind == nullptr) return false;
  const char* const name = PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : "";
  checked(name != nullptr);
  const auto* const found = std::ranges::find(kSortKinds, name, &std::pair<std::string_view, bool>::first);
  if (found == std::end(kSortKinds))
    throw_error(PyExc_ValueError, "%s: kind %R is unknown; give 'stable' or leave it out", operation, kind);
  return found->second;
}

constexpr char kKeepsOrder[] = "keeps_order($module, operation, kind=None)\n--\n\n"
                               "Whether that kind of sort keeps the order of equal elements; ValueError for an "
                               "unknown one.";
PyObject* keeps_order_of(PyObject*, const Call& a) { return PyBool_FromLong(keeps_order(a[1], a.text(0)) ? 1 : 0); }

constexpr char kSortMethod[] =
    "sort($self, /, axis=-1, kind=None, *, stable=None)\n--\n\nSorts along an axis in place; nd.sort() gives a copy.";
PyObject* sort_method(PyObject* self, const Call& a) {
  const Tensor& x = tensor_of(self);
  core::SortOptions options;
  options.stable = keeps_order(a[1], a.operation()) || a.flag(2, false);
  const int axis = axis_or_last(a, 0, x.dl.ndim);
  const CriticalSection of_target(self);
  throw_if_bad(core::sort_in_place(x, axis, options), a.operation());
  return Ref::borrow(Py_None).release();
}

constexpr char kArgsortMethod[] =
    "argsort($self, /, axis=-1, kind=None, *, descending=False, stable=True)\n--\n\n"
    "The positions, as int64, in the order in which nd.sort() takes the elements; axis=None: of the flattened array.";
PyObject* argsort_method(PyObject* self, const Call& a) {
  keeps_order(a[1], a.operation());  // of any known kind it does
  core::SortOptions options;
  options.descending = a.flag(2, false);
  const Tensor* x = &tensor_of(self);
  Tensor flat;
  const bool flattens = a.given(0) == Py_None;
  if (flattens || x->dl.ndim == 0) {  // of one axis, as NumPy has it
    throw_if_bad(core::flatten(*x, core::CopyOrder::kC, false, flat), a.operation());
    x = &flat;
  }
  const int axis = axis_or_last(a, 0, x->dl.ndim);
  return make_result(a.operation(), [&](Tensor& out) { return core::argsort(*x, axis, options, out); });
}

template <class Run>
PyObject* sort_by(const Call& a, Run run) {
  const Tensor& x = a.array(0);
  core::SortOptions options;
  options.descending = a.flag(2, false);
  options.stable = a.flag(3, true);
  const int axis = axis_or_last(a, 1, x.dl.ndim);
  const Shape places = a[4] != nullptr ? a.shape(4) : Shape{};
  for (int i = 0; i < places.ndim; ++i)
    if (places.dims[i] < (i > 0 ? places.dims[i - 1] + 1 : 0) || places.dims[i] >= x.dl.shape[axis])
      throw_issue(a.operation(), ErrorCode::kMalformed, "needs increasing places within the axis");
  options.places = {places.dims, static_cast<std::size_t>(places.ndim)};
  return run(x, axis, options);
}

template <auto kRun>
PyObject* sort(PyObject*, const Call& a) {
  return sort_by(a, [&](const Tensor& x, int axis, const core::SortOptions& options) {
    return make_result(a.operation(), [&](Tensor& out) { return kRun(x, axis, options, out); });
  });
}

PyObject* sort_in_place(PyObject*, const Call& a) {
  return sort_by(a, [&](const Tensor& x, int axis, const core::SortOptions& options) {
    const CriticalSection of_target(a.given(0));
    throw_if_bad(core::sort_in_place(x, axis, options), a.operation());
    return Ref::borrow(Py_None).release();
  });
}

constexpr char kUnique[] = "unique()";
constexpr char kFindRuns[] =
    "find_runs($module, sorted, order=None, equal_nan=True, first=False, lengths=False, inverse=False)\n--\n\n"
    "(values, first, lengths, inverse) of the runs of equal elements of a sorted vector; None what is not wanted.\n\n"
    "order: where each element stood before; first and inverse are of that.";
PyObject* find_runs(PyObject*, const Call& a) {
  const Tensor& sorted = a.array(0);
  core::RunOptions options;
  options.order = a.optional_array(1);
  options.equal_nan = a.flag(2, true);
  options.first = a.flag(3, false);
  options.lengths = a.flag(4, false);
  options.inverse = a.flag(5, false);
  const auto dense = [](const Tensor& x) { return x.dl.ndim == 1 && core::is_c_contiguous(x) && is_aligned(x); };
  const Tensor* order = options.order;
  if (!dense(sorted) ||
      (order != nullptr && !(dense(*order) && order->size == sorted.size && core::dtype_of(*order) == DType::kInt64 &&
                             same_device(sorted.dl.device, order->dl.device))))
    throw_issue(a.operation(), ErrorCode::kMalformed,
                "needs a dense vector, and int64 positions of as many elements on its device, got " +
                    core::describe(sorted) + (order == nullptr ? "" : " and " + core::describe(*order)));
  core::Runs runs;
  throw_if_bad(core::find_runs(sorted, options, runs), a.operation());
  Tensor* const parts[] = {&runs.values, options.first ? &runs.first : nullptr,
                           options.lengths ? &runs.lengths : nullptr, options.inverse ? &runs.inverse : nullptr};
  Ref tuple = owned(PyTuple_New(std::size(parts)));
  for (std::size_t k = 0; k < std::size(parts); ++k) {
    const auto move = [&](Tensor& out) {
      out = std::move(*parts[k]);
      return Status{};
    };
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k),
                     parts[k] != nullptr ? make_result(a.operation(), move) : Ref::borrow(Py_None).release());
  }
  return tuple.release();
}

constexpr char kLexsort[] = "lexsort($module, keys, axis)\n--\n\n"
                            "The positions that sort by vectors of one length, the last one first in importance; "
                            "None for others.";
PyObject* lexsort(PyObject*, const Call& a) {
  const Ref items = fixed_items(a.given(0));
  checked(items.get());
  std::vector<const Tensor*> keys(static_cast<std::size_t>(PyTuple_GET_SIZE(items.get())));
  for (std::size_t k = 0; k < keys.size(); ++k) {
    keys[k] = &need_array(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(k)), a.operation());
    if (keys[k]->dl.ndim != 1 || keys[k]->size != keys[0]->size) Py_RETURN_NONE;
  }
  a.axis(1, 1);
  return make_result(a.operation(), [&](Tensor& out) { return core::lexsort(keys, out); });
}

}  // namespace

std::vector<PyMethodDef> reduction_methods() {
  std::vector<PyMethodDef> out;
#define DLBRIDGE_ND_ROW(id, name, dtypes, doc) \
  if constexpr (sizeof doc > 1) out.push_back(reduction<core::ReduceOp::id>(doc));
  DLBRIDGE_ND_REDUCE_OPS(DLBRIDGE_ND_ROW)
#undef DLBRIDGE_ND_ROW
  out.push_back(method<kSortMethod, sort_method>());
  out.push_back(method<kArgsortMethod, argsort_method>());
  return out;
}

void init_reductions(PyObject* module) {
  add_functions(module, {method<kReduce, reduce>(), method<kScan, scan>(), method<kSort, sort<core::sort>>(),
                         method<kArgsort, sort<core::argsort>>(), method<kSortInPlace, sort_in_place, kSortName>(),
                         method<kLexsort, lexsort>(), method<kFindRuns, find_runs, kUnique>(),
                         method<kKeepsOrder, keeps_order_of>()});
}

}  // namespace dlbridge::py::nd
