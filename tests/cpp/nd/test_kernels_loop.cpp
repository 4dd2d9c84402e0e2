// What the device's launches are made of: the parts and tiles of a loop, and the division of indices.
#include "ndarray/kernels/functors/loop.h"

#include <random>

#include "ndarray/kernels/functors/divider.h"
#include "tests/cpp/nd/elementwise_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

// Marks each element of the output that a part of the loop reaches; parts must not overlap.
void mark(const KernelLoop& part, const char* base, std::vector<int>& counts) {
  for (std::int64_t i = 0; i < part.size(); ++i) {
    std::int64_t rest = i;
    const char* p = part.data[0];
    for (int d = 0; d < part.ndim; ++d) p += rest % part.shape[d] * part.strides[0][d], rest /= part.shape[d];
    ++counts[static_cast<std::size_t>(p - base)];
  }
}

TEST(Loop, PartsAndTilesCoverEveryElementOnce) {
  const int itemsizes[] = {4, 4};
  for (const auto& shape : {std::vector<std::int64_t>{70, 90}, {33, 1, 45}, {3, 500, 2}, {7, 20, 30}, {257}}) {
    ElementwiseArgs args = make_args(Op::kPositive, DType::kFloat32);
    args.ndim = static_cast<int>(shape.size());
    std::int64_t size = 1;
    for (int d = 0; d < args.ndim; ++d) {
      args.shape[d] = shape[static_cast<std::size_t>(d)];
      args.strides[0][d] = size;  // the output's addresses count its elements
      size *= args.shape[d];
    }
    std::int64_t stride = 4;
    for (int d = args.ndim - 1; d >= 0; --d) args.strides[1][d] = stride, stride *= args.shape[d];
    std::vector<char> out(static_cast<std::size_t>(size)), in(out.size() * 4);
    args.data[0] = out.data();
    args.data[1] = in.data();
    const KernelLoop loop = make_loop(args, itemsizes);
    std::vector<int> parts(static_cast<std::size_t>(size)), tiles(parts.size());
    EXPECT_EQ(for_each_32bit_part(loop, 1000,
                                  [&](const KernelLoop& part) {
                                    EXPECT_LE(part.size(), 1000);
                                    EXPECT_LE(extent_bytes(part, 1), 1000);
                                    mark(part, out.data(), parts);
                                    return 0;
                                  }),
              0);
    EXPECT_EQ(parts, std::vector<int>(parts.size(), 1));
    const TilePair pair = transposed_dims(loop, itemsizes);
    if (loop.ndim == 1) continue;
    ASSERT_NE(pair.across, 0);
    EXPECT_EQ(for_each_tiled_part(loop, pair, 1024,
                                  [&](const KernelLoop& part) {
                                    mark(part, out.data(), tiles);
                                    return 0;
                                  }),
              0);
    EXPECT_EQ(tiles, std::vector<int>(tiles.size(), 1));
  }
}

template <class U>
void check_divider() {
  constexpr int kBits = sizeof(U) * 8;
  constexpr U kMost = ~U{0} >> 1;
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const U d = i < 300 ? static_cast<U>(i + 1) : 1 + (static_cast<U>(random()) >> (2 + i % (kBits - 2)));
    const auto divider = BasicDivider<U>::of(static_cast<std::int64_t>(d));
    const U multiple = kMost / d * d;
    for (const U n : {U{0}, d - 1, d, 2 * (d / 2) + 1, multiple, multiple - 1, static_cast<U>(random()), kMost}) {
      U rest = n & kMost;
      ASSERT_EQ(divider.quotient(rest), rest / d) << n << " / " << d;
      ASSERT_EQ(divider.split(rest), (n & kMost) % d);
      ASSERT_EQ(rest, (n & kMost) / d);
    }
  }
}
TEST(Divider, IsExact) {
  check_divider<std::uint32_t>();
  check_divider<std::uint64_t>();
}

}  // namespace
}  // namespace dlbridge::nd
