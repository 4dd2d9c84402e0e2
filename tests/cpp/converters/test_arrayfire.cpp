// af::array against tests/cpp/fakes/arrayfire, since ArrayFire's headers are in no package here.
#include "dlbridge/converters/arrayfire.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

TEST(ArrayFire, Conformance) {
  test::check_conformance<af::array>();
  EXPECT_EQ(fake_af::live, 0);
}

TEST(ArrayFire, ATensorLocksTheArrayWhileItLives) {
  const float values[6] = {0, 1, 2, 3, 4, 5};
  const dim_t dims[2] = {2, 3};
  af_array handle = nullptr;
  ASSERT_EQ(af_create_array(&handle, values, 2, dims, f32), AF_SUCCESS);
  {
    const af::array a(handle);
    {
      Tensor t = from(a);
      EXPECT_EQ(fake_af::as_data(handle)->locks, 1);
      EXPECT_EQ(t.dl.ndim, 2) << "trailing extents of 1 are not axes";
      EXPECT_EQ(t.dl.strides[1], 2) << "column-major";
      EXPECT_EQ((t.view<const float, 2>()(1, 2)), 5);
    }
    EXPECT_EQ(fake_af::as_data(handle)->locks, 0);
    EXPECT_EQ(fake_af::live, 1);
  }
  EXPECT_EQ(fake_af::live, 0);
}

TEST(ArrayFire, ATensorIsCopiedInColumnMajorOrder) {
  VersionedProducer p({2, 3});
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 6, 0.0F);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<af::array>", "Fortran-contiguous"}, [&] { return to<af::array>(t), 0; });
  const af::array a = to<af::array>(t, {.copy = copy::if_needed});
  EXPECT_EQ(static_cast<float*>(fake_af::as_data(a.get())->memory)[1], 3);
  const Tensor seen = from(a);
  EXPECT_EQ((seen.view<const float, 2>()(1, 2)), 5);
}

TEST(ArrayFire, FailuresLeakNothing) {
  VersionedProducer p({2});
  {
    Tensor t = Tensor::take(&p.managed);
    fake_af::fail_next = true;
    expect_error(ErrorCode::kRefused, {"af_create_array", "out of memory"},
                 [&] { return to<af::array>(std::move(t)), 0; });
    EXPECT_EQ(p.deleted, 0);
    const af::array a = to<af::array>(t);
    fake_af::fail_next = true;
    expect_error(ErrorCode::kRefused, {"af_get_device_ptr"}, [&] { return from(a), 0; });
    fake_af::backend = AF_BACKEND_OPENCL;
    expect_error(ErrorCode::kRefused, {"from<af::array>", "OpenCL"}, [&] { return from(a), 0; });
    fake_af::backend = AF_BACKEND_CPU;
    EXPECT_EQ(fake_af::as_data(a.get())->locks, 0);
  }
  EXPECT_EQ(p.deleted, 1);
  EXPECT_EQ(fake_af::live, 0);
}

TEST(ArrayFire, Documented) {
  test::expect_documented({
      {converter<af::array>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
