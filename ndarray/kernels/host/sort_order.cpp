// Positions in the order of their keys. Where the machine sorts in vectors, a key and its position are packed into one
// number, as many of the key's bits as there is room for; else keys and positions are sorted side by side.
#include <algorithm>
#include <bit>
#include <bitset>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>

#include "ndarray/kernels/host/key_loops.h"
#include "ndarray/kernels/host/sort.h"

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

template <class Key, class Index>
bool before(const Item<Key, Index>& a, const Item<Key, Index>& b) noexcept {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}
bool before(const WideItem& a, const WideItem& b) noexcept {
  if (a.high != b.high) return a.high < b.high;
  return a.low != b.low ? a.low < b.low : a.index < b.index;
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

// --- keys -----------------------------------------------------------------------------------------------------------

// As wide as the elements are, and of complex64 both parts in one.
template <class Bits>
void read_keys(const SortArgs& args, const char* row, std::int64_t n, Bits* keys) {
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  if constexpr (sizeof(Bits) == 8) {
    if (args.dtype == DType::kComplex64) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto key =
            functors::rank_key(bits_at<std::uint32_t>(row + i * 8), bits_at<std::uint32_t>(row + i * 8 + 4), code);
        keys[i] = std::uint64_t{key.high} << 32 | key.low;
      }
      return;
    }
  }
  recode<Bits, Coding::kRank>(code, row, keys, n);
}

template <class T, class Bits>
void write_order(const Bits* keys, std::int64_t n, T* items, T* spare, std::int64_t* order) {
  for (std::int64_t i = 0; i < n; ++i)
    items[i] = {static_cast<decltype(T::key)>(keys[i]), static_cast<decltype(T::index)>(i)};
  const T* const sorted = sort_items(items, spare, n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int64_t>(sorted[i].index);
}

// --- by leading digits ----------------------------------------------------------------------------------------------

constexpr std::int64_t kSpreadFrom = 128;
constexpr std::int64_t kTwoDigits = 1 << 14;    // elements that two digits tell apart
constexpr std::int64_t kThreeDigits = 1 << 22;  // and three

// Whether about as many of the keys differ in their first digit as of random numbers.
bool are_spread(const std::uint64_t* keys, std::int64_t n) noexcept {
  constexpr int kSample = 32;
  std::bitset<kBuckets> seen;
  for (std::int64_t i = 0; i < kSample; ++i) seen.set(digit(keys[n / kSample * i], 7));
  return seen.count() >= kSample / 2;
}

// Insertion, for items that are hardly out of order; false where they are.
bool insert_items(const std::uint64_t* keys, std::int64_t n, ShortItem* items) noexcept {
  std::int64_t moves_left = 2 * n;
  for (std::int64_t i = 1; i < n; ++i) {
    const ShortItem item = items[i];
    std::int64_t k = i;
    for (; k > 0 && item.key <= items[k - 1].key; --k) {
      if (item.key == items[k - 1].key && keys[item.index] >= keys[items[k - 1].index]) break;
      items[k] = items[k - 1];
    }
    items[k] = item;
    moves_left -= i - k;
    if (moves_left < 0) return false;
  }
  return true;
}

// By as many leading digits as tell most of so many random keys apart, and insertion. False where these are not enough.
bool order_spread(const std::uint64_t* keys, std::int64_t n, ShortItem* items, ShortItem* spare, std::int64_t* order) {
  for (std::int64_t i = 0; i < n; ++i)
    items[i] = {static_cast<std::uint32_t>(keys[i] >> 32), static_cast<std::uint32_t>(i)};
  const auto by_digits = [&]<int digits>() {
    return radix_sort<digits>(items, spare, n,
                              [](const ShortItem& x) { return std::uint64_t{x.key} >> (32 - digits * kDigitBits); });
  };
  ShortItem* const sorted = n <= kTwoDigits     ? by_digits.template operator()<2>()
                            : n <= kThreeDigits ? by_digits.template operator()<3>()
                                                : by_digits.template operator()<4>();
  if (!insert_items(keys, n, sorted)) return false;
  for (std::int64_t i = 0; i < n; ++i) order[i] = sorted[i].index;
  return true;
}

constexpr std::int64_t kTiny = 6;  // elements that are inserted one by one
template <class Bits>
void insert_each(const Bits* keys, std::int64_t n, std::int64_t* order) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t k = i;
    for (; k > 0 && keys[i] < keys[order[k - 1]]; --k) order[k] = order[k - 1];
    order[k] = i;
  }
}

void count_order(const std::uint8_t* keys, std::int64_t n, std::int64_t* order) {
  std::int64_t counts[kBuckets]{};
  for (std::int64_t i = 0; i < n; ++i) ++counts[keys[i]];
  begin_buckets(counts);
  for (std::int64_t i = 0; i < n; ++i) order[counts[keys[i]]++] = i;
}

// --- packed ---------------------------------------------------------------------------------------------------------

template <class Bits>
struct Range {
  Bits low, high;
};
template <class Bits>
DLBRIDGE_ND_CLONES Range<Bits> range_of(const Bits* keys, std::int64_t n) {
  Range<Bits> range{keys[0], keys[0]};
  for (std::int64_t i = 1; i < n; ++i) range = {std::min(range.low, keys[i]), std::max(range.high, keys[i])};
  return range;
}
template <class Word, class Bits>
DLBRIDGE_ND_CLONES void pack(const Bits* keys, std::int64_t n, Bits low, int dropped, int position_bits, Word* packed) {
  for (std::int64_t i = 0; i < n; ++i)
    packed[i] = static_cast<Word>(static_cast<Word>(static_cast<Bits>(keys[i] - low) >> dropped) << position_bits |
                                  static_cast<Word>(i));
}
template <class Word>
DLBRIDGE_ND_CLONES void unpack(const Word* packed, std::int64_t n, Word mask, std::int64_t* order) {
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int64_t>(packed[i] & mask);
}

// Keys and positions by what has been packed of them.
template <class Bits>
struct Unsettled {
  const Bits* keys;
  std::uint64_t* packed;
  std::int64_t n;
  int position_bits;
  std::uint64_t mask() const noexcept { return (std::uint64_t{1} << position_bits) - 1; }
  bool is_before(std::uint64_t a, std::uint64_t b) const noexcept {
    const Bits x = keys[a & mask()], y = keys[b & mask()];
    return x != y ? x < y : (a & mask()) < (b & mask());
  }
};

// Whether any two neighbours have the same packed bits.
template <class Bits>
DLBRIDGE_ND_CLONES bool has_undecided(const Unsettled<Bits>& all) {
  std::uint64_t equals = 0;
  for (std::int64_t i = 1; i < all.n; ++i)
    equals |= ((all.packed[i - 1] ^ all.packed[i]) >> all.position_bits) == 0 ? 1 : 0;
  return equals != 0;
}
// Sorts what equal packed bits leave undecided; false where that is much.
template <class Bits>
bool settle(const Unsettled<Bits>& all) {
  const auto is_before = [&](std::uint64_t a, std::uint64_t b) { return all.is_before(a, b); };
  std::uint64_t* const packed = all.packed;
  std::int64_t undecided = 0;
  for (std::int64_t i = 1, begin = 0; i <= all.n; ++i) {
    if (i < all.n && ((packed[i] ^ packed[begin]) >> all.position_bits) == 0) continue;
    if (i - begin > 1 && !std::is_sorted(packed + begin, packed + i, is_before)) {
      undecided += i - begin;
      if (undecided > kRadixFrom + all.n / 8) return false;
      std::sort(packed + begin, packed + i, is_before);
    }
    begin = i;
  }
  return true;
}
// The same for one place among elements of which packed bits have selected the one that stands there.
template <class Bits>
void settle_place(const Unsettled<Bits>& all, std::int64_t place) {
  const std::uint64_t found = all.packed[place] >> all.position_bits;
  std::uint64_t* const end = all.packed + all.n;
  const auto is_other = [&](std::uint64_t x) { return x >> all.position_bits != found; };
  std::uint64_t* const first = std::partition(all.packed, all.packed + place, is_other);
  std::uint64_t* const last = std::partition(all.packed + place, end, [&](std::uint64_t x) { return !is_other(x); });
  std::nth_element(first, all.packed + place, last,
                   [&](std::uint64_t a, std::uint64_t b) { return all.is_before(a, b); });
}

template <class Word>
void order_packed(Word* packed, std::int64_t n, std::span<const std::int64_t> places) noexcept {
  if (places.empty()) find_vector_sort<Word>()->sort(packed, n);
  else select_all(packed, n, places);
}

// How keys of `count` elements, in rows of n, are packed with their places in the row.
template <class Bits>
struct Packing {
  Packing(const Bits* keys, std::int64_t count, std::int64_t n)
      : position_bits(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)))) {
    const Range<Bits> range = range_of(keys, count);
    low = range.low;
    bits = position_bits + static_cast<int>(std::bit_width(static_cast<Bits>(range.high - range.low)));
  }
  Bits low;
  int position_bits, bits;
  std::uint64_t mask() const noexcept { return (std::uint64_t{1} << position_bits) - 1; }
  bool is_cut() const noexcept { return bits > 64; }
  template <class Word>
  void pack_row(const Bits* keys, std::int64_t n, Word* packed) const {
    pack(keys, n, low, std::max(bits - 64, 0), position_bits, packed);
  }
};

// All of the order, or that at `places`. False where the keys lie so that few bits do not tell them apart. `spare`: n
// of them.
template <class Bits>
bool pack_order(const Bits* keys, std::int64_t n, std::span<const std::int64_t> places, std::uint32_t* spare,
                std::int64_t* order) {
  const Packing<Bits> packing(keys, n, n);
  if (packing.bits <= 32) {
    packing.pack_row(keys, n, spare);
    order_packed(spare, n, places);
    unpack(spare, n, static_cast<std::uint32_t>(packing.mask()), order);
    return true;
  }
  auto* const packed = reinterpret_cast<std::uint64_t*>(order);
  packing.pack_row(keys, n, packed);
  if (packing.is_cut() && places.size() > 1) places = {};
  order_packed(packed, n, places);
  const Unsettled<Bits> all{keys, packed, n, packing.position_bits};
  if (packing.is_cut() && !places.empty()) settle_place(all, places[0]);
  else if (packing.is_cut() && !settle(all)) return false;
  unpack(packed, n, packing.mask(), order);
  return true;
}

// The same of rows of few keys each, which share the packing.
template <class Word, class Bits>
void sort_packed_rows(const Packing<Bits>& packing, const Bits* keys, std::int64_t rows, std::int64_t n, Word* packed) {
  for (std::int64_t row = 0; row < rows; ++row) packing.pack_row(keys + row * n, n, packed + row * n);
  for_rows_apart(rows, [=](std::int64_t row) { find_vector_sort<Word>()->sort(packed + row * n, n); });
}
template <class Bits>
bool pack_short_rows(const Bits* keys, std::int64_t rows, std::int64_t n, std::uint32_t* spare, std::int64_t* order) {
  const Packing<Bits> packing(keys, rows * n, n);
  if (packing.bits <= 32) {
    sort_packed_rows(packing, keys, rows, n, spare);
    unpack(spare, rows * n, static_cast<std::uint32_t>(packing.mask()), order);
    return true;
  }
  auto* const packed = reinterpret_cast<std::uint64_t*>(order);
  sort_packed_rows(packing, keys, rows, n, packed);
  const Unsettled<Bits> all{keys, packed, rows * n, packing.position_bits};
  if (packing.is_cut() && has_undecided(all))
    for (std::int64_t row = 0; row < rows; ++row)
      if (!settle(Unsettled<Bits>{keys + row * n, packed + row * n, n, packing.position_bits})) return false;
  unpack(packed, rows * n, packing.mask(), order);
  return true;
}

// False, and nothing is written, unless all of them are in order.
template <class Bits>
bool put_ordered_rows(const Bits* keys, std::int64_t rows, std::int64_t n, std::int64_t* order) {
  for (std::int64_t row = 0; row < rows; ++row)
    if (!in_order(keys + row * n, n)) return false;
  for (std::int64_t row = 0; row < rows; ++row) std::iota(order + row * n, order + (row + 1) * n, std::int64_t{0});
  return true;
}
// --- rows -----------------------------------------------------------------------------------------------------------

template <class T>
std::unique_ptr<T[]> room_for(std::int64_t n) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[static_cast<std::size_t>(n)]);
}

// Orders rows of keys of one width; it holds the memory that this takes.
template <class Bits>
class Orders {
 public:
  Orders(const SortArgs& args, bool in_vectors)
      : args_(args), packs_(in_vectors), keys_(room_for<Bits>(args.n * rows_at_once(args))) {
    if (packs_) spare_ = room_for<std::uint32_t>(args.n * rows_at_once(args));
  }
  // Of so many rows at once.
  bool write(const char* in, std::int64_t rows, std::span<const std::int64_t> places, std::int64_t* order) {
    if (keys_ == nullptr || (packs_ && spare_ == nullptr)) return false;
    read_keys(args_, in, rows * args_.n, keys_.get());
    if (rows > 1 && args_.n < kLookAt) {
      if (put_ordered_rows(keys_.get(), rows, args_.n, order)) return true;
      if (packs_ && args_.n > kTiny && pack_short_rows(keys_.get(), rows, args_.n, spare_.get(), order)) return true;
    }
    for (std::int64_t row = 0; row < rows; ++row)
      if (!write_row(keys_.get() + row * args_.n, places, order + row * args_.n)) return false;
    return true;
  }

 private:
  template <class T>
  struct Items {
    std::unique_ptr<T[]> items, spare;
  };
  bool write_row(const Bits* keys, std::span<const std::int64_t> places, std::int64_t* order) {
    if (args_.n <= kTiny) {
      insert_each(keys, args_.n, order);
      return true;
    }
    if (args_.n >= kLookAt && in_order(keys, args_.n)) {
      std::iota(order, order + args_.n, std::int64_t{0});
      return true;
    }
    if constexpr (sizeof(Bits) == 1) {
      if (!packs_ || args_.n >= kRadixFrom) return count_order(keys, args_.n, order), true;
    }
    if (packs_ && pack_order(keys, args_.n, places, spare_.get(), order)) return true;
    const bool is_short = args_.n <= std::numeric_limits<std::uint32_t>::max();
    if (sizeof(Bits) <= 4 && is_short) return write_by(short_items_, keys, order);
    if constexpr (sizeof(Bits) == 8) {
      if (is_short && args_.n >= kSpreadFrom && are_spread(keys, args_.n) && has_room(short_items_) &&
          order_spread(keys, args_.n, short_items_.items.get(), short_items_.spare.get(), order))
        return true;
    }
    return write_by(long_items_, keys, order);
  }
  template <class T>
  bool has_room(Items<T>& memory) {
    if (memory.items == nullptr) memory = {room_for<T>(args_.n), room_for<T>(args_.n)};
    return memory.items != nullptr && memory.spare != nullptr;
  }
  template <class T>
  bool write_by(Items<T>& memory, const Bits* keys, std::int64_t* order) {
    if (!has_room(memory)) return false;
    write_order(keys, args_.n, memory.items.get(), memory.spare.get(), order);
    return true;
  }

  const SortArgs& args_;
  const bool packs_;
  std::unique_ptr<Bits[]> keys_;
  std::unique_ptr<std::uint32_t[]> spare_;
  Items<ShortItem> short_items_;
  Items<LongItem> long_items_;
};
struct Complex128 {};
template <>
class Orders<Complex128> {
 public:
  Orders(const SortArgs& args, bool)
      : args_(args), items_(room_for<WideItem>(args.n)), spare_(room_for<WideItem>(args.n)) {}
  bool write(const char* in, std::int64_t rows, std::span<const std::int64_t>, std::int64_t* order) {
    if (items_ == nullptr || spare_ == nullptr) return false;
    for (std::int64_t row = 0; row < rows; ++row) write_row(in + row * args_.n * 16, order + row * args_.n);
    return true;
  }

 private:
  void write_row(const char* row, std::int64_t* order) {
    const KeyCode code = functors::key_code(args_.dtype, args_.descending);
    for (std::int64_t i = 0; i < args_.n; ++i) {
      const auto key =
          functors::rank_key(bits_at<std::uint64_t>(row + i * 16), bits_at<std::uint64_t>(row + i * 16 + 8), code);
      items_[static_cast<std::size_t>(i)] = {key.high, key.low, i};
    }
    const auto is_before = [](const WideItem& a, const WideItem& b) { return before(a, b); };
    const bool sorted_already = std::is_sorted(items_.get(), items_.get() + args_.n, is_before);
    const WideItem* const sorted = sorted_already ? items_.get() : sort_items(items_.get(), spare_.get(), args_.n);
    for (std::int64_t i = 0; i < args_.n; ++i) order[i] = sorted[i].index;
  }

  const SortArgs& args_;
  std::unique_ptr<WideItem[]> items_, spare_;
};

template <int itemsize>
void gather(const std::int64_t* order, std::int64_t n, const char* keys, char* out) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(out + i * itemsize, keys + order[i] * itemsize, itemsize);
}
void gather(int itemsize, const std::int64_t* order, std::int64_t n, const char* keys, char* out) {
  switch (itemsize) {
    case 1: return gather<1>(order, n, keys, out);
    case 2: return gather<2>(order, n, keys, out);
    case 4: return gather<4>(order, n, keys, out);
    case 8: return gather<8>(order, n, keys, out);
    default: return gather<16>(order, n, keys, out);
  }
}

template <class Bits>
int sort_rows(const SortArgs& args, bool in_vectors, std::span<const std::int64_t> places = {}) {
  const int itemsize = info(args.dtype).itemsize;
  const std::int64_t row_bytes = args.n * itemsize, step = rows_at_once(args);
  const bool in_place = args.keys_out == args.keys_in, has_room = args.indices != nullptr;
  Orders<Bits> orders(args, in_vectors);
  const auto own = has_room ? nullptr : room_for<std::int64_t>(args.n * step);
  const auto copy = in_place ? room_for<char>(row_bytes) : nullptr;
  if ((!has_room && own == nullptr) || (in_place && copy == nullptr)) return kErrorMemory;
  for (std::int64_t first = 0; first < args.rows; first += step) {
    const std::int64_t rows = std::min(step, args.rows - first);
    std::int64_t* const order = has_room ? args.indices + first * args.n : own.get();
    if (!orders.write(static_cast<const char*>(args.keys_in) + first * row_bytes, rows, places, order))
      return kErrorMemory;
    for (std::int64_t row = 0; row < rows && args.keys_out != nullptr; ++row) {
      const char* keys = static_cast<const char*>(args.keys_in) + (first + row) * row_bytes;
      if (in_place) keys = static_cast<const char*>(std::memcpy(copy.get(), keys, static_cast<std::size_t>(row_bytes)));
      gather(itemsize, order + row * args.n, args.n, keys,
             static_cast<char*>(args.keys_out) + (first + row) * row_bytes);
    }
  }
  return 0;
}

}  // namespace

int sort_positions(const SortArgs& args, bool in_vectors) {
  switch (info(args.dtype).itemsize) {
    case 1: return sort_rows<std::uint8_t>(args, in_vectors);
    case 2: return sort_rows<std::uint16_t>(args, in_vectors);
    case 4: return sort_rows<std::uint32_t>(args, in_vectors);
    case 8: return sort_rows<std::uint64_t>(args, in_vectors);
    default: return sort_rows<Complex128>(args, in_vectors);
  }
}

int select_positions(const SortArgs& args, std::span<const std::int64_t> places) {
  switch (info(args.dtype).itemsize) {
    case 2: return sort_rows<std::uint16_t>(args, true, places);
    case 4: return sort_rows<std::uint32_t>(args, true, places);
    case 8: return sort_rows<std::uint64_t>(args, true, places);
    default: return sort_positions(args, true);
  }
}

}  // namespace dlbridge::nd::host_kernels
