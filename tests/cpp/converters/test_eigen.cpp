// Eigen's maps, matrices and tensors.
#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <utility>

#include "dlbridge/converters/eigen.h"
#include "dlbridge/converters/eigen_tensor.h"
#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Types =
    testing::Types<EigenMap<float>, EigenMap<const double>, EigenVectorMap<float>, Eigen::Map<RowMatrix>,
                   Eigen::Map<Eigen::MatrixXf>, Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>, Eigen::MatrixXf,
                   Eigen::ArrayXXd, Eigen::VectorXi, Eigen::TensorMap<Eigen::Tensor<float, 3, Eigen::RowMajor>>,
                   Eigen::TensorMap<const Eigen::Tensor<float, 3>>, Eigen::Tensor<double, 2>>;
template <class X>
class EigenConformance : public testing::Test {};
TYPED_TEST_SUITE(EigenConformance, Types);
TYPED_TEST(EigenConformance, BadInput) { test::check_conformance<TypeParam>(); }

Tensor numbered(VersionedProducer& p) {
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 64, 0.0F);
  return Tensor::take(&p.managed);
}

TEST(EigenMap, SharesEveryLayout) {
  const struct {
    const char* id;
    std::vector<std::int64_t> strides;
    std::uint64_t byte_offset;
    float at_1_2;
  } cases[] = {{"C", {3, 1}, 0, 5}, {"F", {1, 2}, 0, 5}, {"gaps", {8, 2}, 0, 12}, {"negative", {-3, -1}, 20, 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.id);
    VersionedProducer p({2, 3});
    p.set_strides(c.strides);
    p.managed.dl_tensor.byte_offset = c.byte_offset;
    {
      auto held = to<EigenMap<float>>(numbered(p));
      EigenMap<float>& map = held;
      EXPECT_EQ(reinterpret_cast<char*>(map.data()), p.bytes.data() + c.byte_offset);
      EXPECT_EQ(map(1, 2), c.at_1_2);
      map(1, 2) = 99;
      EXPECT_EQ(reinterpret_cast<float*>(p.bytes.data())[static_cast<std::size_t>(c.at_1_2)], 99);
      EXPECT_EQ(p.deleted, 0);
    }
    EXPECT_EQ(p.deleted, 1);
  }
}

// PyTorch issue 25103: a default (column-major) map over row-major memory showed the transpose and said nothing.
TEST(EigenMap, ADefaultMapOfRowMajorMemoryIsRefusedNotTransposed) {
  VersionedProducer p({2, 3});
  Tensor t = numbered(p);
  expect_error(ErrorCode::kCopyRefused, {"to<Eigen::Map>: expected Fortran-contiguous", "(2, 3)"},
               [&] { return to<Eigen::Map<Eigen::MatrixXf>>(t), 0; });
  auto copied = to<Eigen::Map<Eigen::MatrixXf>>(t, {.copy = copy::if_needed});
  EXPECT_EQ((*copied)(1, 2), 5);
  EXPECT_EQ((to<Eigen::MatrixXf>(t)(1, 2)), 5);
}

TEST(EigenMap, ConstTakesReadOnlyAndBroadcast) {
  VersionedProducer p({2, 3});
  p.managed.flags = kFlagReadOnly;
  p.set_strides({0, 1});
  auto held = to<EigenMap<const float>>(numbered(p));
  EXPECT_EQ((*held)(1, 2), 2);
}

TEST(EigenMap, FixedSizesAndStridesAreChecked) {
  VersionedProducer p({2, 3});
  Tensor t = numbered(p);
  const auto fits = to<EigenMap<float, 2, 3>>(t);
  EXPECT_EQ((*fits)(1, 2), 5);
  expect_error(ErrorCode::kMalformed, {"expected rows 4", "(2, 3)"}, [&] { return to<EigenMap<float, 4, 3>>(t), 0; });
  using ColumnsApart = Eigen::Map<Eigen::MatrixXf, 0, Eigen::OuterStride<>>;
  expect_error(ErrorCode::kMalformed, {"inner stride 1", "EigenMap"}, [&] { return to<ColumnsApart>(t), 0; });
  using Natural = Eigen::Map<RowMatrix, 0, Eigen::InnerStride<>>;
  VersionedProducer q({2, 3});
  q.set_strides({8, 2});
  expect_error(ErrorCode::kMalformed, {"outer stride 6"}, [&] { return to<Natural>(numbered(q)), 0; });
}

TEST(EigenMap, AViewOfAViewIsBareAndBorrowsBack) {
  VersionedProducer p({2, 3});
  Tensor t = numbered(p);
  EigenMap<float> map = to<EigenMap<float>>(t.view<float, 2>());
  EXPECT_EQ(map(1, 0), 3);
  Tensor back = from(borrow(map, std::move(t)));
  EXPECT_EQ(back.dl.data, p.bytes.data());
  EXPECT_EQ(back.dl.strides[0], 3);
  back = Tensor();
  EXPECT_EQ(p.deleted, 1);
  const EigenMap<const float> reads(reinterpret_cast<float*>(p.bytes.data()), 2, 3, {3, 1});
  EXPECT_TRUE(from(borrow(reads, unowned)).readonly());
}

TEST(EigenMatrix, MovesIn) {
  Eigen::MatrixXd m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  const double* data = m.data();
  Tensor t = from(std::move(m));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ(t.dl.strides[0], 1);
  EXPECT_EQ((t.view<const double, 2>()(1, 2)), 6);
  Eigen::Vector3f fixed(1, 2, 3);
  Tensor v = from(std::move(fixed));
  EXPECT_EQ(v.dl.ndim, 1);
  EXPECT_EQ((v.view<const float, 1>()(2)), 3);
  EXPECT_EQ(from(Eigen::MatrixXcf(2, 2)).dtype().name, "complex64");
  EXPECT_EQ(from(Eigen::MatrixXf(0, 3)).size, 0);
}

TEST(EigenTensor, SharesDenseMemoryInItsOwnOrder) {
  VersionedProducer p({2, 3, 4});
  Tensor t = numbered(p);
  auto row = to<Eigen::TensorMap<Eigen::Tensor<float, 3, Eigen::RowMajor>>>(t);
  EXPECT_EQ(row->data(), reinterpret_cast<float*>(p.bytes.data()));
  EXPECT_EQ((*row)(1, 2, 3), 23);
  expect_error(ErrorCode::kCopyRefused, {"Fortran-contiguous"},
               [&] { return to<Eigen::TensorMap<Eigen::Tensor<float, 3>>>(t), 0; });
  EXPECT_EQ((to<Eigen::Tensor<float, 3, Eigen::RowMajor>>(t)(1, 2, 3)), 23);
  Eigen::Tensor<float, 3> column(2, 3, 4);
  column(1, 2, 3) = 7;
  Tensor back = from(std::move(column));
  EXPECT_EQ(back.dl.strides[2], 6);
  EXPECT_EQ((back.view<const float, 3>()(1, 2, 3)), 7);
}

TEST(EigenDocs, Documented) {
  test::expect_documented({
      {converter<EigenMap<float>>::capabilities, "T", "1 or 2"},
      {converter<EigenMap<const float>>::capabilities, "T", "1 or 2"},
      {converter<Eigen::MatrixXf>::capabilities, "T", "1 or 2"},
      {converter<Eigen::ArrayXXf>::capabilities, "T", "1 or 2"},
      {converter<Eigen::TensorMap<Eigen::Tensor<float, 3, Eigen::RowMajor>>>::capabilities, "T", "N"},
      {converter<Eigen::TensorMap<const Eigen::Tensor<float, 3, Eigen::RowMajor>>>::capabilities, "T", "N"},
      {converter<Eigen::Tensor<float, 3, Eigen::RowMajor>>::capabilities, "T", "N"},
  });
}

}  // namespace
}  // namespace dlbridge
