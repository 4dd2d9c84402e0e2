// searchsorted on the host, many values at a time and without branches: in a short row a comparison with each element,
// in a longer one with the few of an equal part of its range, else binary searches in step, whose loads do not wait for
// each other. Many single bytes are looked up.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/search_row.h"
#include "ndarray/kernels/host/inner_loop.h"

namespace dlbridge::nd::host_kernels {
namespace {

constexpr std::int64_t kSteps = 16;
// Elements of a row that are compared with each value: a counter of bytes holds as many.
template <class Key>
constexpr std::int64_t kShortRow = 255 / sizeof(Key);
constexpr std::int64_t kKeptKeys = 2048;  // of a row whose elements are looked at so often that their keys are kept

// Whether an element of the row comes before a value's place.
template <bool kRight, class Key>
bool is_before(Key element, Key value) noexcept {
  return kRight ? !(value < element) : element < value;
}

// The keys of complex64 are packed into one number each.
template <class T>
auto key_of(T value) noexcept {
  const auto key = functors::order_key(value);
  if constexpr (is_complex_v<T> && sizeof(T) == 8) return std::uint64_t{key.high} << 32 | key.low;
  else return key;
}
template <class T>
using KeyOf = decltype(key_of(T{}));

// The keys of `count` values from the `first` on.
template <class T>
void value_keys(const SearchArgs& args, std::int64_t first, std::int64_t count, KeyOf<T>* keys) {
  const T* values = static_cast<const T*>(args.values) + first * args.value_step;
  if (args.value_step == 1)
    for (std::int64_t j = 0; j < count; ++j) keys[j] = key_of(values[j]);
  else
    for (std::int64_t j = 0; j < count; ++j) keys[j] = key_of(values[j * args.value_step]);
}

std::int64_t result_of(const SearchArgs& args, std::int64_t found) { return args.from_end ? args.n - found : found; }

// Counters are as wide as keys, whose comparison is a mask of as many bits.
template <class T, bool kRight>
DLBRIDGE_ND_CLONES void search_short(const SearchArgs& args, const KeyOf<T>* row) {
  using Key = KeyOf<T>;
  using Count = std::conditional_t<std::is_integral_v<Key>, Key, std::uint64_t>;
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t first = 0; first < args.count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, args.count - first);
    Key keys[kBlock];
    Count before[kBlock] = {};
    value_keys<T>(args, first, n, keys);
    std::fill(keys + n, keys + kBlock, keys[n - 1]);
    for (std::int64_t k = 0; k < args.n; ++k)
      for (std::int64_t j = 0; j < kBlock; ++j)
        before[j] = static_cast<Count>(before[j] + static_cast<Count>(is_before<kRight>(row[k], keys[j])));
    for (std::int64_t j = 0; j < n; ++j) args.out[first + j] = result_of(args, static_cast<std::int64_t>(before[j]));
  }
}

// Whether all are one value.
template <class Key>
bool repeat(const Key (&keys)[kSteps], const Key& value) noexcept {
  bool differs = false;
  for (const Key& key : keys) differs |= key < value || value < key;
  return !differs;
}

// key_at(k): of the row's element k.
template <class T, bool kRight, class KeyAt>
void search_in_step(const SearchArgs& args, KeyAt key_at) {
  for (std::int64_t begin = 0; begin < args.count; begin += kSteps) {
    const std::int64_t count = std::min(kSteps, args.count - begin);
    KeyOf<T> keys[kSteps];
    std::int64_t first[kSteps] = {};
    value_keys<T>(args, begin, count, keys);
    std::fill(keys + count, keys + kSteps, keys[count - 1]);
    if (begin > 0 && repeat(keys, key_of(static_cast<const T*>(args.values)[(begin - 1) * args.value_step]))) {
      std::fill_n(args.out + begin, count, args.out[begin - 1]);
      continue;
    }
    // Of the n elements from `first` on, those that come before the value are counted still.
    std::int64_t n = args.n;
    for (; n > 1; n -= n / 2) {
      const std::int64_t half = n / 2;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
      for (std::int64_t j = 0; j < kSteps; ++j) {
        const auto key = key_at(first[j] + half - 1);
        first[j] += half & -static_cast<std::int64_t>(is_before<kRight>(key, keys[j]));
      }
    }
    for (std::int64_t j = 0; j < count; ++j)
      args.out[begin + j] =
          result_of(args, first[j] + (n == 1 && is_before<kRight>(key_at(first[j]), keys[j]) ? 1 : 0));
  }
}

// By keys that lie in a row a machine fetches many at a time.
template <class T, bool kRight>
DLBRIDGE_ND_CLONES void search_kept(const SearchArgs& args, const KeyOf<T>* row) {
  search_in_step<T, kRight>(args, [row](std::int64_t k) { return row[k]; });
}

// The range of a row in equal parts: how many elements come before each. What follows from a value by one subtraction
// and one product is never smaller for a larger value, rounded or not, so that what lies in parts below comes before it
// and what lies in those above does not.
template <class T>
class Parts {
  using Real = std::conditional_t<sizeof(T) == 4 && std::is_floating_point_v<T>, float, double>;

 public:
  static constexpr bool exist = sizeof(T) >= 4 && !is_complex_v<T>;
  static constexpr std::int32_t kParts = 4096;
  static constexpr std::int64_t kInPart = 8;  // elements of one part that are compared with a value

  // False where the row has no range that can be divided, too many of its elements share a part, or it is not sorted,
  // for which no result is promised, but that nothing else is read.
  bool divide(const SearchArgs& args) noexcept {
    const T* const row = static_cast<const T*>(args.sorted);
    const auto at = [&](std::int64_t k) { return static_cast<Real>(row[k * args.sorted_step]); };
    std::int64_t first = 0, last = args.n - 1;
    while (first < last && !std::isfinite(at(first))) ++first;
    while (first < last && !std::isfinite(at(last))) --last;
    low_ = at(first);
    scale_ = Real(kParts) / (at(last) - low_);
    if (!std::isfinite(scale_) || !(scale_ > Real(0))) return false;
    std::int32_t part = 0;  // up to which it is known what comes before
    before_[0] = 0;
    for (std::int64_t k = 0; k < args.n; ++k) {
      const std::int32_t here = part_of(row[k * args.sorted_step]);
      if (here < part) return false;
      std::fill(before_ + part + 1, before_ + here + 1, static_cast<std::uint16_t>(k));
      part = here;
      most_ = std::max(most_, k + 1 - before_[here]);
      if (most_ > kInPart) return false;
    }
    std::fill(before_ + part + 1, before_ + kParts, static_cast<std::uint16_t>(args.n));
    return true;
  }
  std::int32_t part_of(T value) const noexcept {
    constexpr Real kLast = kParts - 1;
    Real place = (static_cast<Real>(value) - low_) * scale_;
    place = place < kLast ? place : kLast;  // NaN is last
    return static_cast<std::int32_t>(place > Real(0) ? place : Real(0));
  }
  std::int64_t before(std::int32_t part) const noexcept { return before_[part]; }
  std::int64_t most() const noexcept { return most_; }

 private:
  Real low_, scale_;
  std::int64_t most_ = 0;
  std::uint16_t before_[kParts];
};

// The row is followed by as many elements as a part may have.
template <class T, bool kRight>
void search_parts(const SearchArgs& args, const KeyOf<T>* row, const Parts<T>& parts) {
  constexpr std::int64_t kBlock = 64;
  const T* values = static_cast<const T*>(args.values);
  const std::int64_t most = parts.most();
  for (std::int64_t first = 0; first < args.count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, args.count - first);
    std::int32_t part[kBlock];
    for (std::int64_t j = 0; j < n; ++j) part[j] = parts.part_of(values[(first + j) * args.value_step]);
    for (std::int64_t j = 0; j < n; ++j) {
      const auto key = key_of(values[(first + j) * args.value_step]);
      const std::int64_t before = parts.before(part[j]);
      std::int64_t found = before;
      for (std::int64_t k = 0; k < most; ++k) found += is_before<kRight>(row[before + k], key);
      args.out[first + j] = result_of(args, std::min(found, args.n));
    }
  }
}

// Of single bytes each is searched for once.
template <class T>
constexpr std::int64_t kByteValues = std::is_same_v<T, bool> ? 2 : 256;
template <class T, class PlaceOf>
void search_bytes(const SearchArgs& args, PlaceOf place_of) {
  constexpr auto kValues = static_cast<std::size_t>(kByteValues<T>);
  std::int64_t places[kValues];
  for (std::size_t bits = 0; bits < kValues; ++bits)
    places[bits] = place_of(std::bit_cast<T>(static_cast<std::uint8_t>(bits)));
  const auto* const values = static_cast<const std::uint8_t*>(args.values);
  for (std::int64_t j = 0; j < args.count; ++j) args.out[j] = places[values[j * args.value_step]];
}

template <class T, bool kRight>
int search_row(const SearchArgs& args) {
  const T* sorted = static_cast<const T*>(args.sorted);
  const auto place_of = [&](T value) {
    return result_of(args, functors::search_row(sorted, args.sorted_step, args.n, value, kRight));
  };
  if constexpr (sizeof(T) == 1) {
    if (args.count >= 2 * kByteValues<T>) return search_bytes<T>(args, place_of), 0;
  }
  if (args.count < kSteps) {
    const T* values = static_cast<const T*>(args.values);
    for (std::int64_t j = 0; j < args.count; ++j) args.out[j] = place_of(values[j * args.value_step]);
    return 0;
  }
  KeyOf<T> keys[kKeptKeys + Parts<T>::kInPart];
  if (args.count <= args.n / 4 || args.n > kKeptKeys) {
    search_in_step<T, kRight>(args, [&](std::int64_t k) { return key_of(sorted[k * args.sorted_step]); });
    return 0;
  }
  for (std::int64_t k = 0; k < args.n; ++k) keys[k] = key_of(sorted[k * args.sorted_step]);
  if (args.n <= kShortRow<KeyOf<T>>) {
    search_short<T, kRight>(args, keys);
    return 0;
  }
  if constexpr (Parts<T>::exist) {
    Parts<T> parts;
    if (args.count >= Parts<T>::kParts && parts.divide(args)) {
      std::fill_n(keys + args.n, Parts<T>::kInPart, keys[args.n - 1]);
      search_parts<T, kRight>(args, keys, parts);
      return 0;
    }
  }
  search_kept<T, kRight>(args, keys);
  return 0;
}

}  // namespace

int search(const SearchArgs& args) {
  return visit_dtype<kAllSet>(
      args.dtype, [&]<class T>() { return args.right ? search_row<T, true>(args) : search_row<T, false>(args); },
      kErrorUnsupported);
}

}  // namespace dlbridge::nd::host_kernels
