#include "ndarray/kernels/host/formulas.h"

#include <algorithm>
#include <cmath>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/vector_math.h"
#include "ndarray/kernels/random/counts.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 8 * kBlock;

// Of a block each: their number is known, and of few numbers little is made in vain.
DLBRIDGE_ND_CLONES void triangular(const double (&of)[3], const double* x, double* __restrict out) noexcept {
  const double left = of[0], mode = of[1], right = of[2];
  const double width = right - left, rise = mode - left, fall = right - mode;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const double u = inner_unit(x[i]);
    const double rising = left + std::sqrt(u * width * rise), falling = right - std::sqrt((1 - u) * width * fall);
    out[i] = u * width <= rise ? rising : falling;
  }
}

DLBRIDGE_ND_CLONES void wald(const double (&of)[3], const double* x, const double* u, double* __restrict out) noexcept {
  const double mean = of[0], scale = of[1], product = 4 * mean * scale;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const double y = mean * std::max(x[i] * x[i], 1e-300);
    const double sum = std::sqrt(4 * scale * y + y * y) + y;
    const double small = product * y / (sum * sum), large = mean * mean / small;
    out[i] = inner_unit(u[i]) * (mean + small) <= mean ? small : large;
  }
}

DLBRIDGE_ND_CLONES void geometric(const double (&of)[3], const double* x, std::int64_t* __restrict out) noexcept {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const double k = std::ceil(-x[i] / of[0]);
    out[i] = static_cast<std::int64_t>(std::min(std::max(k, 1.0), philox::kLargestCount));
  }
}

void logseries(const double (&of)[3], const double* x, const double* u, std::int64_t* out) noexcept {
  const double p = of[0];
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const double v = inner_unit(x[i]);
    out[i] = 1;
    if (v >= p) continue;
    const double q = std::min(std::max(-std::expm1(of[1] * inner_unit(u[i])), 1e-300), 1 - 0x1p-54);
    if (v > q * q) out[i] = v <= q ? 2 : 1;
    else out[i] = static_cast<std::int64_t>(std::min(std::floor(1 + std::log(v) / std::log(q)), philox::kLargestCount));
  }
}

}  // namespace

void draw_floats(Distribution distribution, std::uint64_t seed, std::uint64_t offset, std::int64_t n,
                 double* out) noexcept {
  RandomArgs args{};
  args.distribution = distribution;
  args.dtype = DType::kFloat64;
  args.n = n;
  args.out = out;
  args.seed = seed;
  args.offset = offset;
  args.a = distribution == Distribution::kExponential ? 1 : 0;
  args.b = 1;
  random(args);
}

void draw_formula(const FormulaArgs& args) noexcept {
  constexpr Distribution kFirst[] = {Distribution::kUniform, Distribution::kNormal, Distribution::kExponential,
                                     Distribution::kUniform};
  const bool two = takes_two(args.formula);
  const std::uint64_t each = counters_of(Formula::kTriangular, args.n);  // of one array
  double x[kChunk]{}, y[kChunk]{};
  double floats[kChunk];
  std::int64_t counts[kChunk];
  for (std::int64_t first = 0; first < args.n; first += kChunk) {
    const std::int64_t count = std::min(kChunk, args.n - first);
    const std::uint64_t offset = args.offset + static_cast<std::uint64_t>(first / 2);
    draw_floats(kFirst[static_cast<int>(args.formula)], args.seed, offset, count, x);
    if (two) draw_floats(Distribution::kUniform, args.seed, offset + each, count, y);
    for (std::int64_t i = 0; i < count; i += kBlock) {
      switch (args.formula) {
        case Formula::kTriangular: triangular(args.parameters, x + i, floats + i); break;
        case Formula::kWald: wald(args.parameters, x + i, y + i, floats + i); break;
        case Formula::kGeometric: geometric(args.parameters, x + i, counts + i); break;
        case Formula::kLogseries: logseries(args.parameters, x + i, y + i, counts + i); break;
      }
    }
    if (gives_counts(args.formula)) std::copy_n(counts, count, static_cast<std::int64_t*>(args.out) + first);
    else std::copy_n(floats, count, static_cast<double*>(args.out) + first);
  }
}

}  // namespace dlbridge::nd::host_kernels
