// Sorts on the host. Values alone become keys that give them back. Where positions are asked for, or equal elements are
// to keep their order, keys are sorted with them, and the output is gathered, so that every element keeps its bits.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::host_kernels {
namespace {

using functors::KeyCode;

template <class Key, class Index>
struct Item {
  Key key;
  Index index;
};
using ShortItem = Item<std::uint32_t, std::uint32_t>;  // real dtypes of up to 32 bits, while positions have no more
using LongItem = Item<std::uint64_t, std::int64_t>;

struct WideItem {  // complex128
  std::uint64_t high, low;
  std::int64_t index;
};

constexpr std::int64_t kRadixFrom = 512;
constexpr int kDigitBits = 8;
constexpr std::size_t kBuckets = 1 << kDigitBits;

std::size_t digit(std::uint64_t key, int pass) noexcept { return (key >> (pass * kDigitBits)) & (kBuckets - 1); }

template <class Key, class Index>
bool before(const Item<Key, Index>& a, const Item<Key, Index>& b) noexcept {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}
bool before(const WideItem& a, const WideItem& b) noexcept {
  if (a.high != b.high) return a.high < b.high;
  return a.low != b.low ? a.low < b.low : a.index < b.index;
}

// Least significant digit first; a digit that all keys share costs nothing. Returns where the result lies.
template <int passes, class T, class KeyOf>
T* radix_sort(T* items, T* spare, std::int64_t n, KeyOf key_of) {
  std::int64_t counts[passes][kBuckets]{};
  for (std::int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < passes; ++pass) ++counts[pass][digit(key_of(items[i]), pass)];
  for (int pass = 0; pass < passes; ++pass) {
    std::int64_t* const offsets = counts[pass];
    if (offsets[digit(key_of(items[0]), pass)] == n) continue;
    std::int64_t sum = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) sum += std::exchange(offsets[bucket], sum);
    for (std::int64_t i = 0; i < n; ++i) spare[offsets[digit(key_of(items[i]), pass)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

template <class Bits>
Bits* sort_keys(Bits* keys, Bits* spare, std::int64_t n) {
  if (n >= kRadixFrom) return radix_sort<sizeof(Bits)>(keys, spare, n, [](Bits key) { return std::uint64_t{key}; });
  std::sort(keys, keys + n);
  return keys;
}
template <class Key, class Index>
Item<Key, Index>* sort_items(Item<Key, Index>* items, Item<Key, Index>* spare, std::int64_t n) {
  using T = Item<Key, Index>;
  if (n >= kRadixFrom) return radix_sort<sizeof(Key)>(items, spare, n, [](const T& x) { return std::uint64_t{x.key}; });
  std::sort(items, items + n, [](const T& a, const T& b) { return before(a, b); });
  return items;
}
WideItem* sort_items(WideItem* items, WideItem* spare, std::int64_t n) {
  if (n < kRadixFrom) {
    std::sort(items, items + n, [](const WideItem& a, const WideItem& b) { return before(a, b); });
    return items;
  }
  WideItem* const once = radix_sort<8>(items, spare, n, [](const WideItem& x) { return x.low; });
  return radix_sort<8>(once, once == items ? spare : items, n, [](const WideItem& x) { return x.high; });
}

template <class Bits>
Bits bits_at(const char* p) noexcept {
  Bits bits;
  std::memcpy(&bits, p, sizeof(Bits));
  return bits;
}

template <class Bits, class T>
void read_real(const char* keys, std::int64_t n, const KeyCode& code, T* items) {
  using Index = decltype(T::index);
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits key = functors::rank_key(bits_at<Bits>(keys + i * static_cast<std::int64_t>(sizeof(Bits))), code);
    items[i] = {key, static_cast<Index>(i)};
  }
}

void read_items(const SortArgs& args, const char* keys, ShortItem* items) {
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  switch (info(args.dtype).itemsize) {
    case 1: return read_real<std::uint8_t>(keys, args.n, code, items);
    case 2: return read_real<std::uint16_t>(keys, args.n, code, items);
    default: return read_real<std::uint32_t>(keys, args.n, code, items);
  }
}
void read_items(const SortArgs& args, const char* keys, LongItem* items) {
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  if (args.dtype != DType::kComplex64) {
    switch (info(args.dtype).itemsize) {
      case 1: return read_real<std::uint8_t>(keys, args.n, code, items);
      case 2: return read_real<std::uint16_t>(keys, args.n, code, items);
      case 4: return read_real<std::uint32_t>(keys, args.n, code, items);
      default: return read_real<std::uint64_t>(keys, args.n, code, items);
    }
  }
  for (std::int64_t i = 0; i < args.n; ++i) {
    const auto key =
        functors::rank_key(bits_at<std::uint32_t>(keys + i * 8), bits_at<std::uint32_t>(keys + i * 8 + 4), code);
    items[i] = {std::uint64_t{key.high} << 32 | key.low, i};
  }
}
void read_items(const SortArgs& args, const char* keys, WideItem* items) {
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  for (std::int64_t i = 0; i < args.n; ++i) {
    const auto key =
        functors::rank_key(bits_at<std::uint64_t>(keys + i * 16), bits_at<std::uint64_t>(keys + i * 16 + 8), code);
    items[i] = {key.high, key.low, i};
  }
}

template <class T>
void gather(const T* items, std::int64_t n, const char* keys, std::int64_t itemsize, char* out) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(out + i * itemsize, keys + static_cast<std::int64_t>(items[i].index) * itemsize,
                static_cast<std::size_t>(itemsize));
}

template <class T>
int sort_rows(const SortArgs& args) {
  const auto n = static_cast<std::size_t>(args.n);
  const auto itemsize = static_cast<std::int64_t>(info(args.dtype).itemsize);
  const auto row_bytes = n * static_cast<std::size_t>(itemsize);
  const std::unique_ptr<T[]> items(new (std::nothrow) T[n]), spare(new (std::nothrow) T[n]);
  const bool in_place = args.keys_out == args.keys_in;
  const std::unique_ptr<char[]> copy(in_place ? new (std::nothrow) char[row_bytes] : nullptr);
  if (items == nullptr || spare == nullptr || (in_place && copy == nullptr)) return kErrorMemory;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const char* keys = static_cast<const char*>(args.keys_in) + row * args.n * itemsize;
    read_items(args, keys, items.get());
    const T* sorted = sort_items(items.get(), spare.get(), args.n);
    if (args.indices != nullptr)
      for (std::int64_t i = 0; i < args.n; ++i)
        args.indices[row * args.n + i] = static_cast<std::int64_t>(sorted[i].index);
    if (args.keys_out == nullptr) continue;
    if (in_place) keys = static_cast<const char*>(std::memcpy(copy.get(), keys, row_bytes));
    gather(sorted, args.n, keys, itemsize, static_cast<char*>(args.keys_out) + row * args.n * itemsize);
  }
  return 0;
}

template <class Bits>
int sort_values(const SortArgs& args) {
  constexpr std::int64_t kSize = sizeof(Bits);
  const auto n = static_cast<std::size_t>(args.n);
  const std::unique_ptr<Bits[]> keys(new (std::nothrow) Bits[n]), spare(new (std::nothrow) Bits[n]);
  if (keys == nullptr || spare == nullptr) return kErrorMemory;
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const char* const in = static_cast<const char*>(args.keys_in) + row * args.n * kSize;
    char* const out = static_cast<char*>(args.keys_out) + row * args.n * kSize;
    for (std::int64_t i = 0; i < args.n; ++i)
      keys[static_cast<std::size_t>(i)] = functors::value_key(bits_at<Bits>(in + i * kSize), code);
    const Bits* const sorted = sort_keys(keys.get(), spare.get(), args.n);
    for (std::int64_t i = 0; i < args.n; ++i) {
      const Bits bits = functors::from_value_key(sorted[i], code);
      std::memcpy(out + i * kSize, &bits, sizeof bits);
    }
  }
  return 0;
}

}  // namespace

int sort(const SortArgs& args) {
  if (!contains(kAllSet, args.dtype)) return kErrorUnsupported;
  if (args.rows == 0 || args.n == 0) return 0;
  if (args.dtype == DType::kComplex128) return sort_rows<WideItem>(args);
  const int itemsize = info(args.dtype).itemsize;
  if (args.indices == nullptr && !args.stable && args.dtype != DType::kComplex64) {
    switch (itemsize) {
      case 1: return sort_values<std::uint8_t>(args);
      case 2: return sort_values<std::uint16_t>(args);
      case 4: return sort_values<std::uint32_t>(args);
      default: return sort_values<std::uint64_t>(args);
    }
  }
  const bool is_short = itemsize <= 4 && args.n <= std::numeric_limits<std::uint32_t>::max();
  return is_short ? sort_rows<ShortItem>(args) : sort_rows<LongItem>(args);
}

}  // namespace dlbridge::nd::host_kernels
