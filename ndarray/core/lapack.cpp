#include "ndarray/core/lapack.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "ndarray/core/elementwise.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/openblas.h"

namespace dlbridge::nd {

namespace {

// A dense copy with the last two axes exchanged: the way from rows to columns, and back.
Status turned_copy(const Tensor& x, DType dtype, Tensor& out) {
  std::int8_t axes[kMaxDims];
  for (int k = 0; k < x.dl.ndim; ++k) axes[k] = static_cast<std::int8_t>(k);
  std::swap(axes[x.dl.ndim - 1], axes[x.dl.ndim - 2]);
  Tensor turned;
  DLBRIDGE_TRY(transpose_view(x, {axes, static_cast<std::size_t>(x.dl.ndim)}, turned));
  return copy_as(turned, dtype, CopyOrder::kC, out);
}

// The dtype of the result: integers count as float64.
DType inexact(DType t) noexcept { return is_integer(t) || is_bool(t) ? DType::kFloat64 : t; }
// As NumPy computes them: single precision in double.
DType computed_in(DType t) noexcept { return is_complex(t) ? DType::kComplex128 : DType::kFloat64; }

// Of the eigenvalues of any matrices, real ones too.
DType complex_for(DType t) noexcept { return promote(t, DType::kComplex64); }

// values as a result of that dtype.
Status rounded(Tensor&& values, DType dtype, Tensor& out) {
  if (dtype_of(values) != dtype) return copy_as(values, dtype, CopyOrder::kC, out);
  out = std::move(values);
  return {};
}

bool fits(const Tensor& b, const Tensor& a) noexcept {  // as many columns (n, k) as there are matrices (n, n)
  return b.dl.ndim == a.dl.ndim && b.size != 0 && inexact(dtype_of(b)) == inexact(dtype_of(a)) &&
         !is_cuda(b.dl.device) && std::equal(a.dl.shape, a.dl.shape + a.dl.ndim - 1, b.dl.shape);
}

constexpr bool has_sides(LapackOp op) noexcept { return op == LapackOp::kSolve || op == LapackOp::kLstsq; }
constexpr bool is_for_squares(LapackOp op) noexcept { return op < LapackOp::kSvdvals; }

bool takes(LapackOp op, const Tensor& a, const Tensor* b) noexcept {
  const int n = a.dl.ndim;
  if (op == LapackOp::kLstsq && (n != 2 || a.dl.shape[0] < a.dl.shape[1])) return false;
  return (b != nullptr) == has_sides(op) && !is_cuda(a.dl.device) && n >= 2 && a.size != 0 &&
         (a.dl.shape[n - 1] == a.dl.shape[n - 2] || !is_for_squares(op)) &&
         contains(host_kernels::kOpenBlasSet, inexact(dtype_of(a))) && (b == nullptr || fits(*b, a)) &&
         host_kernels::has_lapack();
}

// The stacked axes of `a`, and behind them one or two others.
Status make_stack(Tensor& out, DType dtype, const Tensor& a, std::initializer_list<std::int64_t> extents = {}) {
  std::int64_t shape[kMaxDims];
  std::int64_t* const end = std::copy_n(a.dl.shape, a.dl.ndim - 2, shape);
  std::ranges::copy(extents, end);
  return make_array(out, dtype, {shape, static_cast<std::size_t>(a.dl.ndim) - 2 + extents.size()}, a.dl.device);
}

// The first rows of matrices that are stacked column by column: a view.
Status first_rows(const Tensor& stacked, std::int64_t rows, Tensor& out) {
  std::int64_t shape[kMaxDims];
  std::copy_n(stacked.dl.shape, stacked.dl.ndim, shape);
  shape[stacked.dl.ndim - 1] = rows;
  const auto ndim = static_cast<std::size_t>(stacked.dl.ndim);
  return make_view(stacked, {shape, ndim}, {stacked.dl.strides, ndim}, 0, out);
}

}  // namespace

Status LapackCall::prepare(LapackOp op, const Tensor& a, const Tensor* b, LapackOptions options, bool& taken) {
  taken = takes(op, a, b);
  if (!taken) return {};
  result_ = inexact(dtype_of(a));
  args_.op = op;
  args_.dtype = computed_in(result_);
  args_.upper = options.upper;
  args_.full = options.full;
  args_.rcond = options.rcond;
  args_.m = a.dl.shape[a.dl.ndim - 2];
  args_.n = a.dl.shape[a.dl.ndim - 1];
  args_.batch = a.size / (args_.m * args_.n);
  DLBRIDGE_TRY(turned_copy(a, args_.dtype, matrices_));
  DLBRIDGE_TRY(prepare_results(a, b));
  args_.columns = sides_.dl.ndim == 0 ? 0 : sides_.dl.shape[sides_.dl.ndim - 2];
  args_.matrices = matrices_.dl.data;
  args_.sides = sides_.dl.data;
  args_.values = values_.dl.data;
  args_.others = others_.dl.data;
  return {};
}

Status LapackCall::prepare_results(const Tensor& a, const Tensor* b) {
  constexpr DType kReal = DType::kFloat64;
  const std::int64_t m = args_.m, n = args_.n, k = std::min(m, n);
  switch (args_.op) {
    case LapackOp::kSolve: return turned_copy(*b, args_.dtype, sides_);
    case LapackOp::kLstsq:
      DLBRIDGE_TRY(turned_copy(*b, args_.dtype, sides_));
      DLBRIDGE_TRY(make_array(others_, DType::kInt32, {}, a.dl.device));
      return make_stack(values_, kReal, a, {k});
    case LapackOp::kInv: return make_stack(sides_, args_.dtype, a, {n, n});
    case LapackOp::kSlogdet: DLBRIDGE_TRY(make_stack(others_, kReal, a)); [[fallthrough]];
    case LapackOp::kDet: return make_stack(values_, args_.dtype, a);
    case LapackOp::kSvd:
      DLBRIDGE_TRY(make_stack(sides_, args_.dtype, a, {args_.full ? m : k, m}));
      DLBRIDGE_TRY(make_stack(others_, args_.dtype, a, {n, args_.full ? n : k}));
      return make_stack(values_, kReal, a, {k});
    case LapackOp::kEig: DLBRIDGE_TRY(make_stack(sides_, DType::kComplex128, a, {n, n})); [[fallthrough]];
    case LapackOp::kEigvals: return make_stack(values_, DType::kComplex128, a, {n});
    case LapackOp::kSvdvals:
    case LapackOp::kEigvalsh:
    case LapackOp::kEigh: return make_stack(values_, kReal, a, {k});
    case LapackOp::kQr: return make_stack(sides_, args_.dtype, a, {args_.full ? m : k, m});
    case LapackOp::kCholesky:
    case LapackOp::kR: break;
  }
  return {};
}

int LapackCall::count_results(LapackOp op) noexcept {
  if (op == LapackOp::kLstsq) return 4;
  if (op == LapackOp::kSvd) return 3;
  const bool two = op == LapackOp::kSlogdet || op == LapackOp::kEigh || op == LapackOp::kEig || op == LapackOp::kQr;
  return two ? 2 : 1;
}

// (solutions, squared norms of what is left, rank, singular values).
Status LapackCall::finish_lstsq(Tensor* results) {
  const DType real = real_part(result_);
  const bool leaves_rest = args_.m > args_.n && *static_cast<const std::int32_t*>(others_.dl.data) == args_.n;
  const std::int64_t count = leaves_rest ? args_.columns : 0;
  const std::int64_t width = is_complex(args_.dtype) ? 2 : 1;
  Tensor solutions, residuals;
  DLBRIDGE_TRY(make_array(residuals, DType::kFloat64, {&count, 1}, sides_.dl.device));
  for (std::int64_t k = 0; k < count; ++k) {
    const auto* column = static_cast<const double*>(sides_.dl.data) + k * args_.m * width;
    double sum = 0;
    for (std::int64_t i = args_.n * width; i < args_.m * width; ++i) sum += column[i] * column[i];
    static_cast<double*>(residuals.dl.data)[k] = sum;
  }
  DLBRIDGE_TRY(first_rows(sides_, args_.n, solutions));
  DLBRIDGE_TRY(turned_copy(solutions, result_, results[0]));
  DLBRIDGE_TRY(rounded(std::move(residuals), real, results[1]));
  results[2] = std::move(others_);
  return rounded(std::move(values_), real, results[3]);
}

Status LapackCall::finish(Tensor* results) {
  const DType real = real_part(result_);
  switch (args_.op) {
    case LapackOp::kDet: return rounded(std::move(values_), result_, results[0]);
    case LapackOp::kSlogdet:
      DLBRIDGE_TRY(rounded(std::move(values_), result_, results[0]));
      return rounded(std::move(others_), real, results[1]);
    case LapackOp::kSolve:
    case LapackOp::kInv: return turned_copy(sides_, result_, results[0]);
    case LapackOp::kCholesky: return turned_copy(matrices_, result_, results[0]);
    case LapackOp::kEig: DLBRIDGE_TRY(turned_copy(sides_, complex_for(result_), results[1])); [[fallthrough]];
    case LapackOp::kEigvals: return rounded(std::move(values_), complex_for(result_), results[0]);
    case LapackOp::kEigh: DLBRIDGE_TRY(turned_copy(matrices_, result_, results[1])); [[fallthrough]];
    case LapackOp::kEigvalsh:
    case LapackOp::kSvdvals: return rounded(std::move(values_), real, results[0]);
    case LapackOp::kSvd:
      DLBRIDGE_TRY(turned_copy(sides_, result_, results[0]));
      DLBRIDGE_TRY(rounded(std::move(values_), real, results[1]));
      return turned_copy(others_, result_, results[2]);
    case LapackOp::kLstsq: return finish_lstsq(results);
    case LapackOp::kQr: DLBRIDGE_TRY(turned_copy(sides_, result_, results[0])); [[fallthrough]];
    case LapackOp::kR: {
      Tensor rows;
      DLBRIDGE_TRY(first_rows(matrices_, args_.op == LapackOp::kQr ? args_.columns : std::min(args_.m, args_.n), rows));
      return turned_copy(rows, result_, results[args_.op == LapackOp::kQr ? 1 : 0]);
    }
  }
  return {};
}

}  // namespace dlbridge::nd
