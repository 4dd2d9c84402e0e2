// Arrays filled by a rule: ranges, random numbers, and numbers that are given one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"
#include "ndarray/kernels/api.h"
#include "ndarray/kernels/host/formulas.h"
#include "ndarray/kernels/host/log_concave.h"

namespace dlbridge::nd {

// out[i] = start + i * step; with `stop` the last element is that exactly (linspace). `out` is dense in C order and
// writable, or is refused.
Status fill_range(const Tensor& out, const Scalar& start, const Scalar& step, const Scalar* stop);

// Random numbers; of `args` the distribution, its parameters, the seed and the offset are read. The same is asked of
// `out`. `shapes`: a gamma variate's for each element, instead of args.a.
Status fill_random(const Tensor& out, RandomArgs args, const Tensor* shapes = nullptr);
// How many counters that uses.
std::uint64_t counters_of(const Tensor& out, Distribution distribution) noexcept;

// On the host: the sums of the probabilities of the counts from `first` on. Where there are more than `most`, none are
// made, and `first` is not set. See kernels/host/log_concave.h.
Status sum_probabilities(Tensor& out, const host_kernels::LogConcave& law, std::int64_t most,
                         std::optional<double>& first);

// On the host: counts by rejection. `parameters`: float64, each of one element or as many as `out`, which is float64.
Status draw_counts(const Tensor& out, host_kernels::CountLaw law, std::uint64_t seed,
                   std::span<const Tensor* const> parameters);

// On the host: how often each outcome of some trials was, a row of `out` (int64) each; see kernels/host/trials.h.
Status count_trials(const Tensor& out, const Tensor& sums, std::int64_t trials, std::uint64_t seed,
                    std::uint64_t offset);

// On the host: numbers by a formula; of `args` the formula, the parameters, the seed and the offset are read.
Status fill_formula(const Tensor& out, host_kernels::FormulaArgs args);

// An array on the host with these elements in C order; without a dtype of what they promote to, Python's as NumPy's.
Status make_from_scalars(Tensor& out, std::span<const Scalar> scalars, std::optional<DType> dtype, Dims shape);

}  // namespace dlbridge::nd
