// Matrices by LAPACK on the host: determinants, inverses, equations, decompositions.
#pragma once

#include "ndarray/core/array.h"
#include "ndarray/kernels/host/lapack.h"

namespace dlbridge::nd {

using host_kernels::LapackOp;

struct LapackOptions {
  bool upper = false;  // kEigvalsh, kEigh: the triangle that is read
  bool full = true;    // kSvd, kQr: U, Vh and Q are square
  double rcond = 0;    // kLstsq
};

// One call, in three steps, so that the second can go without the GIL. What it does not take, and where LAPACK gives
// up, is left to a general way, which says why.
class LapackCall {
 public:
  // Copies the operands as LAPACK takes them. `taken`: whether there is a library, and the operands are arrays on the
  // host of numbers that it knows (or become such, as integers do), matrices with elements in them, square ones where
  // they have to be; b, of kSolve and kLstsq, columns (..., n, k) as many as matrices.
  Status prepare(LapackOp op, const Tensor& a, const Tensor* b, LapackOptions options, bool& taken);
  // Any thread, no GIL; false where LAPACK gives up.
  bool run() const noexcept { return host_kernels::run_lapack(args_); }
  static constexpr int kMaxResults = 4;
  static int count_results(LapackOp op) noexcept;
  // As many as that, in NumPy's order.
  Status finish(Tensor* results);

  bool is_small() const noexcept { return args_.m * args_.n * args_.n * args_.batch < 32'768; }

 private:
  Status prepare_results(const Tensor& a, const Tensor* b);
  Status finish_lstsq(Tensor* results);

  DType result_{};
  host_kernels::LapackArgs args_{};
  Tensor matrices_, sides_, values_, others_;  // stacked column by column
};

}  // namespace dlbridge::nd
