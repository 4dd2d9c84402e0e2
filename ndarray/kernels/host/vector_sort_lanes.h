// Vectors of 64 bytes of integers, and the sort of what fits into a few of them.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define DLBRIDGE_ND_AVX512_FUNCTION [[gnu::target("avx512f,avx512dq,bmi2,popcnt"), gnu::noinline]]
#define DLBRIDGE_ND_AVX512 [[gnu::target("avx512f,avx512dq,bmi2,popcnt"), gnu::always_inline]] inline

#if !defined(__clang__)  // g++ 12 warns of the vectors that its headers leave undefined
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace dlbridge::nd::host_kernels {
namespace {

// swap_into<d>(): `v` with lanes i and i ^ d exchanged, where the mask says so, else `from`; d is a power of two.
// turn<n>(): each n lanes in reverse order.
template <int kBytes>
struct LaneMoves;
template <>
struct LaneMoves<8> {
  using V = __m512i;
  using Mask = std::uint8_t;
  template <int d>
  DLBRIDGE_ND_AVX512 static V swap_into(V from, Mask mask, V v) noexcept {
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
  DLBRIDGE_ND_AVX512 static V compress(Mask mask, V v) noexcept { return _mm512_maskz_compress_epi64(mask, v); }
  DLBRIDGE_ND_AVX512 static V load_into(V other, Mask mask, const void* p) noexcept {
    return _mm512_mask_loadu_epi64(other, mask, p);
  }
  DLBRIDGE_ND_AVX512 static void store_where(void* p, Mask mask, V v) noexcept { _mm512_mask_storeu_epi64(p, mask, v); }
};
template <>
struct LaneMoves<4> {
  using V = __m512i;
  using Mask = std::uint16_t;
  template <int d>
  DLBRIDGE_ND_AVX512 static V swap_into(V from, Mask mask, V v) noexcept {
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
  static constexpr Mask kAll = static_cast<Mask>(~Mask{0});

  DLBRIDGE_ND_AVX512 static V load(const T* p) noexcept { return _mm512_loadu_si512(p); }
  DLBRIDGE_ND_AVX512 static void store(T* p, V v) noexcept { _mm512_storeu_si512(p, v); }
  DLBRIDGE_ND_AVX512 static V fill(T x) noexcept {
    if constexpr (sizeof(T) == 8) return _mm512_set1_epi64(static_cast<long long>(x));
    else return _mm512_set1_epi32(static_cast<int>(x));
  }
  static constexpr Mask first(int n) noexcept { return static_cast<Mask>(kAll >> (kCount - n)); }
  // The first n of them, or all where there are more, or none; the largest element behind them.
  DLBRIDGE_ND_AVX512 static V load_first(const T* p, int n) noexcept {
    return Moves::load_into(fill(std::numeric_limits<T>::max()), first(std::clamp(n, 0, kCount)), p);
  }
  DLBRIDGE_ND_AVX512 static void store_first(T* p, int n, V v) noexcept {
    Moves::store_where(p, first(std::clamp(n, 0, kCount)), v);
  }
  DLBRIDGE_ND_AVX512 static Mask less(V a, V b) noexcept {
    if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_cmplt_epi64_mask(a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_cmplt_epu64_mask(a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_cmplt_epi32_mask(a, b);
    else return _mm512_cmplt_epu32_mask(a, b);
  }
  DLBRIDGE_ND_AVX512 static V min(V a, V b) noexcept {
    if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_min_epi64(a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_min_epu64(a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_min_epi32(a, b);
    else return _mm512_min_epu32(a, b);
  }
  // The larger ones where the mask says so, else `from`.
  DLBRIDGE_ND_AVX512 static V max_into(V from, Mask mask, V a, V b) noexcept {
    if constexpr (std::is_same_v<T, std::int64_t>) return _mm512_mask_max_epi64(from, mask, a, b);
    else if constexpr (std::is_same_v<T, std::uint64_t>) return _mm512_mask_max_epu64(from, mask, a, b);
    else if constexpr (std::is_same_v<T, std::int32_t>) return _mm512_mask_max_epi32(from, mask, a, b);
    else return _mm512_mask_max_epu32(from, mask, a, b);
  }
};

inline constexpr int kMaxColumn = 16;  // vectors

struct Exchange {
  int low, high;
};
struct Network {
  Exchange exchanges[63]{};
  int count = 0;
};
// Batcher's odd-even merge sort, for any number of elements.
constexpr Network network_of(int n) noexcept {
  Network net;
  for (int p = 1; p < n; p *= 2)
    for (int k = p; k >= 1; k /= 2)
      for (int j = k % p; j + k < n; j += 2 * k)
        for (int i = j; i < j + k && i + k < n; ++i)
          if (i / (2 * p) == (i + k) / (2 * p)) net.exchanges[net.count++] = {i, i + k};
  return net;
}

// Sorts up to kRows vectors: each lane's column by a network; then columns are joined, two and two, by bitonic merges,
// until they are one, and written one behind the other.
template <class L, int kRows>
class ShortSort {
  using T = typename L::Element;
  using V = typename L::V;
  static constexpr int kLanes = L::kCount;
  static constexpr int kPadded = (kRows + kLanes - 1) / kLanes * kLanes;

 public:
  DLBRIDGE_ND_AVX512 static void run(T* data, int n) noexcept {
    V v[kPadded];
#pragma GCC unroll 16
    for (int i = 0; i < kPadded; ++i) v[i] = i < kRows ? L::load_first(data + i * kLanes, n - i * kLanes) : v[0];
    sort_column<kRows>(v);
    join_columns<1>(v);
    if constexpr (kRows == 1) L::store_first(data, n, v[0]);
    else store_columns(v, data, n);
  }

 private:
  static constexpr typename L::Mask with_bit(int bit) noexcept {  // the lanes whose number has it
    unsigned mask = 0;
    for (int i = 0; i < kLanes; ++i) mask |= (i & bit) != 0 ? 1u << i : 0u;
    return static_cast<typename L::Mask>(mask);
  }

  DLBRIDGE_ND_AVX512 static void exchange(V& low, V& high) noexcept {
    const V less = L::min(low, high);
    high = L::max_into(high, L::kAll, low, high);
    low = less;
  }
  template <int n, int... k>
  DLBRIDGE_ND_AVX512 static void run_network(V* v, std::integer_sequence<int, k...>) noexcept {
    constexpr Network net = network_of(n);
    (exchange(v[net.exchanges[k].low], v[net.exchanges[k].high]), ...);
  }
  template <int n>
  DLBRIDGE_ND_AVX512 static void sort_column(V* v) noexcept {
    if constexpr (n > 1) run_network<n>(v, std::make_integer_sequence<int, network_of(n).count>{});
  }
  template <int n>
  DLBRIDGE_ND_AVX512 static void merge_column(V* v) noexcept {  // of a bitonic sequence
    if constexpr (n % 2 != 0) {
      sort_column<n>(v);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) exchange(v[i], v[i + n / 2]);
      merge_column<n / 2>(v);
      merge_column<n / 2>(v + n / 2);
    }
  }

  template <int bit>
  DLBRIDGE_ND_AVX512 static V larger_with(V v, V other) noexcept {  // the smaller ones in the other lanes
    return L::max_into(L::min(v, other), with_bit(bit), v, other);
  }
  template <int distance>
  DLBRIDGE_ND_AVX512 static void merge_lanes(V* v) noexcept {
    if constexpr (distance > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
        v[i] = larger_with<distance>(v[i], L::template swap_into<distance>(v[i], L::kAll, v[i]));
      merge_lanes<distance / 2>(v);
    }
  }
  template <int n>
  DLBRIDGE_ND_AVX512 static void join_columns(V* v) noexcept {  // each n lanes are sorted
    if constexpr (n < kLanes) {
#pragma GCC unroll 8
      for (int i = 0; i < (kRows + 1) / 2; ++i) {
        const V a = v[i], b = v[kRows - 1 - i];
        v[i] = larger_with<n>(a, L::template turn<2 * n>(b));
        v[kRows - 1 - i] = larger_with<n>(b, L::template turn<2 * n>(a));
      }
      merge_lanes<n / 2>(v);
      merge_column<kRows>(v);
      join_columns<2 * n>(v);
    }
  }

  template <int distance>
  DLBRIDGE_ND_AVX512 static void transpose(V* v) noexcept {
    if constexpr (distance < kLanes) {
      constexpr typename L::Mask kUpper = with_bit(distance), kLower = static_cast<typename L::Mask>(~kUpper);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if ((i & distance) != 0) continue;
        const V a = v[i], b = v[i + distance];
        v[i] = L::template swap_into<distance>(a, kUpper, b);
        v[i + distance] = L::template swap_into<distance>(b, kLower, a);
      }
      transpose<2 * distance>(v);
    }
  }
  DLBRIDGE_ND_AVX512 static void store_columns(V* v, T* data, int n) noexcept {
    T sorted[kRows * kLanes + kPadded];  // a column's padding is written over by the next one
#pragma GCC unroll 2
    for (int k = 0; k < kPadded; k += kLanes) transpose<1>(v + k);
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane)
#pragma GCC unroll 2
      for (int k = 0; k < kPadded; k += kLanes) L::store(sorted + lane * kRows + k, v[k + lane]);
    for (int i = 0; i < n; i += kLanes) L::store_first(data + i, n - i, L::load(sorted + i));
  }
};

}  // namespace
}  // namespace dlbridge::nd::host_kernels

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
