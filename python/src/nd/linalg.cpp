// Linear algebra: of host arrays by the LAPACK that NumPy has loaded, of small matrices by a kernel.
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "ndarray/core/lapack.h"
#include "ndarray/core/small_matrices.h"

namespace dlbridge::py::nd {

namespace {

using core::LapackOp;
using core::MatrixOp;

template <class Op>
struct Name {
  std::string_view text;
  Op op;
};
constexpr Name<LapackOp> kNames[] = {
    {"det", LapackOp::kDet},
    {"slogdet", LapackOp::kSlogdet},
    {"inv", LapackOp::kInv},
    {"solve", LapackOp::kSolve},
    {"cholesky", LapackOp::kCholesky},
    {"eigh", LapackOp::kEigh},
    {"eigvalsh", LapackOp::kEigvalsh},
    {"eig", LapackOp::kEig},
    {"eigvals", LapackOp::kEigvals},
    {"lstsq", LapackOp::kLstsq},
    {"svdvals", LapackOp::kSvdvals},
    {"svd", LapackOp::kSvd},
    {"qr", LapackOp::kQr},
};

std::string_view text_of(PyObject* object) {
  const char* text = PyUnicode_AsUTF8(object);
  checked(text != nullptr);
  return text;
}

// Of the keywords that NumPy's functions have, those that say what is computed. False where it is not known here.
bool read_options(const Call& a, LapackOp& op, core::LapackOptions& options) {
  options.upper = a.given(3) != nullptr && text_of(a.given(3)) == "U";
  options.full = a.flag(4, true);
  options.rcond = a.number(8, 0.0);
  if (op == LapackOp::kSvd && !a.flag(5, true)) op = LapackOp::kSvdvals;
  if (op == LapackOp::kQr) {
    const std::string_view mode = a.given(7) == nullptr ? "reduced" : text_of(a.given(7));
    options.full = mode == "complete";
    if (mode == "r") op = LapackOp::kR;
    if (mode == "raw") return false;
  }
  return !a.flag(6, false);
}

PyObject* as_array(Tensor&& tensor) {
  NewArray made;
  made.tensor() = std::move(tensor);
  return made.commit();
}

PyObject* as_tuple(Tensor* tensors, int count) {
  Ref tuple = owned(PyTuple_New(count));
  for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, as_array(std::move(tensors[i])));
  return tuple.release();
}

PyObject* as_results(core::LapackCall& call, LapackOp op, const char* operation) {
  Tensor results[core::LapackCall::kMaxResults];
  throw_if_bad(call.finish(results), operation);
  const int count = core::LapackCall::count_results(op);
  return count == 1 ? as_array(std::move(results[0])) : as_tuple(results, count);
}

constexpr char kLapack[] =
    "lapack($module, name, a, b=None, UPLO='L', full_matrices=True, compute_uv=True, hermitian=False, mode='reduced', "
    "rcond=0.0)"
    "\n--\n\n"
    "What numpy.linalg.<name> gives, or None where it is not known here, or not of these operands, or LAPACK gives up.";
PyObject* lapack(PyObject*, const Call& a) {
  const auto* row = std::ranges::find(kNames, text_of(a.given(0)), &Name<LapackOp>::text);
  PyObject *const x = a.given(1), *const b = a[2];
  if (row == std::ranges::end(kNames) || !is_array(x) || (b != nullptr && !is_array(b))) Py_RETURN_NONE;
  LapackOp op = row->op;
  core::LapackOptions options;
  core::LapackCall call;
  bool taken = false;
  if (read_options(a, op, options))
    throw_if_bad(call.prepare(op, tensor_of(x), b == nullptr ? nullptr : &tensor_of(b), options, taken), a.operation());
  if (!taken) Py_RETURN_NONE;
  bool done = false;
  {
    std::optional<GilRelease> unlocked;
    if (!call.is_small()) unlocked.emplace();
    done = call.run();
  }
  if (!done) Py_RETURN_NONE;
  return as_results(call, op, a.operation());
}

constexpr Name<MatrixOp> kSmallNames[] = {
    {"cholesky", MatrixOp::kCholesky}, {"det", MatrixOp::kDet},     {"slogdet", MatrixOp::kSlogdet},
    {"inv", MatrixOp::kInv},           {"solve", MatrixOp::kSolve},
};

constexpr char kSmallMatrices[] =
    "small_matrices($module, name, a, b=None)\n--\n\n"
    "What numpy.linalg.<name> gives for small matrices, by one kernel; for cholesky, inv and solve as (results, "
    "info),\n"
    "where info is not 0 of a matrix that failed. None where it is not known here, or not of these operands.";
PyObject* small_matrices(PyObject*, const Call& a) {
  const auto* row = std::ranges::find(kSmallNames, text_of(a.given(0)), &Name<MatrixOp>::text);
  if (row == std::ranges::end(kSmallNames)) Py_RETURN_NONE;
  core::SmallMatrices found;
  bool taken = false;
  throw_if_bad(core::small_matrices(row->op, a.array(1), a.optional_array(2), taken, found), a.operation());
  if (!taken) Py_RETURN_NONE;
  if (row->op == MatrixOp::kDet) return as_array(std::move(found.found));
  Tensor results[] = {std::move(found.found), std::move(row->op == MatrixOp::kSlogdet ? found.logs : found.info)};
  return as_tuple(results, 2);
}

}  // namespace

void init_linalg(PyObject* module) {
  add_functions(module, {method<kLapack, lapack>(), method<kSmallMatrices, small_matrices>()});
}

}  // namespace dlbridge::py::nd
