// Matrices by the LAPACK of openblas.h, as NumPy calls it: the same routines on the same elements.
#pragma once

#include <cstdint>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::host_kernels {

enum class LapackOp : std::uint8_t {
  kDet,
  kSlogdet,
  kInv,
  kSolve,
  kCholesky,
  kEigvalsh,
  kEigh,
  kEigvals,
  kEig,
  kSvdvals,
  kSvd,
  kR,
  kQr,
  kLstsq,
};

// A stack of matrices (m, n), dense, each column by column, m and n > 0; square but for the last five. What is not said
// for an operation is not read.
struct LapackArgs {
  LapackOp op;
  DType dtype;   // float64 or complex128
  bool upper;    // kEigvalsh, kEigh: the triangle that is read
  bool full;     // kSvd: U (m, m) and Vh (n, n), not of the min(m, n) columns and rows that matter
  double rcond;  // kLstsq, of one matrix with m >= n: singular values below it times the largest count as 0
  std::int64_t batch, m, n;
  std::int64_t columns;  // of `sides`
  // Overwritten: by the factor of kCholesky, the eigenvectors of kEigh, R of kR and kQr.
  void* matrices;
  // (m, columns). kSolve: right sides, then solutions; kInv: the inverses; kSvd: U; kQr: Q; kLstsq: right sides, then
  // the solutions and behind them the rest; kEig: complex eigenvectors.
  void* sides;
  // kDet, kSlogdet: one a matrix; real ones of kEigvalsh, kEigh: n; of kSvdvals, kSvd, kLstsq: min(m, n); complex ones
  // of kEigvals, kEig: n.
  void* values;
  // kSlogdet: a real one a matrix; kSvd: Vh; kLstsq: an int32, the rank.
  void* others;
};

// False where a routine gives up (a matrix is singular, not positive definite, does not converge), or there is no
// memory for its workspace: what is written is of no use then. Any thread, no GIL.
bool run_lapack(const LapackArgs& args) noexcept;
bool has_lapack() noexcept;

}  // namespace dlbridge::nd::host_kernels
