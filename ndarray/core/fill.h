// Arrays filled by a rule: ranges, random numbers, and numbers that are given one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/core/array.h"
#include "ndarray/core/scalar.h"
#include "ndarray/kernels/api.h"
#include "ndarray/kernels/host/log_concave.h"

namespace dlbridge::nd {

// out[i] = start + i * step; with `stop` the last element is that exactly (linspace). `out` is dense in C order and
// writable, or is refused.
Status fill_range(const Tensor& out, const Scalar& start, const Scalar& step, const Scalar* stop);

// Sets the elements of an array that was just made to 0, or those of a bool array to that byte: on a device by the
// driver, which has it done before a kernel would be launched.
Status fill_bytes(const Tensor& out, unsigned char byte);
inline Status clear(const Tensor& out) { return fill_bytes(out, 0); }

// Random numbers; of `args` the distribution, its parameters, the seed and the offset are read. The same is asked of
// `out`. `arrays`: for each element, instead of args.a, args.b and args.c; null for those that are numbers.
Status fill_random(const Tensor& out, RandomArgs args, std::span<const Tensor* const> arrays = {});
// How many counters that uses.
std::uint64_t counters_of(const Tensor& out, Distribution distribution) noexcept;

// On the host: the sums of the probabilities of the counts from `first` on. Where there are more than `most`, none are
// made, and `first` is not set. See kernels/host/log_concave.h.
Status sum_probabilities(Tensor& out, const host_kernels::LogConcave& law, std::int64_t most,
                         std::optional<double>& first);

// How often each outcome was, a row of `out` (int64) each; `chances`: one float64 an outcome, or one an element of
// `out`. `trials`: float64, one a row, or null for those of args. The seed and the offset are the caller's to set.
Status prepare_multinomial(MultinomialArgs& args, const Tensor& out, const Tensor& chances, const Tensor* trials);
Status fill_multinomial(MultinomialArgs args, std::span<const Tensor* const> used);
std::uint64_t counters_of(const MultinomialArgs& args) noexcept;

// An array on the host with these elements in C order; without a dtype of what they promote to, Python's as NumPy's.
// Of Scalar, double and int64.
template <class Leaf>
Status make_from(Tensor& out, std::span<const Leaf> leaves, std::optional<DType> dtype, Dims shape);

}  // namespace dlbridge::nd
