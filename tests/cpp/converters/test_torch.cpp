// at::Tensor with the real libtorch (CPU).
#include "dlbridge/converters/torch.h"

#include <ATen/DLConvertor.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

TEST(Torch, Conformance) { test::check_conformance<at::Tensor>(); }

TEST(Torch, ATensorOfOursBecomesTorchsWithItsOwner) {
  VersionedProducer p({2, 3});
  p.set_strides({1, 2});
  {
    at::Tensor x = to<at::Tensor>(Tensor::take(&p.managed));
    EXPECT_EQ(x.data_ptr(), p.bytes.data());
    EXPECT_EQ(x.sizes(), at::IntArrayRef({2, 3}));
    EXPECT_EQ(x.strides(), at::IntArrayRef({1, 2}));
    const at::Tensor view = x[1];
    x = at::Tensor();
    EXPECT_EQ(p.deleted, 0) << "a view of it holds the storage";
    EXPECT_EQ(view.numel(), 3);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(Torch, TorchsTensorBecomesOursByItsCount) {
  at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3}).t();
  const auto uses = x.use_count();
  {
    Tensor t = from(x);
    EXPECT_EQ(x.use_count(), uses + 1);
    EXPECT_EQ(t.dl.data, x.data_ptr());
    EXPECT_EQ(t.dl.strides[0], 1);
    EXPECT_EQ((t.view<const float, 2>()(2, 1)), 5);
    at::Tensor back = to<at::Tensor>(std::move(t));
    EXPECT_EQ(back.data_ptr(), x.data_ptr());
    EXPECT_EQ(x.use_count(), uses + 1);
  }
  EXPECT_EQ(x.use_count(), uses);
  Tensor moved = from(std::move(x));
  EXPECT_FALSE(x.defined());
  EXPECT_EQ(moved.size, 6);
}

TEST(Torch, BroadcastAndScalarTensorsRoundTrip) {
  const at::Tensor wide = at::ones({1}).expand({4});
  EXPECT_EQ(to<at::Tensor>(from(wide)).strides(), at::IntArrayRef({0}));
  EXPECT_EQ(to<at::Tensor>(from(at::scalar_tensor(3.5))).item<double>(), 3.5);
}

TEST(Torch, EveryDtypeGoesBothWays) {
  for (const detail::TorchDType& row : detail::kTorchDTypes) {
    SCOPED_TRACE(info(row.dtype).name);
    at::Tensor x = at::empty({3}, row.torch);
    Tensor t = from(x);
    EXPECT_EQ(t.dtype().id, row.dtype);
    EXPECT_EQ(t.itemsize(), x.element_size());
    EXPECT_EQ(to<at::Tensor>(std::move(t)).scalar_type(), row.torch);
  }
  expect_error(ErrorCode::kRefused, {"from<at::Tensor>", "QInt8", "int_repr"},
               [] { return from(at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8)), 0; });
}

// Torch's own DLPack export says nothing about these; reading their memory would be wrong.
TEST(Torch, LazyAndTrackedTensorsAreRefusedWithTheRemedy) {
  const struct {
    at::Tensor x;
    const char* remedy;
  } cases[] = {
      {at::ones({2}).requires_grad_(true), "detach()"},
      {at::ones({2}, at::kComplexFloat).conj(), "resolve_conj()"},
      {at::imag(at::ones({2}, at::kComplexFloat).conj()), "resolve_neg()"},
      {at::eye(2).to_sparse(), "to_dense()"},
      {at::_efficientzerotensor({2}, at::kFloat), "clone()"},
      {at::Tensor(), "undefined"},
  };
  for (const auto& c : cases) {
    const auto uses = c.x.use_count();
    expect_error(ErrorCode::kRefused, {"from<at::Tensor>", c.remedy}, [&] { return from(c.x), 0; });
    EXPECT_EQ(c.x.use_count(), uses);
  }
  expect_error(ErrorCode::kRefused, {"meta"}, [] { return from(at::empty({2}, at::kMeta)), 0; });
}

// 25: torch's import does not consume on error, so whoever called it still owns.
TEST(Torch, Fault25NothingIsConsumedWhereTorchThrows) {
  VersionedProducer p({2}, {kDLInt, 64, 1});
  p.managed.dl_tensor.dtype = {kDLFloat8_e3m4, 8, 1};
  EXPECT_THROW(at::fromDLPackVersioned(&p.managed), c10::Error);
  EXPECT_EQ(p.deleted, 0) << "at::fromDLPackVersioned has changed its contract";
  {
    Tensor t = Tensor::take(&p.managed);
    expect_error(ErrorCode::kWrongType, {"to<at::Tensor>", "float8_e3m4"},
                 [&] { return to<at::Tensor>(std::move(t)), 0; });
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(Torch, ManagedStructsOfTorchAreTakenAndGiven) {
  const at::Tensor x = at::arange(4, at::kInt);
  Tensor t = Tensor::take(at::toDLPackVersioned(x));
  EXPECT_EQ(t.dl.data, x.data_ptr());
  EXPECT_EQ(at::fromDLPackVersioned(std::move(t).release()).data_ptr(), x.data_ptr());
}

TEST(Torch, Documented) {
  test::expect_documented({
      {converter<at::Tensor>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
