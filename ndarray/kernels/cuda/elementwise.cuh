// The two kernels of an elementwise operation, and how the host finds and starts them.
//
// The vector kernel takes operands that are all of the loop's own dtypes and, along the innermost dim, dense and
// aligned to a vector of up to 16 bytes, or repeated, or scalars: contiguous arrays, rows with a pitch, broadcast rows
// and columns. The strided kernel takes everything else: any strides, any dtypes.
//
// The bodies are functions of (parameters, block, thread), so that a host program can run them too.
#pragma once

#include "ndarray/kernels/cuda/elementwise_strided.cuh"
#include "ndarray/kernels/cuda/elementwise_vector.cuh"

namespace dlbridge::nd::cuda_kernels {

// How much code an element costs: it decides how many a thread holds at once.
enum class Weight { kLight, kMedium, kHeavy };

constexpr bool is_division(Op op) noexcept { return op == Op::kFloorDivide || op == Op::kRemainder || op == Op::kFmod; }
constexpr Weight weight_of(Op op, DType compute) noexcept {
  const bool elementary = MathOps::has(op) || TrigonometricOps::has(op) || op == Op::kPower;
  const bool bitwise = op == Op::kCopysign || op == Op::kNextafter || op == Op::kHeaviside || op == Op::kRsqrt;
  if (op == Op::kGcd) return Weight::kHeavy;
  if (contains(kComplexSet, compute))
    return elementary || op == Op::kSqrt                                                          ? Weight::kHeavy
           : op == Op::kDivide || op == Op::kReciprocal || op == Op::kSign || op == Op::kAbsolute ? Weight::kMedium
                                                                                                  : Weight::kLight;
  if (contains(kFloatSet, compute) && is_division(op)) return Weight::kHeavy;
  if (compute == DType::kFloat64) return elementary && !bitwise ? Weight::kHeavy : Weight::kLight;
  if (elementary && !bitwise) return Weight::kMedium;
  return is_division(op) ? Weight::kMedium : Weight::kLight;
}

template <class S>
constexpr int vector_elements() noexcept {
  return 16 / S::widest;
}
// One is best wherever memory is the limit (on an H200 a + b runs at 4,380 GB/s with one, 4,350 with two or four; a + 1
// at 4,230 and 4,080); functions of some cost gain by a second one.
template <class S>
constexpr int vectors_a_thread(Weight weight) noexcept {
  return weight == Weight::kMedium && S::inputs > 1 && vector_elements<S>() <= 4 ? 2 : 1;
}

template <class S, Weight weight>
constexpr Kernels make_kernels() noexcept {
  constexpr int strided_unroll = weight != Weight::kHeavy ? 4 : S::widest < 8 ? 2 : 1;
  Kernels kernels{nullptr, &strided_kernel<S, strided_unroll>, 0, 0, strided_unroll};
  if constexpr (weight != Weight::kHeavy) {
    constexpr int elements = vector_elements<S>();
    constexpr int unroll = vectors_a_thread<S>(weight);
    kernels.vector = &vector_kernel<S, elements, unroll>;
    kernels.vector_elements = elements;
    kernels.vectors_a_thread = unroll;
  }
  return kernels;
}

template <DTypeSet within>
struct KernelsMaker {
  template <Op op, DType compute>
  static constexpr Kernels entry() noexcept {
    if constexpr (contains(within, compute))
      return make_kernels<typename OpSignature<op, type_of_t<compute>>::type, weight_of(op, compute)>();
    else return Kernels{};
  }
};

// A group's kernels for the compute dtypes in `within`; null for what it lacks.
template <class Group, DTypeSet within>
const Kernels* find_op_kernels(Op op, DType compute) noexcept {
  static constexpr OpTable<Kernels, Group, KernelsMaker<within>> kTable;
  const Kernels* kernels = kTable.find(op, compute);
  return kernels != nullptr && kernels->strided != nullptr ? kernels : nullptr;
}

// X(name): one translation unit elementwise_<name>.cu each.
// clang-format off
#define DLBRIDGE_ND_ELEMENTWISE_UNITS(X)                          \
  X(arithmetic_float) X(arithmetic_integer) X(extrema)            \
  X(logic_float) X(logic_integer) X(math) X(math_complex)         \
  X(trigonometric) X(trigonometric_complex)                       \
  X(division_float) X(division_integer)
// clang-format on

#define DLBRIDGE_ND_DECLARE_UNIT(name) const Kernels* find_##name(Op op, DType compute) noexcept;
DLBRIDGE_ND_ELEMENTWISE_UNITS(DLBRIDGE_ND_DECLARE_UNIT)
#undef DLBRIDGE_ND_DECLARE_UNIT

}  // namespace dlbridge::nd::cuda_kernels
