// From the call's loop to launches: which kernel can walk it, and with what parameters.
#pragma once

#include "ndarray/kernels/cuda/elementwise.cuh"

namespace dlbridge::nd::cuda_kernels {

inline constexpr int kNotVectorisable = -100;           // of launch_vector(): take the strided kernel
inline constexpr std::int64_t kPartLimit = 0x7fffffff;  // elements, and bytes from an operand's base, in 32-bit offsets

// One call, as the kernels see it.
struct Call {
  KernelLoop loop;
  int itemsizes[kMaxOperands];  // in memory
  Access access[kMaxOperands];  // kDirect, kCast or kScalar
  DType dtype[kMaxOperands];    // of kCast
  bool result_signed;
  ScalarValue scalars[kMaxOperands];
  cudaStream_t stream;
};

// Starts the vector kernel, or returns kNotVectorisable.
int launch_vector(const Kernels& kernels, const Call& call);
// Starts the strided kernel: on tiles where an input lies across the output, in parts where offsets need them.
int launch_strided(const Kernels& kernels, const Call& call);

// Copies and casts, in elementwise_copy.cu.
int launch_copy(const ElementwiseArgs& args);
// A copy of equal elements of call.itemsizes[0] bytes whose unit strides are on different dims, in transpose.cu;
// kNotVectorisable if the loop is no such copy, or too small for it.
int launch_transpose(const Call& call);

}  // namespace dlbridge::nd::cuda_kernels
