#include "ndarray/kernels/host/correlate.h"

#include <algorithm>
#include <type_traits>

#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kFactors = 3;      // that are multiplied by in one go
constexpr std::int64_t kTogether = 1024;  // sums that stay in the nearest cache while each factor is added to them

// out[k] = a[k] * v[0] + … + a[k + factors - 1] * v[factors - 1], added to what is there unless `anew`.
template <int factors, bool anew, class T>
DLBRIDGE_ND_CLONES void add_products(const T* a, const T* v, T* out, std::int64_t n) noexcept {
  T by[factors];
  std::copy_n(v, factors, by);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t k = 0; k < n; ++k) {
    T sum = anew ? T(0) : out[k];
    for (int i = 0; i < factors; ++i) sum += a[k + i] * by[i];
    out[k] = sum;
  }
}

template <bool anew, class T>
void add_group(std::int64_t factors, const T* a, const T* v, T* out, std::int64_t n) noexcept {
  if (factors == 1) add_products<1, anew>(a, v, out, n);
  else if (factors == 2) add_products<2, anew>(a, v, out, n);
  else add_products<kFactors, anew>(a, v, out, n);
}

}  // namespace

template <class T>
void correlate(const CorrelateArgs<T>& args) noexcept {
  static_assert(kFactors == 3);
  for (std::int64_t first = 0; first < args.count; first += kTogether) {
    const std::int64_t end = std::min(args.count, first + kTogether);
    for (std::int64_t i = 0; i < args.m; i += kFactors) {
      const std::int64_t factors = std::min(kFactors, args.m - i);
      const std::int64_t shift = i - args.before;  // of the element that sum 0 takes first
      const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t k) {
        if (from < to) add_group<false>(1, args.a + from + shift + k, args.v + i + k, args.out + from, to - from);
      };
      // Sums for which all of these elements are there, and, factor by factor, those before and behind them.
      const std::int64_t from = std::clamp(-shift, first, end);
      const std::int64_t to = std::clamp(args.n - shift - factors + 1, from, end);
      if (i == 0) std::fill(args.out + first, args.out + from, T(0)), std::fill(args.out + to, args.out + end, T(0));
      const auto all = i == 0 ? &add_group<true, T> : &add_group<false, T>;
      if (from < to) all(factors, args.a + from + shift, args.v + i, args.out + from, to - from);
      for (std::int64_t k = 0; k < factors; ++k) {
        const std::int64_t begin = std::max(first, -shift - k), stop = std::min(end, args.n - shift - k);
        add(begin, std::min(stop, from), k);
        add(std::max(begin, to), stop, k);
      }
    }
  }
}
template void correlate<float>(const CorrelateArgs<float>&) noexcept;
template void correlate<double>(const CorrelateArgs<double>&) noexcept;
template void correlate<std::uint32_t>(const CorrelateArgs<std::uint32_t>&) noexcept;
template void correlate<std::uint64_t>(const CorrelateArgs<std::uint64_t>&) noexcept;

}  // namespace dlbridge::nd::host_kernels
