// interp on the host: a number is looked for in the piece of the one before it and in the next ones; where it is in
// none of them, it and some behind it are searched for together.
#include "ndarray/kernels/host/interpolate.h"

#include <algorithm>
#include <cmath>

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kSearched = 64;  // numbers that are searched for together
constexpr int kNext = 16;               // pieces that are passed before

// The line from knot k to the next one.
class Piece {
 public:
  Piece(const InterpolateArgs& args, std::int64_t k) noexcept
      : x0_(args.knots[k]), x1_(args.knots[k + 1]), y0_(args.values[k]), y1_(args.values[k + 1]) {
    slope_ = (y1_ - y0_) / (x1_ - x0_);
  }
  bool has(double x) const noexcept { return x >= x0_ && x < x1_; }
  double value(double x) const noexcept {
    const double y = slope_ * (x - x0_) + y0_;
    return x == x0_ ? y0_ : std::isnan(y) ? beside_infinity(x) : y;
  }

 private:
  // From the other end, or a level line.
  double beside_infinity(double x) const noexcept {
    const double y = slope_ * (x - x1_) + y1_;
    return std::isnan(y) && y0_ == y1_ ? y0_ : y;
  }

  double x0_, x1_, y0_, y1_, slope_;
};

// low[j]: the last knot that is not larger than at[j], -1 where all are, for j < kSearched; in step and without
// branches, so that loads do not wait for each other.
void find_places(const InterpolateArgs& args, const double* at, std::int64_t* low) noexcept {
  std::fill_n(low, kSearched, std::int64_t{-1});
  // Of the n knots behind knot `low`, those that are not larger are counted still.
  std::int64_t n = args.n;
  for (; n > 1; n -= n / 2)
    for (std::int64_t j = 0; j < kSearched; ++j) low[j] += args.knots[low[j] + n / 2] <= at[j] ? n / 2 : 0;
  for (std::int64_t j = 0; j < kSearched; ++j) low[j] += args.knots[low[j] + 1] <= at[j] ? 1 : 0;
}

// Of a number behind knot `low`.
double value_at(const InterpolateArgs& args, double x, std::int64_t low) noexcept {
  if (std::isnan(x)) return x;
  if (low < 0) return args.left;
  if (low < args.n - 1) return Piece(args, low).value(x);
  return x > args.knots[args.n - 1] ? args.right : args.values[args.n - 1];
}

// The numbers from `i` on, as far as each has its piece not far behind that of the one before it, the first at `k`;
// returns the number with which that ends.
std::int64_t walk(const InterpolateArgs& args, std::int64_t i, std::int64_t k) noexcept {
  while (i < args.count) {
    for (int tried = 0; tried < kNext && k + 1 < args.n && args.at[i] >= args.knots[k + 1]; ++tried) ++k;
    if (k + 1 >= args.n) return i;
    const Piece piece(args, k);
    if (!piece.has(args.at[i])) return i;
    do args.out[i] = piece.value(args.at[i]);
    while (++i < args.count && piece.has(args.at[i]));
  }
  return i;
}

}  // namespace

void interpolate(const InterpolateArgs& args) noexcept {
  for (std::int64_t i = 0; i < args.count;) {
    const std::int64_t searched = std::min(kSearched, args.count - i);
    double at[kSearched];
    std::int64_t low[kSearched];
    std::fill(std::copy_n(args.at + i, searched, at), at + kSearched, args.at[i]);
    find_places(args, at, low);
    for (std::int64_t j = 0; j < searched; ++j) args.out[i + j] = value_at(args, at[j], low[j]);
    i += searched;
    i = walk(args, i, std::max(low[searched - 1], std::int64_t{0}));
  }
}

}  // namespace dlbridge::nd::host_kernels
