// OpenBLAS, with its LAPACK, where the process has loaded it, as NumPy's and SciPy's wheels do: its kernels know more
// machines and use all cores (OMP_NUM_THREADS).
#pragma once

#include <type_traits>

#include "ndarray/kernels/types.h"

namespace dlbridge::nd::host_kernels {

inline constexpr DTypeSet kOpenBlasSet =
    bit(DType::kFloat32) | bit(DType::kFloat64) | bit(DType::kComplex64) | bit(DType::kComplex128);

struct BlasRoutines {  // of one dtype, by the interface of C
  void *gemm, *gemv, *dot, *conjugate_dot;
};
struct LapackRoutines {  // of one dtype, by that of Fortran
  void *getrf, *gesv, *potrf, *evd, *geev, *gelsd, *gesdd, *geqrf, *orgqr;
};

struct OpenBlas {
  bool wide;                             // its integers have 64 bits
  BlasRoutines blas[4];                  // by the order of kOpenBlasSet
  LapackRoutines of_double, of_complex;  // of float64 and complex128; all null where the library has none

  template <class T>
  static constexpr int kIndex = std::is_same_v<T, float>            ? 0
                                : std::is_same_v<T, double>         ? 1
                                : std::is_same_v<T, complex<float>> ? 2
                                                                    : 3;
  template <class T>
  const BlasRoutines& of() const noexcept {
    return blas[kIndex<T>];
  }
};

// Null where the process has loaded none, and where DLBRIDGE_BLAS is 0. Any thread; a library that is loaded later is
// found then, and stays.
const OpenBlas* find_openblas() noexcept;

}  // namespace dlbridge::nd::host_kernels
