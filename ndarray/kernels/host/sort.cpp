// Sorts of values alone on the host: as keys that give them back, of integers as they are.
#include "ndarray/kernels/host/sort.h"

#include <algorithm>
#include <concepts>
#include <memory>
#include <new>
#include <type_traits>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/host/count_tables.h"
#include "ndarray/kernels/host/key_loops.h"

namespace dlbridge::nd::host_kernels {
namespace {

using functors::KeyCode;
using functors::KeyKind;

constexpr std::int64_t kWidened = 4096;
constexpr std::int64_t kCountPairs = 49152;  // from which pairs of bytes are counted
constexpr std::int64_t kManyBytes = 1024;    // from which several tables are worth their sums,
constexpr std::int64_t kManyPairs = 131072;  // and of pairs of bytes

// Of bools, how many are true: every byte but 0.
void count_bools(const SortArgs& args) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const char* const in = static_cast<const char*>(args.keys_in) + row * args.n;
    char* const out = static_cast<char*>(args.keys_out) + row * args.n;
    const std::int64_t no = std::count(in, in + args.n, '\0'), first = args.descending ? args.n - no : no;
    std::fill(out, out + first, static_cast<char>(args.descending));
    std::fill(out + first, out + args.n, static_cast<char>(!args.descending));
  }
}
template <class Bits>
constexpr std::int64_t kValues = std::int64_t{1} << (8 * sizeof(Bits));

template <int kTables, class Bits>
void count_row(const KeyCode& code, const Bits* in, std::int64_t n, Bits* out, std::int64_t* tables) {
  constexpr std::int64_t kStep = table_step(kValues<Bits>), kFewEquals = 16;
  std::fill_n(tables, kTables * kStep, 0);
  count_in_tables<kTables>(n, kValues<Bits>, tables, tables + kStep,
                           [=](std::int64_t i, std::int64_t* table) { ++table[in[i]]; });
  const Bits* const end = out + n;
  for (std::int64_t key = 0; key < kValues<Bits>; ++key) {
    const Bits bits = functors::from_value_key(static_cast<Bits>(key), code);
    const std::int64_t count = tables[bits];
    if (count <= kFewEquals && end - out >= kFewEquals) std::fill_n(out, kFewEquals, bits);  // the next goes over it
    else std::fill_n(out, count, bits);
    out += count;
  }
}
// Of bytes, and of many pairs of bytes, how often each occurs is all there is to know.
template <class Bits>
int count_rows(const SortArgs& args) {
  constexpr int kTables = sizeof(Bits) == 1 ? 4 : 2;
  constexpr std::int64_t kRoom = kTables * table_step(kValues<Bits>);
  const std::unique_ptr<std::int64_t[]> tables(new (std::nothrow) std::int64_t[kRoom]);
  if (tables == nullptr) return kErrorMemory;
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const Bits* const in = static_cast<const Bits*>(args.keys_in) + row * args.n;
    Bits* const out = static_cast<Bits*>(args.keys_out) + row * args.n;
    if (std::equal(in + 1, in + args.n, in) || (!args.descending && are_in_order(args.dtype, in, 1, args.n))) {
      if (in != out) std::copy_n(in, args.n, out);
    } else if (args.n < (sizeof(Bits) == 1 ? kManyBytes : kManyPairs)) {
      count_row<1>(code, in, args.n, out, tables.get());
    } else {
      count_row<kTables>(code, in, args.n, out, tables.get());
    }
  }
  return 0;
}

// False where there are NaN, which are in no order, negative zeros, which equal others, or subnormal numbers, which are
// zeros to a thread that wants them to be. `in` may lie at any address.
template <class Bits>
DLBRIDGE_ND_CLONES bool copy_comparable(const char* in, std::int64_t n, Bits infinity, Bits* out) noexcept {
  constexpr std::int64_t kAtOnce = 256;
  const Bits least = static_cast<Bits>(infinity & (~infinity + 1));  // of the normal numbers: the exponent's lowest bit
  for (std::int64_t i = 0; i < n; i += kAtOnce) {
    const std::int64_t end = std::min(i + kAtOnce, n);
    Bits others = 0;
#if !defined(__clang__)
#pragma GCC ivdep
#endif
    for (std::int64_t j = i; j < end; ++j) {
      const Bits bits = bits_at<Bits>(in + j * static_cast<std::int64_t>(sizeof(Bits)));
      const Bits size = static_cast<Bits>(bits & ~functors::kTopBit<Bits>);
      const bool is_subnormal = static_cast<Bits>(size - 1) < static_cast<Bits>(least - 1);
      const bool is_other = (size > infinity) | is_subnormal | (bits == functors::kTopBit<Bits>);
      others = static_cast<Bits>(others | (is_other ? 1 : 0));
      out[j] = bits;
    }
    if (others != 0) return false;
  }
  return true;
}

// order(keys, n): puts each row of keys in order, which lie where the result does; of floats as they are where it takes
// them and vectors compare them so.
template <class Bits, class Order>
void order_rows(const SortArgs& args, Order order) {
  using Signed = std::make_signed_t<Bits>;
  using Float = std::conditional_t<sizeof(Bits) == 8, double, std::conditional_t<sizeof(Bits) == 4, float, void>>;
  const KeyCode code = functors::key_code(args.dtype, args.descending);
  const bool as_they_are = code.kind == KeyKind::kSigned && !code.descending;
  const auto order_row = [&](auto* keys) {
    if (args.n < kLookAt || !in_order(keys, args.n)) order(keys, args.n);
  };
  const std::int64_t step = rows_at_once(args);
  for (std::int64_t row = 0; row < args.rows; row += step) {
    const std::int64_t rows = std::min(step, args.rows - row), count = rows * args.n;
    const Bits* const in = static_cast<const Bits*>(args.keys_in) + row * args.n;
    Bits* const out = static_cast<Bits*>(args.keys_out) + row * args.n;
    if constexpr (std::is_invocable_v<Order, Float*, std::int64_t>)
      if (code.kind == KeyKind::kFloat && !code.descending && find_vector_sort<Float>() != nullptr &&
          copy_comparable<Bits>(reinterpret_cast<const char*>(in), count, static_cast<Bits>(code.infinity), out)) {
        for_rows_apart(rows, [&](std::int64_t i) { order_row(reinterpret_cast<Float*>(out + i * args.n)); });
        continue;
      }
    if (!as_they_are) recode<Bits, Coding::kValue>(code, in, out, count);
    else if (in != out) std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(Bits));
    for_rows_apart(rows, [&](std::int64_t i) {
      if (as_they_are) order_row(reinterpret_cast<Signed*>(out + i * args.n));
      else order_row(out + i * args.n);
    });
    if (!as_they_are) recode<Bits, Coding::kFromValue>(code, out, out, count);
  }
}

template <class Bits>
int sort_by_digits(const SortArgs& args) {
  const std::unique_ptr<Bits[]> spare(new (std::nothrow) Bits[static_cast<std::size_t>(args.n)]);
  if (spare == nullptr) return kErrorMemory;
  order_rows<Bits>(args, [&]<std::integral T>(T* keys, std::int64_t n) {
    if (n < kRadixFrom) return std::sort(keys, keys + n);
    const auto key_of = [](T key) -> std::uint64_t {
      const auto bits = static_cast<Bits>(key);
      return std::is_signed_v<T> ? bits ^ functors::kTopBit<Bits> : bits;
    };
    const T* const sorted = radix_sort<sizeof(T)>(keys, reinterpret_cast<T*>(spare.get()), n, key_of);
    if (sorted != keys) std::copy_n(sorted, n, keys);
  });
  return 0;
}
template <class Bits>
int sort_in_vectors(const SortArgs& args) {
  order_rows<Bits>(args, []<class T>(T* keys, std::int64_t n) { find_vector_sort<T>()->sort(keys, n); });
  return 0;
}
// Narrow ones in vectors of wider ones, while there are so few that a pass for each digit takes longer.
template <class Bits>
int sort_widened(const SortArgs& args) {
  order_rows<Bits>(args, []<std::integral T>(T* keys, std::int64_t n) {
    std::int32_t wide[kWidened];
    std::copy_n(keys, n, wide);
    find_vector_sort<std::int32_t>()->sort(wide, n);
    for (std::int64_t i = 0; i < n; ++i) keys[i] = static_cast<T>(wide[i]);
  });
  return 0;
}
template <class Bits>
int select_in_vectors(const SortArgs& args, std::span<const std::int64_t> places) {
  order_rows<Bits>(args, [=]<class T>(T* keys, std::int64_t n) { select_all(keys, n, places); });
  return 0;
}

}  // namespace

int sort_values(const SortArgs& args, bool in_vectors) {
  switch (info(args.dtype).itemsize) {
    case 1:
      if (args.dtype == DType::kBool) return count_bools(args), 0;
      if (in_vectors && args.n < 2 * static_cast<std::int64_t>(kBuckets)) return sort_widened<std::uint8_t>(args);
      return count_rows<std::uint8_t>(args);
    case 2:
      if (in_vectors && args.n <= kWidened) return sort_widened<std::uint16_t>(args);
      return args.n < kCountPairs ? sort_by_digits<std::uint16_t>(args) : count_rows<std::uint16_t>(args);
    case 4: return in_vectors ? sort_in_vectors<std::uint32_t>(args) : sort_by_digits<std::uint32_t>(args);
    default: return in_vectors ? sort_in_vectors<std::uint64_t>(args) : sort_by_digits<std::uint64_t>(args);
  }
}

int sort(const SortArgs& args) {
  if (!contains(kAllSet, args.dtype)) return kErrorUnsupported;
  if (args.rows == 0 || args.n == 0) return 0;
  const bool in_vectors = find_vector_sort<std::uint64_t>() != nullptr;
  const bool may_tell_equals_apart = contains(kFloatSet, args.dtype) || contains(kComplexSet, args.dtype);
  if (args.indices != nullptr || (args.stable && may_tell_equals_apart) || contains(kComplexSet, args.dtype))
    return sort_positions(args, in_vectors);
  return sort_values(args, in_vectors);
}

bool are_in_order(DType dtype, const void* rows, std::int64_t count, std::int64_t n) noexcept {
  const auto each = [&]<class T>(const T* row) {
    for (std::int64_t i = 0; i < count; ++i, row += n)
      if (!in_order(row, n)) return false;
    return true;
  };
  switch (dtype) {
    case DType::kInt8: return each(static_cast<const std::int8_t*>(rows));
    case DType::kInt16: return each(static_cast<const std::int16_t*>(rows));
    case DType::kInt32: return each(static_cast<const std::int32_t*>(rows));
    case DType::kInt64: return each(static_cast<const std::int64_t*>(rows));
    case DType::kUInt8: return each(static_cast<const std::uint8_t*>(rows));
    case DType::kUInt16: return each(static_cast<const std::uint16_t*>(rows));
    case DType::kUInt32: return each(static_cast<const std::uint32_t*>(rows));
    case DType::kUInt64: return each(static_cast<const std::uint64_t*>(rows));
    case DType::kFloat32: return each(static_cast<const float*>(rows));
    case DType::kFloat64: return each(static_cast<const double*>(rows));
    default: return false;
  }
}

int select(const SortArgs& args, std::span<const std::int64_t> places) {
  if (find_vector_sort<std::uint64_t>() == nullptr || contains(kComplexSet, args.dtype)) return sort(args);
  if (args.indices != nullptr) return select_positions(args, places);
  switch (info(args.dtype).itemsize) {
    case 4: return select_in_vectors<std::uint32_t>(args, places);
    case 8: return select_in_vectors<std::uint64_t>(args, places);
    default: return sort_values(args, true);
  }
}

}  // namespace dlbridge::nd::host_kernels
