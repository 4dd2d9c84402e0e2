// The matrix product of the host, against three nested loops: every dtype, layouts, sizes around the blocks' edges.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "ndarray/kernels/functions.h"
#include "ndarray/kernels/types.h"

namespace dlbridge::nd {
namespace {

struct Sizes {
  std::int64_t batch, m, n, k;
};

// Rows or columns of a matrix dense in memory, with `pad` elements between them.
struct Strides {
  std::int64_t row, column, size;
};
Strides strides_of(std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t pad) {
  return transposed ? Strides{1, rows + pad, columns * (rows + pad)}
                    : Strides{columns + pad, 1, rows * (columns + pad)};
}

// Small integers: every sum is exact in every dtype, and integer types wrap as they should.
template <class T>
std::vector<T> filled(std::mt19937& random, std::int64_t count) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const int a = static_cast<int>(random() % 5) - (contains(kUnsignedSet, dtype_of_native<T>::value) ? 0 : 2);
    if constexpr (is_complex_v<T>)
      out.push_back(T(static_cast<real_t<T>>(a), static_cast<real_t<T>>(static_cast<int>(random() % 5) - 2)));
    else out.push_back(cast<T>(a));
  }
  return out;
}

template <class T>
using Wide =
    std::conditional_t<is_complex_v<T>, std::complex<double>, std::conditional_t<is_float_v<T>, double, std::uint64_t>>;

template <class T>
void expect_product(std::mt19937& random, Sizes s, bool a_transposed, bool b_transposed, bool b_broadcast) {
  struct Storage {  // vector<bool> has no addresses
    T value;
  };
  const Strides sa = strides_of(s.m, s.k, a_transposed, 3), sb = strides_of(s.k, s.n, b_transposed, 0);
  std::vector<Storage> a, b, c(static_cast<std::size_t>(s.batch * s.m * s.n));
  for (const auto& v : filled<T>(random, s.batch * sa.size)) a.push_back({v});
  for (const auto& v : filled<T>(random, s.batch * sb.size)) b.push_back({v});
  MatmulArgs args{};
  args.dtype = dtype_of_native<T>::value;
  args.batch = s.batch;
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  args.a = a.data();
  args.a_batch = sa.size;
  args.a_row = sa.row;
  args.a_column = sa.column;
  args.b = b.data();
  args.b_batch = b_broadcast ? 0 : sb.size;
  args.b_row = sb.row;
  args.b_column = sb.column;
  args.c = c.data();
  args.c_batch = s.m * s.n;
  ASSERT_EQ(host_kernels::matmul(args), 0);
  for (std::int64_t p = 0; p < s.batch; ++p)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        using W = Wide<T>;
        W sum{};
        for (std::int64_t l = 0; l < s.k; ++l) {
          const T x = a[static_cast<std::size_t>(p * args.a_batch + i * sa.row + l * sa.column)].value;
          const T y = b[static_cast<std::size_t>(p * args.b_batch + l * sb.row + j * sb.column)].value;
          sum += cast<W>(x) * cast<W>(y);
        }
        const T got = c[static_cast<std::size_t>((p * s.m + i) * s.n + j)].value;
        ASSERT_EQ(cast<Wide<T>>(got), cast<Wide<T>>(cast<T>(sum)))
            << info(args.dtype).name << " " << s.m << "x" << s.k << "x" << s.n << " at " << i << "," << j;
      }
}

TEST(Matmul, equals_three_loops) {
  std::mt19937 random(21);
  const Sizes sizes[] = {{1, 1, 1, 1},  {2, 7, 5, 3},   {1, 73, 17, 9},   {3, 1, 300, 20}, {2, 300, 1, 33},
                         {1, 1, 1, 70}, {2, 5, 513, 2}, {1, 13, 40, 260}, {1, 3, 4, 0}};
  for (unsigned d = 0; d < 32; ++d) {
    visit_dtype<kAllSet>(
        static_cast<DType>(d),
        [&]<class T>() {
          for (const Sizes& s : sizes)
            for (int layout = 0; layout < 4; ++layout)
              expect_product<T>(random, s, layout & 1, layout & 2, layout == 1);
          return 0;
        },
        0);
  }
}

TEST(Matmul, a_vector_may_lie_backwards_or_be_broadcast) {
  std::vector<float> a(12), c(4), x{1, 2, 3};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  MatmulArgs args{};
  args.dtype = DType::kFloat32;
  args.batch = 1;
  args.m = 4;
  args.n = 1;
  args.k = 3;
  args.a = a.data();
  args.a_row = 3;
  args.a_column = 1;
  args.b = x.data() + 2;
  args.b_row = -1;
  args.b_column = 1;
  args.c = c.data();
  ASSERT_EQ(host_kernels::matmul(args), 0);
  EXPECT_EQ(c, (std::vector<float>{4, 22, 40, 58}));
  args.b_row = 0;
  ASSERT_EQ(host_kernels::matmul(args), 0);
  EXPECT_EQ(c, (std::vector<float>{9, 36, 63, 90}));
}

TEST(Matmul, float16_sums_in_float32) {
  // 4096 products of 1: a float16 sum would stop at 2048. The first row and column matter to both paths.
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{2}}) {
    const std::vector<float16> ones(static_cast<std::size_t>(4096 * n), to_float16(1.0f));
    std::vector<float16> c(static_cast<std::size_t>(n * n));
    MatmulArgs args{};
    args.dtype = DType::kFloat16;
    args.batch = 1;
    args.m = args.n = n;
    args.k = 4096;
    args.a = args.b = ones.data();
    args.a_row = 4096;
    args.a_column = 1;
    args.b_row = n;
    args.b_column = 1;
    args.c = c.data();
    ASSERT_EQ(host_kernels::matmul(args), 0);
    for (const float16 v : c) EXPECT_EQ(to_float(v), 4096);
  }
}

}  // namespace
}  // namespace dlbridge::nd
