// Random numbers on the host: the counters of kernels/random/philox.h in order.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/exp_log.h"
#include "ndarray/kernels/host/inner_loop.h"
#include "ndarray/kernels/host/philox_lanes.h"
#include "ndarray/kernels/random/samplers.h"

namespace dlbridge::nd::host_kernels {
namespace {

// The normal numbers of the blocks as NormalBlock has them, but for the last digit of the logarithm.
struct Normals {
  double x[kLanes], y[kLanes], logarithm[kLanes];
};

DLBRIDGE_ND_CLONES void make_points(const Lanes& lanes, Normals& normals) {
  for (int i = 0; i < kLanes; ++i) {
    philox::unit_circle(lanes.x[2][i], lanes.x[3][i], normals.x[i], normals.y[i]);
    normals.logarithm[i] = philox::open_unit(lanes.x[0][i], lanes.x[1][i]);
  }
}

DLBRIDGE_ND_CLONES void stretch(Normals& normals) {
  for (int i = 0; i < kLanes; ++i) {
    const double radius = std::sqrt(-normals.logarithm[i]);
    normals.x[i] *= radius;
    normals.y[i] *= radius;
  }
}

void make_normals(const VectorFunction<double>& log, const Lanes& lanes, Normals& normals) {
  make_points(lanes, normals);
  if (log.run != nullptr) log(normals.logarithm, normals.logarithm, kLanes);
  else
    for (double& value : normals.logarithm) value = std::log(value);
  stretch(normals);
}

// What a functor of philox.h makes of the blocks, value by value; `normals` for those that take them.
template <class Sampler>
void make_one_by_one(const Sampler& sampler, const philox::Keys& keys, std::uint64_t counter, int used,
                     const Lanes& lanes, const Normals& normals, typename Sampler::value_type* out) {
  for (int i = 0; i < used; ++i, ++counter, out += Sampler::kCount) {
    if constexpr (philox::takes_normals<Sampler>())
      sampler(philox::NormalBlock(lanes.block(i), normals.x[i], normals.y[i]), keys, counter, out);
    else sampler(lanes.block(i), keys, counter, out);
  }
}

template <class Sampler>
void make(const Sampler& sampler, const philox::Keys& keys, std::uint64_t counter, int used, const Lanes& lanes,
          const Normals& normals, typename Sampler::value_type* out) {
  make_one_by_one(sampler, keys, counter, used, lanes, normals, out);
}

// The same of functors that a vector computes. Of all lanes, so that their number is known.
template <class Sampler>
DLBRIDGE_ND_CLONES void make_plain(const Sampler& sampler, const Lanes& lanes,
                                   typename Sampler::value_type* __restrict out) {
  for (int i = 0; i < kLanes; ++i) sampler(lanes.block(i), philox::Keys{}, 0, out + i * Sampler::kCount);
}
template <class T>
void make(const philox::Unit<T>& sampler, const philox::Keys&, std::uint64_t, int, const Lanes& lanes, const Normals&,
          T* out) {
  make_plain(sampler, lanes, out);
}
template <class T>
void make(const philox::Uniform<T>& sampler, const philox::Keys&, std::uint64_t, int, const Lanes& lanes,
          const Normals&, T* out) {
  make_plain(sampler, lanes, out);
}

// Exponential numbers as philox.h has them, but for the last digit of the logarithm.
template <class T>
DLBRIDGE_ND_CLONES void make_open_units(const Lanes& lanes, arith_t<T>* __restrict u) {
  constexpr int kCount = philox::Exponential<T>::kCount;
  for (int i = 0; i < kLanes; ++i) {
    for (int place = 0; place < kCount; ++place) {
      if constexpr (std::is_same_v<T, double>)
        u[kCount * i + place] = philox::open_unit(philox::word64(lanes.block(i), place));
      else u[kCount * i + place] = philox::open_unit(lanes.x[place][i]);
    }
  }
}
template <class T>
DLBRIDGE_ND_CLONES void scale_logarithms(arith_t<T> scale, const arith_t<T>* logarithms, std::int64_t n,
                                         T* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = cast<T>(-logarithms[i] * scale);
}
template <class T>
void make(const philox::Exponential<T>& sampler, const philox::Keys& keys, std::uint64_t counter, int used,
          const Lanes& lanes, const Normals& normals, T* out) {
  constexpr std::int64_t kCount = philox::Exponential<T>::kCount;
  const VectorFunction<arith_t<T>> log = exp_log_function<arith_t<T>>(Op::kLog);
  if (log.run == nullptr) return make_one_by_one(sampler, keys, counter, used, lanes, normals, out);
  arith_t<T> u[kCount * kLanes];
  make_open_units<T>(lanes, u);
  const std::int64_t n = used * kCount;
  log(u, u, (n + kBlock - 1) / kBlock * kBlock);
  scale_logarithms(sampler.scale, u, n, out);
}

// Of formulas of a uniform number, whose logarithm a vector computes.
template <Distribution kOf, class T>
DLBRIDGE_ND_CLONES void apply(const double (&p)[kParameters], const double* u, const double* logarithms, int n,
                              T* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = philox::stored<T>(philox::quantile<kOf>(p, u[i], logarithms[i]));
}
DLBRIDGE_ND_CLONES void make_units(const Lanes& lanes, double* __restrict u) {
  for (int i = 0; i < kLanes; ++i)
    for (int place = 0; place < 2; ++place) u[2 * i + place] = philox::inner_unit(lanes.block(i), place);
}
template <Distribution kOf, class T>
void apply_each(const philox::Quantile<T>& sampler, std::int64_t first, const double* u, const double* logarithms,
                int n, T* out) {
  for (int i = 0; i < n && first + i < sampler.n; ++i) {
    double p[kParameters];
    sampler.parameters.find(first + i, p);
    philox::prepare(kOf, p);
    out[i] = philox::stored<T>(philox::quantile<kOf>(p, u[i], logarithms[i]));
  }
}
template <class T>
void make(const philox::Quantile<T>& sampler, const philox::Keys&, std::uint64_t counter, int used, const Lanes& lanes,
          const Normals&, T* out) {
  double u[2 * kLanes], logarithms[2 * kLanes];
  make_units(lanes, u);
  const bool takes_logarithm = philox::takes_logarithm(sampler.distribution);
  const int n = 2 * used;
  if (const VectorFunction<double> log = exp_log_function<double>(Op::kLog); takes_logarithm && log.run != nullptr)
    log(u, logarithms, n <= kLanes ? kLanes : 2 * kLanes);
  else
    for (int i = 0; i < n; ++i) logarithms[i] = takes_logarithm ? std::log(u[i]) : 0;
  philox::visit_formula(sampler.distribution, [&]<Distribution kOf>() {
    const auto first = static_cast<std::int64_t>(counter - sampler.offset) * 2;
    if (sampler.parameters.in_arrays) apply_each<kOf>(sampler, first, u, logarithms, n, out);
    else apply<kOf>(sampler.parameters.of_call, u, logarithms, n, out);
  });
}

// Four integers of one or two bytes.
template <class T>
using Four = std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>;
static_assert(std::endian::native == std::endian::little);

// Integers as if none were to be drawn again; false: one is. Of a word each: those of a place together, for the sake of
// vectors, and then in order.
template <class T>
DLBRIDGE_ND_CLONES bool multiply_words(const philox::Integer<T>& sampler, const Lanes& lanes, T* out) {
  const auto range = static_cast<std::uint32_t>(sampler.range), low = static_cast<std::uint32_t>(sampler.low);
  const std::uint32_t reject_below = static_cast<std::uint32_t>(sampler.reject_below);
  std::uint32_t values[4][kLanes], rejected = 0;
  for (int place = 0; place < 4; ++place) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t product = std::uint64_t{lanes.x[place][i]} * range;
      values[place][i] = static_cast<std::uint32_t>(product >> 32);
      rejected |= static_cast<std::uint32_t>(product) < reject_below ? 1u : 0u;
    }
  }
  const auto& from = range == 0 ? lanes.x : values;  // all words, or 2^32
  Four<T> together[kLanes];                          // vectors do not store single bytes
  for (int i = 0; i < kLanes; ++i) {
    const auto part = [&](int place) {
      constexpr Four<T> kMask = (Four<T>{1} << 8 * sizeof(T)) - 1;
      const std::uint32_t value = low + from[place][i];
      return (std::is_same_v<T, bool> ? Four<T>{value != 0} : value & kMask) << 8 * static_cast<int>(sizeof(T)) * place;
    };
    together[i] = part(0) | part(1) | part(2) | part(3);
  }
  std::memcpy(out, together, sizeof together);
  return rejected == 0;
}

// Of two words each: the product of 128 bits by its halves' halves, which vectors can multiply; those of a range's
// upper half are left out where it is 0.
template <bool kShort, class T>
DLBRIDGE_ND_CLONES bool multiply_pairs(const philox::Integer<T>& sampler, const Lanes& lanes, T* __restrict out) {
  constexpr std::uint64_t kLow = 0xffffffffu;
  const auto r0 = static_cast<std::uint32_t>(sampler.range), r1 = static_cast<std::uint32_t>(sampler.range >> 32);
  const std::uint64_t low = sampler.low, reject_below = sampler.reject_below;
  std::uint64_t values[2][kLanes], rejected = 0;
  for (int place = 0; place < 2; ++place) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint32_t w0 = lanes.x[2 * place][i], w1 = lanes.x[2 * place + 1][i];
      const std::uint64_t a = std::uint64_t{w0} * r0, c = std::uint64_t{w1} * r0;
      const std::uint64_t b = kShort ? 0 : std::uint64_t{w0} * r1, d = kShort ? 0 : std::uint64_t{w1} * r1;
      const std::uint64_t middle = (a >> 32) + (b & kLow) + (c & kLow);
      values[place][i] = low + d + (b >> 32) + (c >> 32) + (middle >> 32);
      rejected |= (middle << 32 | (a & kLow)) < reject_below ? 1u : 0u;
    }
  }
  for (int i = 0; i < kLanes; ++i)
    for (int place = 0; place < 2; ++place) out[i * 2 + place] = static_cast<T>(values[place][i]);
  return rejected == 0;
}
template <class T>
DLBRIDGE_ND_CLONES void take_pairs(const philox::Integer<T>& sampler, const Lanes& lanes, T* __restrict out) {
  for (int i = 0; i < kLanes; ++i)
    for (int place = 0; place < 2; ++place)
      out[i * 2 + place] = static_cast<T>(sampler.low + philox::word64(lanes.block(i), place));
}

template <class T>
bool make_at_once(const philox::Integer<T>& sampler, const Lanes& lanes, T* out) {
  if constexpr (philox::Integer<T>::kCount == 4) return multiply_words(sampler, lanes, out);
  else if (sampler.range >> 32 != 0) return multiply_pairs<false>(sampler, lanes, out);
  else if (sampler.range != 0) return multiply_pairs<true>(sampler, lanes, out);
  else take_pairs(sampler, lanes, out);
  return true;
}
template <class T>
void make(const philox::Integer<T>& sampler, const philox::Keys& keys, std::uint64_t counter, int used,
          const Lanes& lanes, const Normals& normals, T* out) {
  if (make_at_once(sampler, lanes, out)) return;
  make_one_by_one(sampler, keys, counter, used, lanes, normals, out);
}

template <class Sampler>
int fill(const Sampler& sampler, const RandomArgs& args) {
  using T = typename Sampler::value_type;
  constexpr std::int64_t kBatch = std::int64_t{kLanes} * Sampler::kCount;
  const philox::Keys keys = philox::make_keys(args.seed);
  auto* out = static_cast<T*>(args.out);
  std::uint64_t counter = args.offset;
  const VectorFunction<double> log = exp_log_function<double>(Op::kLog);
  Lanes lanes;
  Normals normals;
  T values[kBatch];
  for (std::int64_t first = 0; first < args.n; first += kBatch, counter += kLanes) {
    const std::int64_t count = std::min(kBatch, args.n - first);
    const int used = static_cast<int>((count + Sampler::kCount - 1) / Sampler::kCount);
    generate(keys, counter, lanes);
    if constexpr (philox::takes_normals<Sampler>()) make_normals(log, lanes, normals);
    const bool whole = count == kBatch;
    make(sampler, keys, counter, used, lanes, normals, whole ? out + first : values);
    if (!whole) std::memcpy(out + first, values, static_cast<std::size_t>(count) * sizeof(T));
  }
  return 0;
}

}  // namespace

int random(const RandomArgs& args) {
  return philox::visit_sampler(args, [&](const auto& sampler) { return fill(sampler, args); });
}

}  // namespace dlbridge::nd::host_kernels
