#include "ndarray/core/overlap.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlbridge::nd {

namespace {

// Is there a way to write `rest` as the sum of step * n over terms, 0 <= n <= most for each?
struct Term {
  std::int64_t step, most;
};

struct Problem {
  Term terms[2 * kMaxDims + 1];
  int count = 0;
  std::int64_t reach[2 * kMaxDims + 2];    // of the terms from here on: their largest sum,
  std::int64_t divisor[2 * kMaxDims + 2];  // and what divides all their sums
  std::int64_t work_left;

  void add(std::int64_t step, std::int64_t most) noexcept {
    if (step != 0 && most != 0) terms[count++] = {step, most};
  }
};

// The bytes that a tensor's elements begin at: `sign` times them, with the negative steps turned around. Returns what
// that adds to the constant.
std::int64_t add_dims(Problem& problem, const Tensor& t, std::int64_t sign) noexcept {
  std::int64_t constant = 0;
  for (int k = 0; k < t.dl.ndim; ++k) {
    const std::int64_t step = sign * t.dl.strides[k] * t.itemsize(), most = t.dl.shape[k] - 1;
    problem.add(step < 0 ? -step : step, most);
    if (step < 0) constant += step * most;
  }
  return constant;
}

// Largest step first. Where a step is a multiple of the next that this one reaches, the two are one: dense arrays are a
// single term.
void simplify(Problem& problem) noexcept {
  std::sort(problem.terms, problem.terms + problem.count, [](Term a, Term b) { return a.step > b.step; });
  int kept = problem.count;
  for (int k = problem.count - 1; k > 0; --k) {
    Term &large = problem.terms[k - 1], small = problem.terms[k];
    const std::int64_t ratio = large.step / small.step;
    if (large.step % small.step != 0 || ratio > small.most + 1) continue;
    large = {small.step, small.most + ratio * large.most};
    std::copy(problem.terms + k + 1, problem.terms + kept, problem.terms + k);
    --kept;
  }
  problem.count = kept;
  problem.reach[kept] = problem.divisor[kept] = 0;
  for (int k = kept - 1; k >= 0; --k) {
    problem.reach[k] = problem.reach[k + 1] + problem.terms[k].step * problem.terms[k].most;
    problem.divisor[k] = std::gcd(problem.divisor[k + 1], problem.terms[k].step);
  }
}

// The n from 0 to modulus - 1 with a * n = 1; a and modulus have no common divisor.
std::int64_t inverse(std::int64_t a, std::int64_t modulus) noexcept {
  std::int64_t x = 0, next_x = 1, r = modulus, next_r = a % modulus;
  while (next_r != 0) {
    const std::int64_t quotient = r / next_r;
    x = std::exchange(next_x, x - quotient * next_x);
    r = std::exchange(next_r, r - quotient * next_r);
  }
  return x < 0 ? x + modulus : x;
}

Overlap solve(Problem& problem, int k, std::int64_t rest) noexcept {
  if (rest < 0 || rest > problem.reach[k]) return Overlap::kNone;
  if (k == problem.count) return Overlap::kSome;  // rest is 0
  if (rest % problem.divisor[k] != 0) return Overlap::kNone;
  if (k == problem.count - 1) return Overlap::kSome;
  if (problem.work_left-- <= 0) return Overlap::kUndecided;
  const Term& term = problem.terms[k];
  const std::int64_t below = rest - problem.reach[k + 1];
  const std::int64_t first = below <= 0 ? 0 : (below + term.step - 1) / term.step;
  const std::int64_t last = std::min(term.most, rest / term.step);
  // Only every `period`-th n leaves a rest that the other terms' divisor divides.
  const std::int64_t shared = problem.divisor[k], period = problem.divisor[k + 1] / shared;
  const auto wanted = static_cast<std::int64_t>(static_cast<__int128>(rest / shared % period) *
                                                inverse(term.step / shared, period) % period);
  std::int64_t n = first + ((wanted - first) % period + period) % period;
  for (; n <= last; n += period)
    if (const Overlap found = solve(problem, k + 1, rest - n * term.step); found != Overlap::kNone) return found;
  return Overlap::kNone;
}

}  // namespace

Overlap find_overlap(const Tensor& a, const Tensor& b, std::int64_t most_work) noexcept {
  if (a.size == 0 || b.size == 0 || !may_overlap(a, b)) return Overlap::kNone;
  if (most_work == 0) return Overlap::kUndecided;
  // An element of b may begin from item_b - 1 bytes in front of one of a to item_a - 1 bytes behind its start.
  Problem problem;
  problem.work_left = most_work;
  const std::int64_t distance = reinterpret_cast<std::intptr_t>(a.dl.data) - reinterpret_cast<std::intptr_t>(b.dl.data);
  const std::int64_t constant = distance + add_dims(problem, a, 1) + add_dims(problem, b, -1);
  problem.add(1, a.itemsize() + b.itemsize() - 2);
  simplify(problem);
  return solve(problem, 0, b.itemsize() - 1 - constant);
}

}  // namespace dlbridge::nd
