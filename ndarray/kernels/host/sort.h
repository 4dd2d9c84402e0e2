// The sorts on the host by what they are asked for, and what they have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ndarray/kernels/api.h"
#include "ndarray/kernels/host/vector_sort.h"

namespace dlbridge::nd::host_kernels {

// in_vectors: where the machine has them, and a sort of this kind is made of them.
int sort_values(const SortArgs& args, bool in_vectors);     // of a real dtype, without positions
int sort_positions(const SortArgs& args, bool in_vectors);  // positions, and keys whose equals keep their order

// Whether each row rises. False, too, of dtypes for which that is not looked at: 16-bit floats and complex numbers.
bool are_in_order(DType dtype, const void* rows, std::int64_t count, std::int64_t n) noexcept;

// Only `places`, one or more, increasing, within the row, hold what a sort puts there, nothing before one larger and
// nothing behind it smaller: what a sort may do too. Either keys or positions are asked for.
int select(const SortArgs& args, std::span<const std::int64_t> places);
int select_positions(const SortArgs& args, std::span<const std::int64_t> places);  // where there are vectors

inline constexpr std::int64_t kSelectFrom = 256;
template <class T>
void select_all(T* keys, std::int64_t n, std::span<const std::int64_t> places) noexcept {
  if (n < kSelectFrom) return find_vector_sort<T>()->sort(keys, n);
  std::int64_t begin = 0;
  for (const std::int64_t place : places) {
    find_vector_sort<T>()->select(keys + begin, n - begin, place - begin);
    begin = place + 1;
  }
}

inline constexpr std::int64_t kLookAt = 64;  // elements that may be in order already
inline constexpr std::int64_t kRadixFrom = 512;
inline constexpr std::int64_t kBlock = 4096;  // elements of rows that are made keys of together

inline std::int64_t rows_at_once(const SortArgs& args) noexcept {
  return args.n >= kBlock ? 1 : std::min(args.rows, kBlock / args.n);
}

// f(row) for each of them, neighbours far apart in time: what is stored of a row by a mask holds up loads of what lies
// beside it, as if all of the vector were stored.
template <class F>
void for_rows_apart(std::int64_t rows, F f) {
  constexpr std::int64_t kParts = 4;
  const std::int64_t part = rows / kParts;
  for (std::int64_t i = 0; i < part; ++i)
    for (std::int64_t k = 0; k < kParts; ++k) f(k * part + i);
  for (std::int64_t i = kParts * part; i < rows; ++i) f(i);
}

inline constexpr int kDigitBits = 8;
inline constexpr std::size_t kBuckets = 1 << kDigitBits;

inline std::size_t digit(std::uint64_t key, int pass) noexcept { return (key >> (pass * kDigitBits)) & (kBuckets - 1); }

// Counts become where each bucket begins.
template <std::size_t n>
void begin_buckets(std::int64_t (&counts)[n]) noexcept {
  std::int64_t sum = 0;
  for (std::int64_t& count : counts) sum += std::exchange(count, sum);
}

// Least significant digit first; a digit that all keys share costs nothing. Returns where the result lies.
template <int passes, class T, class KeyOf>
T* radix_sort(T* items, T* spare, std::int64_t n, KeyOf key_of) {
  std::int64_t counts[passes][kBuckets]{};
  for (std::int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < passes; ++pass) ++counts[pass][digit(key_of(items[i]), pass)];
  for (int pass = 0; pass < passes; ++pass) {
    if (counts[pass][digit(key_of(items[0]), pass)] == n) continue;
    begin_buckets(counts[pass]);
    for (std::int64_t i = 0; i < n; ++i) spare[counts[pass][digit(key_of(items[i]), pass)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

}  // namespace dlbridge::nd::host_kernels
