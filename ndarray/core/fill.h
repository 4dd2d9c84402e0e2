// Arrays filled by a rule: ranges, random numbers, and numbers that are given one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

// out[i] = start + i * step; with `stop` the last element is that exactly (linspace). `out` is dense in C order and
// writable, or is refused.
Status fill_range(const Tensor& out, const Scalar& start, const Scalar& step, const Scalar* stop);

// Random numbers; of `args` the distribution, its parameters, the seed and the offset are read. `used`: counters. The
// same is asked of `out`. `shapes`: a gamma variate's for each element, instead of args.a.
Status fill_random(const Tensor& out, RandomArgs args, std::uint64_t& used, const Tensor* shapes = nullptr);

// An array on the host with these elements in C order; without a dtype of what they promote to, Python's as NumPy's.
Status make_from_scalars(Tensor& out, std::span<const Scalar> scalars, std::optional<DType> dtype, Dims shape);

}  // namespace dlbridge::nd
