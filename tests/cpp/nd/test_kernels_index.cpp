// Gather, scatter, nonzero and search of the host, against walks that take one element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/types.h"
#include "tests/cpp/nd/index_cases.h"

namespace dlbridge::nd {
namespace {

using testing::IndexCase;
using testing::place_of;
using Bytes = std::vector<unsigned char>;

Bytes random_bytes(std::mt19937& random, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count));
  for (auto& b : out) b = static_cast<unsigned char>(random());
  return out;
}

IndexArgs bind(IndexCase& c, Bytes& values, Bytes& base) {
  IndexArgs args = c.args;
  args.values = values.data();
  args.base = base.data();
  for (std::size_t k = 0; k < c.index.size(); ++k) args.index[k] = c.index[k].data();
  return args;
}

TEST(Index, gather_and_scatter_move_every_element) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 600; ++trial) {
    const int itemsize = 1 << (trial % 5);
    IndexCase c = testing::random_index_case(random, itemsize, trial % 3 == 0);
    Bytes base = random_bytes(random, c.base_size * itemsize),
          values(static_cast<std::size_t>(c.value_size * itemsize));
    ASSERT_EQ(host_kernels::gather(bind(c, values, base)), 0);
    for (std::int64_t i = 0; i < c.args.size; ++i) {
      const auto p = place_of(c, i);
      ASSERT_EQ(std::memcmp(values.data() + p.value, base.data() + p.base, static_cast<std::size_t>(itemsize)), 0);
    }
    Bytes written = base, expected = base;
    values = random_bytes(random, c.value_size * itemsize);
    for (std::int64_t i = 0; i < c.args.size; ++i) {  // the last of duplicates stays
      const auto p = place_of(c, i);
      std::memcpy(expected.data() + p.base, values.data() + p.value, static_cast<std::size_t>(itemsize));
    }
    ASSERT_EQ(host_kernels::scatter(bind(c, values, written)), 0);
    ASSERT_EQ(written, expected) << trial;
  }
}

template <class T>
void expect_accumulates(std::mt19937& random) {
  for (int trial = 0; trial < 20; ++trial) {
    IndexCase c = testing::random_index_case(random, sizeof(T), trial % 3 == 0);
    c.args.accumulate = true;
    c.args.dtype = dtype_of_native<T>::value;
    Bytes base(static_cast<std::size_t>(c.base_size) * sizeof(T)),
        values(static_cast<std::size_t>(c.value_size) * sizeof(T));
    const auto fill = [&](Bytes& bytes) {  // small integers: sums are exact in every dtype
      for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
        const T v = cast<T>(static_cast<int>(random() % 3));
        std::memcpy(bytes.data() + i, &v, sizeof v);
      }
    };
    fill(base);
    fill(values);
    Bytes expected = base;
    for (std::int64_t i = 0; i < c.args.size; ++i) {
      const auto p = place_of(c, i);
      T a, b;
      std::memcpy(&a, expected.data() + p.base, sizeof a);
      std::memcpy(&b, values.data() + p.value, sizeof b);
      if constexpr (std::is_same_v<T, bool>) a = a || b;
      else a = cast<T>(static_cast<arith_t<T>>(load(&a) + load(&b)));
      std::memcpy(expected.data() + p.base, &a, sizeof a);
    }
    ASSERT_EQ(host_kernels::scatter(bind(c, values, base)), 0);
    ASSERT_EQ(base, expected) << info(c.args.dtype).name << " " << trial;
  }
}

TEST(Index, scatter_accumulates_duplicates_in_every_dtype) {
  std::mt19937 random(12);
  for (unsigned d = 0; d < 32; ++d) {
    const int rc =
        visit_dtype<kAllSet>(static_cast<DType>(d), [&]<class T>() { return expect_accumulates<T>(random), 1; }, 0);
    EXPECT_EQ(rc, contains(kAllSet, static_cast<DType>(d)) ? 1 : 0);
  }
}

// What is gathered goes to an array that nobody sees after an error.
TEST(Index, an_index_out_of_bounds_is_refused_and_none_is_written_to) {
  for (const std::int64_t bad : {4, -5}) {
    std::vector<std::int64_t> index{0, -4, 3, bad};
    std::vector<float> base(4, 1), values(4, 7);
    IndexArgs args{};
    args.itemsize = 4;
    args.ndim = args.arrays = 1;
    args.size = args.shape[0] = 4;
    args.values = values.data();
    args.base = base.data();
    args.value_strides[0] = args.axis_stride[0] = 4;
    args.index[0] = index.data();
    args.index_strides[0][0] = 8;
    args.extent[0] = 4;
    EXPECT_EQ(host_kernels::scatter(args), kErrorIndex);
    EXPECT_EQ(host_kernels::gather(args), kErrorIndex);
    EXPECT_EQ(base, std::vector<float>(4, 1));
  }
}

TEST(Nonzero, gives_the_positions_in_order) {
  std::mt19937 random(13);
  for (std::int64_t n = 0; n < 70; ++n) {
    Bytes mask(static_cast<std::size_t>(n) + 3);
    for (auto& b : mask) b = random() % 3 == 0;
    std::vector<std::int64_t> expected, positions(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      if (mask[static_cast<std::size_t>(i) + 3]) expected.push_back(i);
    std::int64_t count = -1;
    NonzeroArgs args{mask.data() + 3, n, nullptr, &count, {}, 0};
    ASSERT_EQ(host_kernels::nonzero(args), 0);
    EXPECT_EQ(count, static_cast<std::int64_t>(expected.size()));
    args.positions = positions.data();
    ASSERT_EQ(host_kernels::nonzero(args), 0);
    positions.resize(static_cast<std::size_t>(count));
    EXPECT_EQ(positions, expected);
  }
}

template <class T>
void expect_found(const std::vector<T>& sorted, const std::vector<T>& values, bool right,
                  const std::vector<std::int64_t>& expected) {
  std::vector<std::int64_t> out(values.size(), -1);
  const SearchArgs args{dtype_of_native<T>::value,
                        right,
                        sorted.data(),
                        static_cast<std::int64_t>(sorted.size()),
                        values.data(),
                        static_cast<std::int64_t>(values.size()),
                        out.data(),
                        0};
  ASSERT_EQ(host_kernels::search(args), 0);
  EXPECT_EQ(out, expected);
}

TEST(Search, counts_the_smaller_ones_and_orders_nan_last) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  expect_found<std::int32_t>({1, 3, 3, 5}, {0, 1, 3, 4, 9}, false, {0, 0, 1, 3, 4});
  expect_found<std::int32_t>({1, 3, 3, 5}, {0, 1, 3, 4, 9}, true, {0, 1, 3, 3, 4});
  expect_found<float>({-inf, 1, inf, nan, nan}, {nan, inf, -inf, 2}, false, {3, 2, 0, 2});
  expect_found<float>({-inf, 1, inf, nan, nan}, {nan, inf, -inf, 2}, true, {5, 3, 1, 2});
  expect_found<float16>({to_float16(-2.0f), to_float16(0.0f), to_float16(nan)}, {to_float16(-0.0f), to_float16(nan)},
                        false, {1, 2});
  using Complex = std::complex<float>;
  expect_found<Complex>({{1, 5}, {2, 0}, {2, 3}, {0, nan}, {nan, 0}}, {{2, 1}, {1, 9}, {0, nan}, {nan, nan}}, false,
                        {2, 1, 3, 5});
  expect_found<std::uint64_t>({1, ~0ull}, {~0ull, 2}, true, {2, 1});
  expect_found<double>({}, {1}, false, {0});
}

}  // namespace
}  // namespace dlbridge::nd
