#include "ndarray/kernels/host/von_mises.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include "ndarray/kernels/host/elementwise_loops.h"
#include "ndarray/kernels/host/formulas.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kChunk = 512;

// A function as arrays have it, so that angles have the bits that operations on arrays would give them.
class Function {
 public:
  explicit Function(Op op) noexcept : loop_(find_math_loop(op, DType::kFloat64)) {}
  void operator()(double* x, std::int64_t n) const noexcept {
    char* const data[] = {reinterpret_cast<char*>(x), reinterpret_cast<char*>(x)};
    constexpr std::int64_t kStrides[] = {sizeof(double), sizeof(double)};
    loop_(data, kStrides, n);
  }

 private:
  InnerLoop loop_;
};

struct Law {
  double kappa, k, s;
  bool sharp;
  Function cos{Op::kCos}, log{Op::kLog}, arccos{Op::kArccos};

  explicit Law(double concentration) noexcept : kappa(concentration), sharp(kappa > 1e6) {
    k = std::min(kappa, 1e6);
    const double r = 1 + std::sqrt(1 + 4 * k * k), rho = (r - std::sqrt(2 * r)) / (2 * k);
    s = k < 1e-5 ? 1 / k + k : (1 + rho * rho) / (2 * (rho > 0 ? rho : 1));
  }
};

// A chunk of a round. The four arrays of random numbers that a round draws lie `each` counters apart.
struct Angles {
  double u[kChunk], w[kChunk], logarithm[kChunk], angle[kChunk];
  bool holds[kChunk];

  void draw(const Law& law, std::uint64_t seed, std::uint64_t offset, std::uint64_t each, std::int64_t n) noexcept {
    if (law.sharp) {
      draw_floats(Distribution::kNormal, seed, offset + 3 * each, n, angle);
      const double root = std::sqrt(law.kappa);
      for (std::int64_t i = 0; i < n; ++i) angle[i] /= root;
      std::fill_n(holds, n, true);
      return;
    }
    draw_floats(Distribution::kUniform, seed, offset, n, w);
    for (std::int64_t i = 0; i < n; ++i) w[i] = 3.141592653589793 * inner_unit(w[i]);
    law.cos(w, n);
    for (std::int64_t i = 0; i < n; ++i) w[i] = (1 + law.s * w[i]) / (law.s + w[i]);
    accept(law, seed, offset + each, n);
    for (std::int64_t i = 0; i < n; ++i) angle[i] = std::min(std::max(w[i], -1.0), 1.0);
    law.arccos(angle, n);
    draw_floats(Distribution::kUniform, seed, offset + 2 * each, n, u);
    for (std::int64_t i = 0; i < n; ++i) angle[i] = u[i] < 0.5 ? -angle[i] : angle[i];
  }

 private:
  void accept(const Law& law, std::uint64_t seed, std::uint64_t offset, std::int64_t n) noexcept {
    draw_floats(Distribution::kUniform, seed, offset, n, u);
    const auto product = [&](std::int64_t i) { return std::max(law.k * (law.s - w[i]), 1e-300); };
    for (std::int64_t i = 0; i < n; ++i) logarithm[i] = product(i) / inner_unit(u[i]);
    law.log(logarithm, n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double y = product(i);
      holds[i] = (y * (2 - y) - inner_unit(u[i]) >= 0) | (logarithm[i] + 1 - y >= 0);
    }
  }
};

// In [-pi, pi]; most sums lie in the first turn.
double around(double mu, double x) noexcept {
  constexpr double kPi = 3.141592653589793, kTurn = 2 * kPi;
  double turned = mu + x + kPi;
  if (!(turned >= 0 && turned < kTurn)) {
    turned = std::fmod(turned, kTurn);
    if (turned < 0) turned += kTurn;
  }
  return turned - kPi;
}

}  // namespace

bool draw_angles(double mu, double kappa, std::uint64_t seed, std::int64_t n, double* out) noexcept {
  const std::unique_ptr<std::int64_t[]> rest(new (std::nothrow) std::int64_t[static_cast<std::size_t>(n)]);
  if (rest == nullptr) return false;
  const Law law(kappa);
  const std::int64_t size = n;
  Angles angles;
  std::uint64_t offset = 0;
  bool all = true;
  for (std::int64_t left; n > 0; n = left, all = false) {
    const std::uint64_t each = (static_cast<std::uint64_t>(n) + 1) / 2;
    left = 0;
    for (std::int64_t first = 0; first < n; first += kChunk) {
      const std::int64_t count = std::min(kChunk, n - first);
      angles.draw(law, seed, offset + static_cast<std::uint64_t>(first / 2), each, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t element = all ? first + i : rest[static_cast<std::size_t>(first + i)];
        out[element] = angles.angle[i];
        if (!angles.holds[i]) rest[static_cast<std::size_t>(left++)] = element;
      }
    }
    offset += 4 * each;
  }
  for (std::int64_t i = 0; i < size; ++i) out[i] = around(mu, out[i]);
  return true;
}

}  // namespace dlbridge::nd::host_kernels
