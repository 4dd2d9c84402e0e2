// The fills with equal steps.
#include "tests/cpp/nd/elementwise_cases.h"

namespace dlbridge::nd {
namespace {

using namespace testing_cases;

TEST(Range, CountsInEveryDtype) {
  for (DType t : dtypes_of(kRealSet)) {
    std::vector<unsigned char> out(50 * itemsize(t));
    RangeArgs args{};
    args.dtype = t;
    args.n = 50;
    args.out = out.data();
    args.start = 3;
    args.step = 2;
    args.int_start = 3;
    args.int_step = 2;
    ASSERT_EQ(host_kernels::range(args), 0);
    for (std::size_t i = 0; i < 50; ++i)
      ASSERT_EQ(value_at(t, &out[i * itemsize(t)]).real(), 3.0 + 2.0 * static_cast<double>(i));
  }
  double points[4];
  RangeArgs linspace{};
  linspace.dtype = DType::kFloat64;
  linspace.n = 4;
  linspace.out = points;
  linspace.start = 0.1;
  linspace.stop = 0.7;
  linspace.step = 0.6 / 3;
  linspace.endpoint = true;
  ASSERT_EQ(host_kernels::range(linspace), 0);
  EXPECT_EQ(points[3], 0.7);
  EXPECT_EQ(points[1], 0.1 + 0.6 / 3);
}

}  // namespace
}  // namespace dlbridge::nd
