// Vectors of numbers: those of 64 bytes of AVX-512, and those of 32 bytes of AVX2, which are of integers.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define DLBRIDGE_ND_AVX512_TARGET gnu::target("avx512f,avx512dq,bmi2,popcnt")
#define DLBRIDGE_ND_AVX512 [[DLBRIDGE_ND_AVX512_TARGET, gnu::always_inline]] inline
#define DLBRIDGE_ND_AVX2_TARGET gnu::target("avx2,bmi2,popcnt")
#define DLBRIDGE_ND_AVX2 [[DLBRIDGE_ND_AVX2_TARGET, gnu::always_inline]] inline

#if !defined(__clang__)  // g++ 12 warns of the vectors that its headers leave undefined
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace dlbridge::nd::host_kernels {
namespace {

template <class T>
constexpr T kLargest = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
template <class T>
constexpr T kSmallest =
    std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();

// For each mask of lanes: first those that it has, then the others, as numbers of 8 elements or of the halves of 4.
template <int kCount>
struct Parts {
  std::uint8_t order[1 << kCount][8]{};
  constexpr Parts() noexcept {
    constexpr int kWords = 8 / kCount;
    for (unsigned mask = 0; mask < 1u << kCount; ++mask)
      for (int pass = 0, to = 0; pass < 2; ++pass)
        for (int lane = 0; lane < kCount; ++lane)
          for (int word = 0; word < kWords && (mask >> lane & 1) == (pass == 0 ? 1 : 0); ++word)
            order[mask][to++] = static_cast<std::uint8_t>(lane * kWords + word);
  }
};

template <int kCount>
constexpr Parts<kCount> kParts{};

// swap_into<d, mask>(): `v` with lanes i and i ^ d exchanged, where the mask says so, else `from`; d is a power of two.
// turn<n>(): each n lanes in reverse order.
namespace of_64_bytes {
template <int kBytes>
struct LaneMoves;
template <>
struct LaneMoves<8> {
  using V = __m512i;
  using Mask = std::uint8_t;
  template <int d, unsigned mask>
  DLBRIDGE_ND_AVX512 static V swap_into(V from, V v) noexcept {
    if constexpr (d == 1) return _mm512_mask_permutex_epi64(from, mask, v, 0xb1);
    else if constexpr (d == 2) return _mm512_mask_permutex_epi64(from, mask, v, 0x4e);
    else return _mm512_mask_shuffle_i64x2(from, mask, v, v, 0x4e);
  }
  template <int n>
  DLBRIDGE_ND_AVX512 static V turn(V v) noexcept {
    if constexpr (n == 2) return _mm512_permutex_epi64(v, 0xb1);
    else if constexpr (n == 4) return _mm512_permutex_epi64(v, 0x1b);
    else return _mm512_permutexvar_epi64(_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), v);
  }
  DLBRIDGE_ND_AVX512 static V load_into(V other, Mask mask, const void* p) noexcept {
    return _mm512_mask_loadu_epi64(other, mask, p);
  }
  DLBRIDGE_ND_AVX512 static void store_where(void* p, Mask mask, V v) noexcept { _mm512_mask_storeu_epi64(p, mask, v); }
};
template <>
struct LaneMoves<4> {
  using V = __m512i;
  using Mask = std::uint16_t;
  template <int d, unsigned mask>
  DLBRIDGE_ND_AVX512 static V swap_into(V from, V v) noexcept {
    if constexpr (d == 1) return _mm512_mask_shuffle_epi32(from, mask, v, static_cast<_MM_PERM_ENUM>(0xb1));
    else if constexpr (d == 2) return _mm512_mask_shuffle_epi32(from, mask, v, static_cast<_MM_PERM_ENUM>(0x4e));
    else if constexpr (d == 4) return _mm512_mask_shuffle_i32x4(from, mask, v, v, 0xb1);
    else return _mm512_mask_shuffle_i32x4(from, mask, v, v, 0x4e);
  }
  template <int n>
  DLBRIDGE_ND_AVX512 static V turn(V v) noexcept {
    if constexpr (n == 2) return _mm512_shuffle_epi32(v, static_cast<_MM_PERM_ENUM>(0xb1));
    else if constexpr (n == 4) return _mm512_shuffle_epi32(v, static_cast<_MM_PERM_ENUM>(0x1b));
    else if constexpr (n == 8)
      return _mm512_permutexvar_epi32(_mm512_set_epi32(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7), v);
    else return _mm512_permutexvar_epi32(_mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), v);
  }
  DLBRIDGE_ND_AVX512 static V compress(Mask mask, V v) noexcept { return _mm512_maskz_compress_epi32(mask, v); }
  DLBRIDGE_ND_AVX512 static V load_into(V other, Mask mask, const void* p) noexcept {
    return _mm512_mask_loadu_epi32(other, mask, p);
  }
  DLBRIDGE_ND_AVX512 static void store_where(void* p, Mask mask, V v) noexcept { _mm512_mask_storeu_epi32(p, mask, v); }
};

template <class T>
struct Lanes : LaneMoves<sizeof(T)> {
  using Moves = LaneMoves<sizeof(T)>;
  using Element = T;
  using typename Moves::Mask;
  using typename Moves::V;
  static constexpr int kCount = 64 / static_cast<int>(sizeof(T));
  static constexpr int kMaxColumn = 16;  // vectors that are sorted in registers
  static constexpr Mask kAll = static_cast<Mask>(~Mask{0});
  static constexpr bool kIsDouble = std::is_same_v<T, double>, kIsFloat = std::is_same_v<T, float>;

  DLBRIDGE_ND_AVX512 static V load(const T* p) noexcept { return _mm512_loadu_si512(p); }
  DLBRIDGE_ND_AVX512 static void store(T* p, V v) noexcept { _mm512_storeu_si512(p, v); }
  DLBRIDGE_ND_AVX512 static V fill(T x) noexcept {
    if constexpr (kIsDouble) return _mm512_castpd_si512(_mm512_set1_pd(x));
    else if constexpr (kIsFloat) return _mm512_castps_si512(_mm512_set1_ps(x));
    else if constexpr (sizeof(T) == 8) return _mm512_set1_epi64(static_cast<long long>(x));
    else return _mm512_set1_epi32(static_cast<int>(x));
  }
  static constexpr Mask first(int n) noexcept { return static_cast<Mask>(kAll >> (kCount - n)); }
  // The first n of them, or all where there are more, or none; the largest element behind them.
  DLBRIDGE_ND_AVX512 static V load_first(const T* p, int n) noexcept {
    return Moves::load_into(fill(kLargest<T>), first(std::clamp(n, 0, kCount)), p);
  }
  DLBRIDGE_ND_AVX512 static void store_first(T* p, int n, V v) noexcept {
    Moves::store_where(p, first(std::clamp(n, 0, kCount)), v);
  }
  DLBRIDGE_ND_AVX512 static Mask less(V a, V b) noexcept {
    if constexpr (kIsDouble) return _mm512_cmp_pd_mask(_mm512_castsi512_pd(a), _mm512_castsi512_pd(b), _CMP_LT_OQ);
    else if constexpr (kIsFloat) return _mm512_cmp_ps_mask(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), _CMP_LT_OQ);
    else if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_cmplt_epi64_mask(a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_cmplt_epu64_mask(a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_cmplt_epi32_mask(a, b);
    else return _mm512_cmplt_epu32_mask(a, b);
  }
  DLBRIDGE_ND_AVX512 static V min(V a, V b) noexcept {
    if constexpr (kIsDouble) return _mm512_castpd_si512(_mm512_min_pd(_mm512_castsi512_pd(a), _mm512_castsi512_pd(b)));
    else if constexpr (kIsFloat)
      return _mm512_castps_si512(_mm512_min_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
    else if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_min_epi64(a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_min_epu64(a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_min_epi32(a, b);
    else return _mm512_min_epu32(a, b);
  }
  // The larger ones where the mask says so, else `from`.
  template <unsigned mask>
  DLBRIDGE_ND_AVX512 static V max_into(V from, V a, V b) noexcept {
    if constexpr (kIsDouble)
      return _mm512_castpd_si512(
          _mm512_mask_max_pd(_mm512_castsi512_pd(from), mask, _mm512_castsi512_pd(a), _mm512_castsi512_pd(b)));
    else if constexpr (kIsFloat)
      return _mm512_castps_si512(
          _mm512_mask_max_ps(_mm512_castsi512_ps(from), mask, _mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
    else if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_mask_max_epi64(from, mask, a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_mask_max_epu64(from, mask, a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_mask_max_epi32(from, mask, a, b);
    else return _mm512_mask_max_epu32(from, mask, a, b);
  }
  // Puts what is below `bound` to `begin` and the others before `end`; returns how many are below. Between the two
  // there is room for a vector; of 8 lanes, which a table puts in order, what lies there is written as well.
  DLBRIDGE_ND_AVX512 static int part(V v, V bound, T* begin, T* end) noexcept {
    const Mask is_below = less(v, bound);
    const int below = std::popcount(is_below);
    if constexpr (kCount == 8) {
      const auto* const order = reinterpret_cast<const __m128i*>(kParts<8>.order[is_below]);
      v = _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(_mm_loadl_epi64(order)), v);
      store(begin, v);
      store(end - kCount, v);
    } else {
      const Mask others = static_cast<Mask>(~is_below);
      store(begin, Moves::compress(is_below, v));
      Moves::store_where(end - (kCount - below), first(kCount - below), Moves::compress(others, v));
    }
    return below;
  }
};
}  // namespace of_64_bytes

namespace of_32_bytes {
template <int kBytes>
struct LaneMoves {  // 4
  using V = __m256i;
  template <unsigned mask>
  DLBRIDGE_ND_AVX2 static V blend(V from, V v) noexcept {
    return _mm256_blend_epi32(from, v, mask);
  }
  template <int d>
  DLBRIDGE_ND_AVX2 static V swap(V v) noexcept {
    if constexpr (d == 1) return _mm256_shuffle_epi32(v, 0xb1);
    else if constexpr (d == 2) return _mm256_shuffle_epi32(v, 0x4e);
    else return _mm256_permute2x128_si256(v, v, 1);
  }
  template <int n>
  DLBRIDGE_ND_AVX2 static V turn(V v) noexcept {
    if constexpr (n == 2) return _mm256_shuffle_epi32(v, 0xb1);
    else if constexpr (n == 4) return _mm256_shuffle_epi32(v, 0x1b);
    else return _mm256_permutevar8x32_epi32(v, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  DLBRIDGE_ND_AVX2 static V fill(std::int64_t x) noexcept { return _mm256_set1_epi32(static_cast<int>(x)); }
  DLBRIDGE_ND_AVX2 static V first(int n) noexcept {
    return _mm256_cmpgt_epi32(fill(n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  }
  DLBRIDGE_ND_AVX2 static unsigned bits_of(V v) noexcept {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(v)));
  }
  DLBRIDGE_ND_AVX2 static V greater(V a, V b) noexcept { return _mm256_cmpgt_epi32(a, b); }
  DLBRIDGE_ND_AVX2 static V min(V a, V b) noexcept { return _mm256_min_epi32(a, b); }
  DLBRIDGE_ND_AVX2 static V max(V a, V b) noexcept { return _mm256_max_epi32(a, b); }
};
template <>
struct LaneMoves<8> {
  using V = __m256i;
  template <unsigned mask>
  DLBRIDGE_ND_AVX2 static V blend(V from, V v) noexcept {
    return _mm256_blend_epi32(from, v, 3 * ((mask & 1) | (mask & 2) << 1 | (mask & 4) << 2 | (mask & 8) << 3));
  }
  template <int d>
  DLBRIDGE_ND_AVX2 static V swap(V v) noexcept {
    if constexpr (d == 1) return _mm256_shuffle_epi32(v, 0x4e);
    else return _mm256_permute4x64_epi64(v, 0x4e);
  }
  template <int n>
  DLBRIDGE_ND_AVX2 static V turn(V v) noexcept {
    if constexpr (n == 2) return _mm256_shuffle_epi32(v, 0x4e);
    else return _mm256_permute4x64_epi64(v, 0x1b);
  }
  DLBRIDGE_ND_AVX2 static V fill(std::int64_t x) noexcept { return _mm256_set1_epi64x(x); }
  DLBRIDGE_ND_AVX2 static V first(int n) noexcept { return _mm256_cmpgt_epi64(fill(n), _mm256_set_epi64x(3, 2, 1, 0)); }
  DLBRIDGE_ND_AVX2 static unsigned bits_of(V v) noexcept {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(v)));
  }
  DLBRIDGE_ND_AVX2 static V greater(V a, V b) noexcept { return _mm256_cmpgt_epi64(a, b); }
  DLBRIDGE_ND_AVX2 static V min(V a, V b) noexcept { return _mm256_blendv_epi8(a, b, greater(a, b)); }
  DLBRIDGE_ND_AVX2 static V max(V a, V b) noexcept { return _mm256_blendv_epi8(b, a, greater(a, b)); }
};

// Unsigned numbers have their highest bit turned while they are in vectors: they compare as signed ones do.
template <class T>
struct Lanes : LaneMoves<sizeof(T)> {
  using Moves = LaneMoves<sizeof(T)>;
  using Element = T;
  using Mask = unsigned;
  using typename Moves::V;
  static constexpr int kCount = 32 / static_cast<int>(sizeof(T));
  static constexpr int kMaxColumn = 16;
  static constexpr Mask kAll = (1u << kCount) - 1;

  DLBRIDGE_ND_AVX2 static V turned(V v) noexcept {
    if constexpr (std::is_signed_v<T>) return v;
    else return _mm256_xor_si256(v, Moves::fill(std::numeric_limits<std::make_signed_t<T>>::min()));
  }
  DLBRIDGE_ND_AVX2 static V load(const T* p) noexcept {
    return turned(_mm256_loadu_si256(reinterpret_cast<const V*>(p)));
  }
  DLBRIDGE_ND_AVX2 static void store(T* p, V v) noexcept { _mm256_storeu_si256(reinterpret_cast<V*>(p), turned(v)); }
  DLBRIDGE_ND_AVX2 static V fill(T x) noexcept { return turned(Moves::fill(static_cast<std::int64_t>(x))); }
  DLBRIDGE_ND_AVX2 static V load_first(const T* p, int n) noexcept {
    const V mask = Moves::first(n), other = fill(kLargest<T>);
    if constexpr (sizeof(T) == 8)
      return _mm256_blendv_epi8(other, turned(_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), mask)),
                                mask);
    else return _mm256_blendv_epi8(other, turned(_mm256_maskload_epi32(reinterpret_cast<const int*>(p), mask)), mask);
  }
  DLBRIDGE_ND_AVX2 static void store_first(T* p, int n, V v) noexcept {
    if constexpr (sizeof(T) == 8) _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), Moves::first(n), turned(v));
    else _mm256_maskstore_epi32(reinterpret_cast<int*>(p), Moves::first(n), turned(v));
  }
  template <unsigned mask>
  DLBRIDGE_ND_AVX2 static V max_into(V from, V a, V b) noexcept {
    return Moves::template blend<mask>(from, Moves::max(a, b));
  }
  template <int d, unsigned mask>
  DLBRIDGE_ND_AVX2 static V swap_into(V from, V v) noexcept {
    return Moves::template blend<mask>(from, Moves::template swap<d>(v));
  }
  // Between the two there is room for a vector; what lies there is written as well.
  DLBRIDGE_ND_AVX2 static int part(V v, V bound, T* begin, T* end) noexcept {
    const unsigned is_below = Moves::bits_of(Moves::greater(bound, v));
    const auto* const order = reinterpret_cast<const __m128i*>(kParts<kCount>.order[is_below]);
    v = _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(_mm_loadl_epi64(order)));
    store(begin, v);
    store(end - kCount, v);
    return std::popcount(is_below);
  }
};
}  // namespace of_32_bytes

}  // namespace
}  // namespace dlbridge::nd::host_kernels

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
