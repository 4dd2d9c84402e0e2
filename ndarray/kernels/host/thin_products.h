// Products that no tile pays for: thin ones, and those with vectors.
#pragma once

#include "ndarray/kernels/api.h"

namespace dlbridge::nd::host_kernels {

// True where the product has been computed: of few columns or rows, and few terms a sum.
bool multiply_thin(const MatmulArgs& args) noexcept;

// Products with vectors, of vectors, and of few terms a sum; not of bools.
bool is_of_vectors(const MatmulArgs& args) noexcept;
int multiply_vectors(const MatmulArgs& args);

}  // namespace dlbridge::nd::host_kernels
