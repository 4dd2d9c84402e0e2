// Random numbers by Philox4x32-10 (Salmon et al., SC 2011), the same on host and device: each value is a function of
// the seed, its counter and its place in that counter's block of four 32-bit words, so that neither the grid nor the
// number of threads matters.
//
// Element i of a call takes counter `offset + i / k`, place `i % k`; k = elements_per_counter(distribution, dtype):
//   k = 4: one word an element: float16, bfloat16 and float32; integers of 8 and 16 bits and bool.
//          A normal pair (elements 2j, 2j + 1) shares its two words: the radius and the angle of Box-Muller.
//   k = 2: two words an element: float64; integers of 32 and 64 bits; formulas of a uniform number, which are computed
//          in float64. A float64 normal pair shares all four words.
//   k = 1: variates by rejection, and of two numbers.
// The counter is the low half of Philox's 128 bits. The high half is 0; what is rejected is drawn again from the same
// place of the blocks with the high half 1, 2, …
// A generator advances its offset by counters_used().
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/types.h"

#if defined(__CUDACC__)
#define DLBRIDGE_ND_NOINLINE __noinline__
#else
#define DLBRIDGE_ND_NOINLINE
#endif

namespace dlbridge::nd::philox {

constexpr int elements_per_counter(Distribution distribution, DType dtype) noexcept {
  if (distribution == Distribution::kInteger) return info(dtype).itemsize <= 2 ? 4 : 2;
  if (distribution >= Distribution::kGamma) return 1;
  if (distribution >= Distribution::kLaplace) return 2;
  return dtype == DType::kFloat64 ? 2 : 4;
}

// How far a call for n elements moves the generator's offset.
constexpr std::uint64_t counters_used(Distribution distribution, DType dtype, std::int64_t n) noexcept {
  const auto k = static_cast<std::uint64_t>(elements_per_counter(distribution, dtype));
  return (static_cast<std::uint64_t>(n) + k - 1) / k;
}

inline constexpr int kRounds = 10;
inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;

struct Block {
  std::uint32_t word[4];
};

// The key of every round, made once a call.
struct Keys {
  std::uint32_t key[kRounds][2];
};

constexpr Keys make_keys(std::uint64_t seed) noexcept {
  Keys keys{};
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (auto& key : keys.key) {
    key[0] = k0;
    key[1] = k1;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return keys;
}

DLBRIDGE_ND_HD inline void round(std::uint32_t (&x)[4], const std::uint32_t (&key)[2]) noexcept {
  const std::uint64_t p0 = std::uint64_t{kMultiplier0} * x[0];
  const std::uint64_t p1 = std::uint64_t{kMultiplier1} * x[2];
  x[0] = static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ key[0];
  x[1] = static_cast<std::uint32_t>(p1);
  x[2] = static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ key[1];
  x[3] = static_cast<std::uint32_t>(p0);
}

DLBRIDGE_ND_HD inline Block generate(const Keys& keys, std::uint64_t counter, std::uint64_t high = 0) noexcept {
  Block b{{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
           static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)}};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < kRounds; ++i) round(b.word, keys.key[i]);
  return b;
}

DLBRIDGE_ND_HD inline std::uint64_t word64(const Block& b, int place) noexcept {
  return b.word[2 * place] | std::uint64_t{b.word[2 * place + 1]} << 32;
}

// --- mathematics ----------------------------------------------------------------------------------------------------

// -ln(v) for 0 < v <= 1. The device's logarithm unit has an absolute error of 2^-22 near 1, which ruins small results;
// there 1 - v is exact, and a polynomial in it takes over (relative error 2^-24.5). Elsewhere the unit is good to 2^-21
// relative. The host's logf is within 1 ulp everywhere.
DLBRIDGE_ND_HD inline float minus_log(float v) noexcept {
#if defined(__CUDA_ARCH__)
  const float f = 1.0f - v;
  float p = fmaf(f, 0.33570963f, 0.14670333f);
  p = fmaf(f, p, 0.2571102f);
  p = fmaf(f, p, 0.3329307f);
  p = fmaf(f, p, 0.5000073f);
  p = fmaf(f, p, 1.0f) * f;
  float log2;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(v));
  return v > 0.75f ? p : log2 * -0.69314718f;
#else
  return -std::log(v);
#endif
}
DLBRIDGE_ND_HD inline double minus_log(double v) noexcept { return -log(v); }

DLBRIDGE_ND_HD inline float fast_sqrt(float x) noexcept {
#if defined(__CUDA_ARCH__)
  float r;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));  // relative error 2^-23, and 0 for 0
  return r;
#else
  return std::sqrt(x);
#endif
}

// x * y + z without a fused multiply-add, which the host has not: both sides round the product.
template <class A>
DLBRIDGE_ND_HD inline A product_plus(A x, A y, A z) noexcept {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<A, double>) return __dadd_rn(__dmul_rn(x, y), z);
  else return __fadd_rn(__fmul_rn(x, y), z);
#else
  A product = x * y;
  product += z;
  return product;
#endif
}

// A point on the unit circle from uniform bits: the two top bits choose the quadrant, the others the angle in
// [-pi/4, pi/4) around its axis. Polynomials: absolute error below 2^-24 for both coordinates, of doubles below 2^-52.
DLBRIDGE_ND_HD inline void unit_circle(std::uint32_t bits, float& x, float& y) noexcept {
  const float angle = static_cast<float>(static_cast<std::int32_t>(bits << 2)) * 0x1.921fb6p-32f;  // pi/4 * 2^-31
  const float square = angle * angle;
  float c = square * -0.0013597823f + 0.041656293f;
  c = square * c - 0.49999896f;
  c = square * c + 1.0f;
  float s = square * -0.00019515282f + 0.00833216f;
  s = square * s - 0.16666655f;
  s = (square * angle) * s + angle;
  c = detail::float_from_bits(detail::float_bits(c) ^ (bits & 0x80000000u));
  const bool swap = (bits & 0x40000000u) != 0;
  x = swap ? s : c;
  y = swap ? c : s;
}
// Of 64 bits by halves, for whose conversion every machine has vectors.
DLBRIDGE_ND_HD inline void unit_circle(std::uint32_t low, std::uint32_t high, double& x, double& y) noexcept {
  const double upper = static_cast<std::int32_t>(high << 2 | low >> 30);
  const double angle = (upper * 0x1p32 + static_cast<double>(low << 2)) * 0x1p-65;  // of pi: [-1/4, 1/4)
  const double square = angle * angle;
  double c = square * -0.00010356747255199479 + 0.0019294657440800042;
  c = square * c - 0.025806885652951306;
  c = square * c + 0.23533063019088787;
  c = square * c - 1.3352627688519174;
  c = square * c + 4.058712126416747;
  c = square * c - 4.934802200544679;
  c = square * c + 1.0;
  double s = square * 0.000461531855383581 - 0.007370021586907771;
  s = square * s + 0.08214586918000175;
  s = square * s - 0.5992645289396449;
  s = square * s + 2.5501640398733763;
  s = square * s - 5.167712780049954;
  s = (square * angle) * s + angle * 3.141592653589793;
  // By masks: the quadrant is as random as can be, and a branch would be foretold for half of the numbers.
  const std::uint64_t quadrant = high >> 30, c_bits = bits_as<std::uint64_t>(c) ^ quadrant >> 1 << 63;
  const std::uint64_t swapped = (c_bits ^ bits_as<std::uint64_t>(s)) & (0 - (quadrant & 1));
  x = bits_as<double>(c_bits ^ swapped);
  y = bits_as<double>(bits_as<std::uint64_t>(s) ^ swapped);
}

// (bits + 1/2) / 2^32, rounded: in [2^-33, 1]. 53 bits: in (0, 1].
DLBRIDGE_ND_HD inline float open_unit(std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return fmaf(static_cast<float>(bits), 0x1p-32f, 0x1p-33f);
#else
  return static_cast<float>(bits) * 0x1p-32f + 0x1p-33f;
#endif
}
DLBRIDGE_ND_HD inline double open_unit(std::uint32_t low, std::uint32_t high) noexcept {
  return (static_cast<double>(high) * 0x1p21 + static_cast<double>((low >> 11) + 1)) * 0x1p-53;
}
DLBRIDGE_ND_HD inline double open_unit(std::uint64_t bits) noexcept {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

// A block, and two independent normal numbers of variance 1/2 that its words make (Box-Muller): 53 bits for the radius,
// 64 for the angle.
struct NormalBlock : Block {
  double x, y;
  DLBRIDGE_ND_HD NormalBlock(const Block& block) noexcept : Block(block) {
    unit_circle(word[2], word[3], x, y);
    const double radius = sqrt(minus_log(open_unit(word[0], word[1])));
    x *= radius;
    y *= radius;
  }
  NormalBlock(const Block& block, double first, double second) noexcept : Block(block), x(first), y(second) {}
};

// Uniform in [0, 1): a multiple of 2^-24 or 2^-53, truncated to the precision of T so that its rounding never gives 1.
template <class T>
DLBRIDGE_ND_HD inline arith_t<T> unit(const Block& b, int place) noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(word64(b, place) >> 11) * 0x1p-53;
  } else {
    const float u = static_cast<float>(b.word[place] >> 8) * 0x1p-24f;
    if constexpr (std::is_same_v<T, float16>) return detail::float_from_bits(detail::float_bits(u) & ~0x1fffu);
    if constexpr (std::is_same_v<T, bfloat16>) return detail::float_from_bits(detail::float_bits(u) & ~0xffffu);
    return u;
  }
}

// The next value of T after x towards `target`, both finite and different.
template <class T>
T next_towards(T x, T target) noexcept {
  if constexpr (is_half_v<T>) {
    const bool up = to_float(x) < to_float(target);
    if ((x.bits & 0x7fffu) == 0) return T{static_cast<std::uint16_t>(up ? 1u : 0x8001u)};
    const bool grows = up == ((x.bits & 0x8000u) == 0);
    return T{static_cast<std::uint16_t>(grows ? x.bits + 1 : x.bits - 1)};
  } else {
    return std::nextafter(x, target);
  }
}

// --- distributions: kCount elements from the block of one counter, a NormalBlock where kNormal says so ---------------

template <class Sampler>
constexpr bool takes_normals() noexcept {
  if constexpr (requires { Sampler::kNormal; }) return Sampler::kNormal;
  else return false;
}

// [a, b), or (b, a] when b is the smaller: the ends are rounded to T, and the far one is never returned.
template <class T>
struct Uniform {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kUniform, dtype_of_native<T>::value);
  arith_t<T> start, width, least, most;

  static Uniform make(const RandomArgs& args) noexcept {
    using A = arith_t<T>;
    const T a = cast<T>(args.a), b = cast<T>(args.b);
    const A first = cast<A>(a), end = cast<A>(b);
    const A last = first == end ? first : cast<A>(next_towards(b, a));
    return {first, end - first, first < last ? first : last, first < last ? last : first};
  }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys&, std::uint64_t, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) {
      arith_t<T> x = product_plus(unit<T>(block, i), width, start);
      x = x < least ? least : x;
      out[i] = cast<T>(x > most ? most : x);
    }
  }
};

// Uniform on [0, 1): the same numbers as Uniform's, without the steps that change nothing there.
template <class T>
struct Unit {
  using value_type = T;
  static constexpr int kCount = Uniform<T>::kCount;

  static constexpr bool serves(const RandomArgs& args) noexcept { return args.a == 0 && args.b == 1; }
  static Unit make(const RandomArgs&) noexcept { return {}; }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys&, std::uint64_t, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) out[i] = cast<T>(unit<T>(block, i));
  }
};

template <class T>
struct Normal {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kNormal, dtype_of_native<T>::value);
  static constexpr bool kNormal = std::is_same_v<T, double>;
  using Start = std::conditional_t<kNormal, NormalBlock, Block>;
  arith_t<T> mean, scale;  // scale: standard deviation * sqrt(2)

  static Normal make(const RandomArgs& args) noexcept {
    return {static_cast<arith_t<T>>(args.a), static_cast<arith_t<T>>(args.b * 1.41421356237309504880)};
  }
  DLBRIDGE_ND_HD void operator()(const Start& block, const Keys&, std::uint64_t, T* out) const noexcept {
    if constexpr (kNormal) {
      out[0] = block.x * scale + mean;
      out[1] = block.y * scale + mean;
    } else {
      arith_t<T> x, y;
      for (int i = 0; i < 4; i += 2) {
        const float radius = fast_sqrt(minus_log(open_unit(block.word[i]))) * scale;
        unit_circle(block.word[i + 1], x, y);
        out[i] = cast<T>(x * radius + mean);
        out[i + 1] = cast<T>(y * radius + mean);
      }
    }
  }
};

template <class T>
struct Exponential {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kExponential, dtype_of_native<T>::value);
  arith_t<T> scale;

  static Exponential make(const RandomArgs& args) noexcept { return {static_cast<arith_t<T>>(args.a)}; }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys&, std::uint64_t, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<T, double>) out[i] = minus_log(open_unit(word64(block, i))) * scale;
      else out[i] = cast<T>(minus_log(open_unit(block.word[i])) * scale);
    }
  }
};

DLBRIDGE_ND_HD inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#endif
}

// low + [0, range), exactly uniform: multiply-shift, with the draws that would favour a value rejected (Lemire, 2019).
// A range of 0 takes the bits as they are. One word serves 8 and 16 bits (range up to 2^32), two the wider ones.
template <class T>
struct Integer {
  using value_type = T;
  static constexpr int kCount = elements_per_counter(Distribution::kInteger, dtype_of_native<T>::value);
  using Word = std::conditional_t<kCount == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t low, range;
  Word reject_below;  // 2^bits mod range

  static constexpr bool serves(const RandomArgs& args) noexcept {
    return kCount == 2 || args.int_range <= std::uint64_t{1} << 32;
  }
  static Integer make(const RandomArgs& args) noexcept {
    const std::uint64_t range = args.int_range;
    std::uint64_t excess = 0;
    if (range != 0) excess = kCount == 4 ? (std::uint64_t{1} << 32) % range : (0 - range) % range;
    return {static_cast<std::uint64_t>(args.int_low), range, static_cast<Word>(excess)};
  }
  DLBRIDGE_ND_HD static Word word(const Block& block, int place) noexcept {
    if constexpr (kCount == 4) return block.word[place];
    else return word64(block, place);
  }
  // The value of a draw, or false to reject it.
  DLBRIDGE_ND_HD bool accept(Word draw, std::uint64_t& value) const noexcept {
    if (range == 0) {
      value = draw;
      return true;
    }
    if constexpr (kCount == 4) {
      const std::uint64_t product = draw * range;
      value = product >> 32;
      return static_cast<std::uint32_t>(product) >= reject_below;
    } else {
      value = multiply_high(draw, range);
      return draw * range >= reject_below;
    }
  }
  // Out of line on the device: it runs rarely, and would be unrolled many times.
  DLBRIDGE_ND_NOINLINE DLBRIDGE_ND_HD std::uint64_t draw_again(const Keys& keys, std::uint64_t counter,
                                                               int place) const noexcept {
    std::uint64_t value;
    for (std::uint64_t attempt = 1; !accept(word(generate(keys, counter, attempt), place), value); ++attempt) {
    }
    return value;
  }
  DLBRIDGE_ND_HD void operator()(const Block& block, const Keys& keys, std::uint64_t counter, T* out) const noexcept {
    for (int i = 0; i < kCount; ++i) {
      std::uint64_t value;
      if (!accept(word(block, i), value)) value = draw_again(keys, counter, i);
      out[i] = static_cast<T>(low + value);
    }
  }
};

}  // namespace dlbridge::nd::philox
