// Linear algebra: of host arrays by the LAPACK that NumPy has loaded, of small matrices by a kernel.
#include "python/src/nd/call.h"
#include "python/src/nd/module.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "ndarray/core/copy.h"
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

// False where LAPACK does not take the operands, or gives up.
bool compute(LapackOp op, const Tensor& x, const Tensor* b, const core::LapackOptions& options, const char* operation,
             Tensor* results) {
  core::LapackCall call;
  bool taken = false;
  throw_if_bad(call.prepare(op, x, b, options, taken), operation);
  if (!taken) return false;
  bool done = false;
  {
    std::optional<GilRelease> unlocked;
    if (!call.is_small()) unlocked.emplace();
    done = call.run();
  }
  if (done) throw_if_bad(call.finish(results), operation);
  return done;
}

Status part_of(const Tensor& x, std::int64_t first, std::int64_t count, Tensor& out) {
  std::int64_t shape[kMaxDims];
  std::copy_n(x.dl.shape, x.dl.ndim, shape);
  shape[0] = count;
  const auto ndim = static_cast<std::size_t>(x.dl.ndim);
  return core::make_view(x, {shape, ndim}, {x.dl.strides, ndim}, first * x.dl.strides[0], out);
}

// The matrices of a part, with what is made of them, stay in the cache from one step of a call to the next.
constexpr std::int64_t kPartBytes = std::int64_t{1} << 17;
constexpr std::int64_t kInParts = std::int64_t{1} << 20;  // bytes of a stack from which that is a gain
std::int64_t matrices_at_once(const Tensor& x) noexcept {
  if (x.dl.ndim < 3 || x.nbytes() < kInParts) return x.dl.shape[0];
  return std::max<std::int64_t>(kPartBytes / (x.nbytes() / x.dl.shape[0]), 1);
}

bool compute_in_parts(LapackOp op, const Tensor& x, const Tensor* b, const core::LapackOptions& options,
                      const char* operation, std::int64_t at_once, Tensor* results) {
  for (std::int64_t first = 0, all = x.dl.shape[0]; first < all; first += at_once) {
    const std::int64_t count = std::min(at_once, all - first);
    Tensor some, sides, found[core::LapackCall::kMaxResults];
    throw_if_bad(part_of(x, first, count, some), operation);
    if (b != nullptr) throw_if_bad(part_of(*b, first, count, sides), operation);
    if (!compute(op, some, b == nullptr ? nullptr : &sides, options, operation, found)) return false;
    for (int k = 0; k < core::LapackCall::count_results(op); ++k) {
      Tensor place;
      if (first == 0) {
        std::int64_t shape[kMaxDims];
        std::copy_n(found[k].dl.shape, found[k].dl.ndim, shape);
        shape[0] = all;
        throw_if_bad(core::make_array(results[k], core::dtype_of(found[k]),
                                      {shape, static_cast<std::size_t>(found[k].dl.ndim)}, x.dl.device),
                     operation);
      }
      throw_if_bad(part_of(results[k], first, count, place), operation);
      throw_if_bad(core::copy_into(place, {&found[k], {}}, core::Casting::kNo), operation);
    }
  }
  return true;
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
  if (!read_options(a, op, options)) Py_RETURN_NONE;
  const Tensor& matrices = tensor_of(x);
  const Tensor* const sides = b == nullptr ? nullptr : &tensor_of(b);
  Tensor results[core::LapackCall::kMaxResults];
  const bool splits =
      matrices.size != 0 &&
      (b == nullptr || (sides->dl.ndim == matrices.dl.ndim && sides->dl.shape[0] == matrices.dl.shape[0]));
  const std::int64_t at_once = splits && matrices.dl.ndim > 2 ? matrices_at_once(matrices) : 0;
  const bool in_parts = at_once > 0 && at_once < matrices.dl.shape[0];
  if (!(in_parts ? compute_in_parts(op, matrices, sides, options, a.operation(), at_once, results)
                 : compute(op, matrices, sides, options, a.operation(), results)))
    Py_RETURN_NONE;
  const int count = core::LapackCall::count_results(op);
  return count == 1 ? as_array(std::move(results[0])) : as_tuple(results, count);
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
