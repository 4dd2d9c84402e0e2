// Small matrices by one kernel: Cholesky's factor, determinants, inverses, solutions.
#pragma once

#include "ndarray/core/array.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

struct SmallMatrices {
  Tensor found;  // (..., n, columns), or the determinants or their signs (...)
  Tensor logs;   // kSlogdet: real, (...)
  Tensor info;   // kCholesky, kInv, kSolve: int32, (matrices,): 0, or which column failed, counted from 1
};

// What `op` gives for a stack of square matrices (and for b of kSolve, whose stack broadcasts with theirs), all queued
// and nothing waited for. `taken`: whether the operands are of one dtype that the kernel has, matrices with elements
// in them that fit into the memory of a block of threads, and lie so that a device can load their elements; if they do
// not, nothing is done.
Status small_matrices(MatrixOp op, const Tensor& a, const Tensor* b, bool& taken, SmallMatrices& results);

}  // namespace dlbridge::nd
