// Sorts on the host: elements become 64-bit keys (two for complex128) with their positions, sorted stably; the output
// is gathered, so that every element keeps its bits.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/sort_keys.h"

namespace dlbridge::nd::host_kernels {
namespace {

using functors::KeyCode;

struct Item {
  std::uint64_t key;
  std::int64_t index;
};

struct WideItem {  // complex128
  std::uint64_t high, low;
  std::int64_t index;
};

constexpr std::int64_t kRadixFrom = 512;
constexpr int kDigitBits = 8;
constexpr std::size_t kBuckets = 1 << kDigitBits;

std::size_t digit(std::uint64_t key, int pass) noexcept { return (key >> (pass * kDigitBits)) & (kBuckets - 1); }

bool before(const Item& a, const Item& b) noexcept { return a.key != b.key ? a.key < b.key : a.index < b.index; }
bool before(const WideItem& a, const WideItem& b) noexcept {
  if (a.high != b.high) return a.high < b.high;
  return a.low != b.low ? a.low < b.low : a.index < b.index;
}

// Least significant digit first; a digit that all keys share costs nothing. Returns where the result lies.
template <class T, class KeyOf>
T* radix_sort(T* items, T* spare, std::int64_t n, int passes, KeyOf key_of) {
  for (int pass = 0; pass < passes; ++pass) {
    std::int64_t offsets[kBuckets]{};
    for (std::int64_t i = 0; i < n; ++i) ++offsets[digit(key_of(items[i]), pass)];
    if (offsets[digit(key_of(items[0]), pass)] == n) continue;
    std::int64_t sum = 0;
    for (std::int64_t& offset : offsets) {
      const std::int64_t count = offset;
      offset = sum;
      sum += count;
    }
    for (std::int64_t i = 0; i < n; ++i) spare[offsets[digit(key_of(items[i]), pass)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

Item* sort_items(Item* items, Item* spare, std::int64_t n, int key_bytes) {
  if (n >= kRadixFrom) return radix_sort(items, spare, n, key_bytes, [](const Item& x) { return x.key; });
  std::sort(items, items + n, [](const Item& a, const Item& b) { return before(a, b); });
  return items;
}
WideItem* sort_items(WideItem* items, WideItem* spare, std::int64_t n, int) {
  if (n < kRadixFrom) {
    std::sort(items, items + n, [](const WideItem& a, const WideItem& b) { return before(a, b); });
    return items;
  }
  WideItem* const once = radix_sort(items, spare, n, 8, [](const WideItem& x) { return x.low; });
  return radix_sort(once, once == items ? spare : items, n, 8, [](const WideItem& x) { return x.high; });
}

template <class Bits>
Bits bits_at(const char* p) noexcept {
  Bits bits;
  std::memcpy(&bits, p, sizeof(Bits));
  return bits;
}

template <class Bits>
void read_real(const char* keys, std::int64_t n, const KeyCode& code, Item* items) {
  for (std::int64_t i = 0; i < n; ++i)
    items[i] = {functors::rank_key(bits_at<Bits>(keys + i * static_cast<std::int64_t>(sizeof(Bits))), code), i};
}

void read_items(const SortArgs& args, const char* keys, Item* items) {
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  if (args.dtype == DType::kComplex64) {
    for (std::int64_t i = 0; i < args.n; ++i) {
      const auto key =
          functors::rank_key(bits_at<std::uint32_t>(keys + i * 8), bits_at<std::uint32_t>(keys + i * 8 + 4), code);
      items[i] = {std::uint64_t{key.high} << 32 | key.low, i};
    }
    return;
  }
  switch (info(args.dtype).itemsize) {
    case 1: return read_real<std::uint8_t>(keys, args.n, code, items);
    case 2: return read_real<std::uint16_t>(keys, args.n, code, items);
    case 4: return read_real<std::uint32_t>(keys, args.n, code, items);
    default: return read_real<std::uint64_t>(keys, args.n, code, items);
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
    std::memcpy(out + i * itemsize, keys + items[i].index * itemsize, static_cast<std::size_t>(itemsize));
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
    const T* sorted =
        sort_items(items.get(), spare.get(), args.n, static_cast<int>(std::min<std::int64_t>(itemsize, 8)));
    if (args.indices != nullptr)
      for (std::int64_t i = 0; i < args.n; ++i) args.indices[row * args.n + i] = sorted[i].index;
    if (args.keys_out == nullptr) continue;
    if (in_place) keys = static_cast<const char*>(std::memcpy(copy.get(), keys, row_bytes));
    gather(sorted, args.n, keys, itemsize, static_cast<char*>(args.keys_out) + row * args.n * itemsize);
  }
  return 0;
}

}  // namespace

int sort(const SortArgs& args) {
  if (!contains(kAllSet, args.dtype)) return kErrorUnsupported;
  if (args.rows == 0 || args.n == 0) return 0;
  return args.dtype == DType::kComplex128 ? sort_rows<WideItem>(args) : sort_rows<Item>(args);
}

}  // namespace dlbridge::nd::host_kernels
