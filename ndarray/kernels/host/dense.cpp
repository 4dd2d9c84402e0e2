// Functions of dense elements on the host.
#include "ndarray/kernels/functors/dense.h"

#include <algorithm>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/bits.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/whole_division.h"

namespace dlbridge::nd::host_kernels {
namespace {

template <class F, bool repeats_first, bool repeats_second>
void map(F f, const DenseArgs& args) noexcept {
  const auto* x = static_cast<const typename F::In*>(args.in[0]);
  const auto* y = static_cast<const typename F::In*>(args.in[1]);
  auto* first = static_cast<typename F::First*>(args.out[0]);
  auto* second = static_cast<typename F::Second*>(args.out[1]);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < args.n; ++i) {
    const auto a = x[repeats_first ? 0 : i];
    const auto b = F::kInputs == 1 ? a : y[repeats_second ? 0 : i];
    typename F::First one;
    typename F::Second other;
    f(a, b, one, other);
    first[i] = one;
    if constexpr (!std::is_same_v<typename F::Second, Nothing>) second[i] = other;
  }
}
template <class F, bool repeats_first, bool repeats_second>
DLBRIDGE_ND_CLONES void map_in_vectors(F f, const DenseArgs& args) noexcept {
  map<F, repeats_first, repeats_second>(f, args);
}
template <class F, bool repeats_first, bool repeats_second>
int run_as(F f, const DenseArgs& args) noexcept {
  using In = typename F::In;
  if constexpr (std::is_same_v<F, IsClose<In>> && is_half_v<In>)  // which only tests ask for
    map<F, repeats_first, repeats_second>(f, args);
  else map_in_vectors<F, repeats_first, repeats_second>(f, args);
  return 0;
}

template <class F>
int run(F f, const DenseArgs& args) noexcept {
  if constexpr (F::kInputs == 2) {
    if (args.repeats[0] && args.n > 1) return run_as<F, true, false>(f, args);
    if (args.repeats[1] && args.n > 1) return run_as<F, false, true>(f, args);
  }
  return run_as<F, false, false>(f, args);
}

// Integers by one division for both results; a number for one of the operands is repeated.
template <class T>
DLBRIDGE_ND_CLONES void divide_integers(const DenseArgs& args) noexcept {
  T numbers[2][kDenseBlock];
  const T* in[] = {static_cast<const T*>(args.in[0]), static_cast<const T*>(args.in[1])};
  for (int k = 0; k < 2; ++k)
    if (args.repeats[k]) std::fill_n(numbers[k], std::min(args.n, kDenseBlock), *in[k]), in[k] = numbers[k];
  for (std::int64_t done = 0; done < args.n; done += kDenseBlock) {
    auto* const quotient = static_cast<T*>(args.out[0]) + done;
    auto* const rest = static_cast<T*>(args.out[1]) + done;
    divide_wholes(in[0] + (args.repeats[0] ? 0 : done), in[1] + (args.repeats[1] ? 0 : done),
                  std::min(args.n - done, kDenseBlock), [=](std::int64_t i, WholeDivision<T> parts) noexcept {
                    quotient[i] = parts.quotient;
                    rest[i] = parts.rest;
                  });
  }
}

}  // namespace

int dense(const DenseArgs& args) {
  const auto* in = static_cast<const std::uint8_t*>(args.in[0]);
  auto* out = static_cast<std::uint8_t*>(args.out[0]);
  switch (args.op) {
    case DenseOp::kPackBits: return pack_bits(in, args.n, args.flag, out), 0;
    case DenseOp::kUnpackBits: return unpack_bits(in, args.n, args.flag, out), 0;
    case DenseOp::kDivide:
      if (contains(kIntSet, args.dtype))
        return visit_dtype<kIntSet>(args.dtype, [&]<class T>() { return divide_integers<T>(args), 0; }, 0);
      [[fallthrough]];
    default: return with_dense_functor(args, [&](auto f) { return run(f, args); });
  }
}

}  // namespace dlbridge::nd::host_kernels
