// The host's sorts against std::stable_sort and its searches against a count, both by an order that is written with
// comparisons; and what the key transforms promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/functors/runs.h"
#include "ndarray/kernels/functors/sort_keys.h"
#include "ndarray/kernels/host/sort.h"
#include "ndarray/kernels/host/vector_sort.h"
#include "tests/cpp/nd/reduce_cases.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

template <class T>
bool has_nan(T x) {
  if constexpr (is_complex_v<T>) return x.real() != x.real() || x.imag() != x.imag();
  else if constexpr (is_float_v<T>) return cast<double>(x) != cast<double>(x);
  else return false;
}

// NumPy's order; complex numbers with NaN in the imaginary part, in the real part, in both come last.
template <class T>
bool precedes(T a, T b) {
  if constexpr (is_half_v<T>) {
    return precedes(to_float(a), to_float(b));
  } else if constexpr (is_complex_v<T>) {
    const auto group = [](T z) { return (std::isnan(z.real()) ? 2 : 0) + (std::isnan(z.imag()) ? 1 : 0); };
    if (group(a) != group(b)) return group(a) < group(b);
    if (group(a) < 2 && a.real() != b.real()) return a.real() < b.real();
    return a.imag() < b.imag();
  } else {
    return a < b || (!has_nan(a) && has_nan(b));
  }
}

// The positions in order; descending, numbers turn around and NaN stay last.
template <class T>
std::vector<std::int64_t> sorted_positions(const T* row, std::int64_t n, bool descending) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(n));
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(), [&](std::int64_t i, std::int64_t j) {
    const T a = row[i], b = row[j];
    const bool turn = descending && !has_nan(a) && !has_nan(b);
    return turn ? precedes(b, a) : precedes(a, b);
  });
  return positions;
}

TEST(HostSort, EveryDTypeStableWithNanLast) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                            DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16,
                            DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128})
    for (const std::int64_t n : {1, 2, 37, 700, 5000}) {
      const std::int64_t rows = 3, itemsize = info(dtype).itemsize;
      for (const bool descending : {false, true}) {
        if (descending && contains(kComplexSet, dtype)) continue;  // the order among NaN is left open there
        std::vector<unsigned char> keys = random_buffer(dtype, rows * n, 5, true);
        std::vector<std::int64_t> indices(static_cast<std::size_t>(rows * n), -1), want = indices;
        visit_dtype<kAllSet>(
            dtype,
            [&]<class T>() {
              const T* x = reinterpret_cast<const T*>(keys.data());
              for (std::int64_t r = 0; r < rows; ++r) {
                const auto row = sorted_positions(x + r * n, n, descending);
                std::copy(row.begin(), row.end(), want.begin() + r * n);
              }
              return 0;
            },
            0);
        std::vector<unsigned char> out(keys.size());
        SortArgs args{dtype, descending, true, rows, n, keys.data(), out.data(), indices.data(), {}, 0};
        ASSERT_EQ(host_kernels::sort(args), 0);
        ASSERT_EQ(indices, want) << info(dtype).name << " n " << n << (descending ? " descending" : "");
        std::fill(indices.begin(), indices.end(), -1);
        ASSERT_EQ(host_kernels::sort_positions(args, false), 0);
        ASSERT_EQ(indices, want) << info(dtype).name << " n " << n << " side by side";
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t from = r * n + want[static_cast<std::size_t>(r * n + i)];
            ASSERT_EQ(std::memcmp(out.data() + (r * n + i) * itemsize, keys.data() + from * itemsize,
                                  static_cast<std::size_t>(itemsize)),
                      0);
          }
        args.keys_out = keys.data();  // in place, values alone
        args.indices = nullptr;
        ASSERT_EQ(host_kernels::sort(args), 0);
        ASSERT_EQ(keys, out);
      }
    }
}

TEST(HostSort, ValuesInVectorsAndByDigits) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64,
                            DType::kUInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64})
    for (const std::int64_t n : {1, 300, 3000})
      for (const auto& [descending, has_nan_in_it] : {std::pair(false, false), {false, true}, {true, true}}) {
        const std::vector<unsigned char> keys = random_buffer(dtype, 2 * n, 7, has_nan_in_it);
        std::vector<unsigned char> by_digits(keys.size()), out(keys.size());
        SortArgs args{dtype, descending, false, 2, n, keys.data(), by_digits.data(), nullptr, {}, 0};
        ASSERT_EQ(host_kernels::sort_values(args, false), 0);
        args.keys_out = out.data();
        ASSERT_EQ(host_kernels::sort(args), 0);
        ASSERT_EQ(out, by_digits) << info(dtype).name << " n " << n << (descending ? " descending" : "");
        visit_dtype<kAllSet>(
            dtype,
            [&]<class T>() {
              const T* x = reinterpret_cast<const T*>(out.data());
              for (std::int64_t i = 1; i < n; ++i) {
                const bool turn = descending && !has_nan(x[i - 1]) && !has_nan(x[i]);
                EXPECT_FALSE(turn ? precedes(x[i - 1], x[i]) : precedes(x[i], x[i - 1]));
              }
              return 0;
            },
            0);
      }
}

// Keys that 44 bits and a position in 20 do not tell apart: few of them, and nearly all.
TEST(HostSort, PositionsOfKeysThatAgreeInTheirHighBits) {
  constexpr std::int64_t kCount = 9000;
  for (const std::int64_t groups : {1, 30, 7000}) {
    std::mt19937_64 random(11);
    std::vector<std::int64_t> x(kCount), indices(kCount);
    for (auto& value : x)
      value = static_cast<std::int64_t>((random() % static_cast<std::uint64_t>(groups)) << 40 | random() % 50);
    x[17] = std::numeric_limits<std::int64_t>::min();
    x[18] = std::numeric_limits<std::int64_t>::max();
    const SortArgs args{DType::kInt64, false, true, 1, kCount, x.data(), nullptr, indices.data(), {}, 0};
    ASSERT_EQ(host_kernels::sort(args), 0);
    EXPECT_EQ(indices, sorted_positions(x.data(), kCount, false)) << groups;
  }
}

#if defined(__x86_64__)
TEST(HostSort, SubnormalNumbersKeepTheirBitsWhereTheThreadTakesThemForZeros) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  std::vector<double> x(1000);
  std::mt19937_64 random(4);
  for (double& value : x) value = static_cast<double>(random() % 9) * kLeast / 4 - kLeast;
  std::vector<double> want = x, out(x.size());
  std::sort(want.begin(), want.end());
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zeros
  const SortArgs args{DType::kFloat64, false, false, 1, 1000, x.data(), out.data(), nullptr, {}, 0};
  const int code = host_kernels::sort(args);
  _mm_setcsr(before);
  ASSERT_EQ(code, 0);
  EXPECT_EQ(std::memcmp(out.data(), want.data(), out.size() * sizeof(double)), 0);
}
#endif

template <class T>
void expect_vector_sorts() {
  const auto* const vectors = host_kernels::find_vector_sort<T>();
  if (vectors == nullptr) GTEST_SKIP() << "no vectors that sort them";
  std::mt19937_64 random(3);
  for (std::int64_t n = 1; n < 1500; n += n < 300 ? 1 : 97)
    for (const std::uint64_t values : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{9}, std::uint64_t{0}}) {
      std::vector<T> x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint64_t value = values == 0 ? random() : ~std::uint64_t{0} - random() % values;
        if constexpr (std::is_floating_point_v<T>) {
          constexpr T kInfinity = std::numeric_limits<T>::infinity();
          x[i] = value % 50 == 1   ? kInfinity
                 : value % 50 == 2 ? -kInfinity
                                   : static_cast<T>(static_cast<std::int64_t>(value));
        } else {
          x[i] = static_cast<T>(value);
        }
      }
      std::vector<T> want = x, selected = x;
      std::sort(want.begin(), want.end());
      vectors->sort(x.data(), n);
      ASSERT_EQ(x, want) << n;
      const auto k = static_cast<std::ptrdiff_t>(random() % x.size());
      vectors->select(selected.data(), n, k);
      ASSERT_EQ(selected[static_cast<std::size_t>(k)], want[static_cast<std::size_t>(k)]) << n << " at " << k;
      std::sort(selected.begin(), selected.begin() + k);
      std::sort(selected.begin() + k, selected.end());
      ASSERT_EQ(selected, want) << n << " at " << k;
    }
}
TEST(VectorSort, SortsAndSelectsInEveryLengthAndAmongEquals) {
  expect_vector_sorts<std::int32_t>();
  expect_vector_sorts<std::uint32_t>();
  expect_vector_sorts<std::int64_t>();
  expect_vector_sorts<std::uint64_t>();
}
TEST(VectorSort, SortsAndSelectsFloats) {
  expect_vector_sorts<float>();
  expect_vector_sorts<double>();
}

TEST(HostSort, NanOfEitherSignComesLastAndZerosKeepTheirOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x{-nan, 0.0f, nan, -0.0f, inf, -inf, 1};
  std::vector<std::int64_t> indices(x.size());
  for (const bool descending : {false, true}) {
    SortArgs args{DType::kFloat32, descending, true, 1, 7, x.data(), nullptr, indices.data(), {}, 0};
    ASSERT_EQ(host_kernels::sort(args), 0);
    EXPECT_EQ(indices, descending ? (std::vector<std::int64_t>{4, 6, 1, 3, 5, 0, 2})
                                  : (std::vector<std::int64_t>{5, 1, 3, 6, 4, 0, 2}));
  }
}

TEST(HostSearch, CountsWhatComesBeforeInEveryDtype) {
  constexpr std::int64_t kRow = 61, kValues = 40;
  for (unsigned d = 0; d < 32; ++d)
    visit_dtype<kAllSet>(
        static_cast<DType>(d),
        [&]<class T>() {
          constexpr DType dtype = dtype_of_native<T>::value;
          const std::vector<unsigned char> buffer = random_buffer(dtype, kRow, 8, true);
          const T* x = reinterpret_cast<const T*>(buffer.data());
          const auto order = sorted_positions(x, kRow, false);
          std::unique_ptr<T[]> row(new T[kRow]);  // not a vector: of bool it is none
          for (std::size_t i = 0; i < kRow; ++i) row[i] = x[order[i]];
          std::vector<unsigned char> wanted = random_buffer(dtype, kValues, 9, true);
          std::memcpy(wanted.data(), x, kValues / 2 * sizeof(T));  // half of them are in the row
          const T* values = reinterpret_cast<const T*>(wanted.data());
          for (const bool right : {false, true}) {
            std::int64_t out[kValues];
            const SearchArgs args{dtype, right, row.get(), kRow, values, kValues, out, 0};
            EXPECT_EQ(host_kernels::search(args), 0);
            for (std::size_t j = 0; j < kValues; ++j) {
              const T value = values[j];
              const auto before = [&](T x_i) { return right ? !precedes(value, x_i) : precedes(x_i, value); };
              EXPECT_EQ(out[j], std::count_if(row.get(), row.get() + kRow, before)) << info(dtype).name << " at " << j;
            }
          }
          return 0;
        },
        0);
}

TEST(HostRuns, BeginWhereAnElementDiffersFromTheOneBefore) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> sorted{-1, -0.0f, 0.0f, 2, 2, 2, nan, -nan};
  const std::vector<std::int64_t> order{7, 6, 5, 4, 3, 2, 1, 0};
  for (const bool equal_nan : {false, true}) {
    std::vector<float> values(8);
    std::vector<std::int64_t> first(8), lengths(8), inverse(8);
    std::int64_t count = -1;
    const RunsArgs args{DType::kFloat32,
                        equal_nan,
                        8,
                        sorted.data(),
                        order.data(),
                        values.data(),
                        first.data(),
                        lengths.data(),
                        inverse.data(),
                        &count,
                        {},
                        0};
    ASSERT_EQ(host_kernels::runs(args), 0);
    const std::size_t runs = equal_nan ? 4 : 5;
    ASSERT_EQ(count, static_cast<std::int64_t>(runs));
    EXPECT_TRUE(std::signbit(values[1]));  // the first of the run
    EXPECT_EQ(values[2], 2);
    EXPECT_TRUE(std::isnan(values[3]));
    first.resize(runs);
    lengths.resize(runs);
    EXPECT_EQ(first, equal_nan ? (std::vector<std::int64_t>{7, 6, 4, 1}) : (std::vector<std::int64_t>{7, 6, 4, 1, 0}));
    EXPECT_EQ(lengths,
              equal_nan ? (std::vector<std::int64_t>{1, 2, 3, 2}) : (std::vector<std::int64_t>{1, 2, 3, 1, 1}));
    EXPECT_EQ(inverse, equal_nan ? (std::vector<std::int64_t>{3, 3, 2, 2, 2, 1, 1, 0})
                                 : (std::vector<std::int64_t>{4, 3, 2, 2, 2, 1, 1, 0}));
  }
}

// As for each pair by itself, in rows of several blocks; the complex numbers' NaN, too.
TEST(HostRuns, AreThoseOfTheFunctorInEveryDtype) {
  for (unsigned d = 0; d < 32; ++d)
    visit_dtype<functors::kRunSet>(
        static_cast<DType>(d),
        [&]<class T>() {
          for (const std::int64_t count : {1, 4096, 4097, 9000}) {
            const auto n = static_cast<std::size_t>(count);
            std::vector<unsigned char> buffer = random_buffer(dtype_of_native<T>::value, count, 10, true);
            T* x = reinterpret_cast<T*>(buffer.data());
            for (std::size_t i = 0; i < n; i += 3) x[i] = x[i / 2];
            const auto order = sorted_positions(x, count, false);
            std::unique_ptr<T[]> row(new T[n]), values(new T[n]);
            for (std::size_t i = 0; i < n; ++i) row[i] = x[order[i]];
            for (const bool equal_nan : {false, true}) {
              std::int64_t found = 0;
              RunsArgs args{};
              args.dtype = dtype_of_native<T>::value;
              args.equal_nan = equal_nan;
              args.n = count;
              args.sorted = row.get();
              args.values = values.get();
              args.count = &found;
              EXPECT_EQ(host_kernels::runs(args), 0);
              std::size_t runs = 0;
              for (std::size_t i = 0; i < n; ++i) {
                if (i != 0 && !functors::begins_run(row[i - 1], row[i], equal_nan)) continue;
                EXPECT_EQ(std::memcmp(&values[runs++], &row[i], sizeof(T)), 0) << info(args.dtype).name << " at " << i;
              }
              EXPECT_EQ(found, static_cast<std::int64_t>(runs));
            }
          }
          return 0;
        },
        0);
}

// What CUDA's radix sorts of values rely on: a bijection that is monotone and puts every NaN last.
TEST(SortKeys, ValueKeysOfAll16BitPatternsGoThereAndBack) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kInt16, DType::kUInt16})
    for (const bool descending : {false, true}) {
      const functors::KeyCode code = functors::key_code(dtype, descending);
      std::vector<std::uint16_t> by_key(1 << 16);
      std::vector<bool> taken(1 << 16, false);
      for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
        const std::uint16_t key = functors::value_key(static_cast<std::uint16_t>(bits), code);
        ASSERT_EQ(functors::from_value_key(key, code), bits);
        ASSERT_FALSE(taken[key]);
        taken[key] = true;
        by_key[key] = static_cast<std::uint16_t>(bits);
      }
      bool nan_seen = false;
      double last = descending ? INFINITY : -INFINITY;
      for (const std::uint16_t bits : by_key) {
        const double value = value_at(dtype, &bits).real();
        if (std::isnan(value)) {
          nan_seen = true;
          continue;
        }
        ASSERT_FALSE(nan_seen) << "a number after NaN";
        ASSERT_TRUE(descending ? value <= last : value >= last) << value << " after " << last;
        last = value;
      }
    }
}

}  // namespace
}  // namespace dlbridge::nd
