// Tensor::take, release, share and view, TensorView, check<...> and what their errors say. faults.md 1, 4-6, 8, 18-20.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::LegacyProducer;
using test::VersionedProducer;

TEST(Take, ConsumesAlwaysAlsoOnError) {
  VersionedProducer good;
  {
    const Tensor t = Tensor::take(&good.managed);
  }
  EXPECT_EQ(good.deleted, 1);
  VersionedProducer major2;
  major2.managed.version.major = 2;
  expect_error(ErrorCode::kRefused, {"take: ", "2.", "1.3"}, [&] { return Tensor::take(&major2.managed), 0; });
  EXPECT_EQ(major2.deleted, 1);
  LegacyProducer legacy;
  legacy.managed.dl_tensor.ndim = -1;
  expect_error(ErrorCode::kMalformed, {"ndim is -1"}, [&] { return Tensor::take(&legacy.managed), 0; });
  EXPECT_EQ(legacy.deleted, 1);
}

TEST(Take, Fault4ANullStructIsNamed) {
  expect_error(ErrorCode::kMalformed, {"take: ", "null", "taken before"},
               [] { return Tensor::take(static_cast<DLManagedTensorVersioned*>(nullptr)), 0; });
}

TEST(Release, GivesTheTensorAwayOnce) {
  VersionedProducer p;
  DLManagedTensorVersioned* out = Tensor::take(&p.managed).release();
  EXPECT_EQ(p.deleted, 0);
  EXPECT_EQ(out->dl_tensor.data, p.bytes.data());
  out->deleter(out);
  EXPECT_EQ(p.deleted, 1);
}

TEST(Release, TheLegacyStructCannotSayReadOnly) {
  VersionedProducer p;
  p.managed.flags = kFlagReadOnly;
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kRefused, {"release_legacy", "read-only", "release()"},
               [&] { return std::move(t).release_legacy(); });
  EXPECT_EQ(p.deleted, 0);
  LegacyProducer q;
  DLManagedTensor* out = Tensor::take(&q.managed).release_legacy();
  out->deleter(out);
  EXPECT_EQ(q.deleted, 1);
}

TEST(Share, KeepsMemoryUntilTheLastAndEverythingElse) {
  VersionedProducer p({2, 3});
  p.managed.flags = kFlagReadOnly | kFlagCopied;
  Tensor a = Tensor::take(&p.managed);
  Tensor b = a.share();
  Tensor c = b.share();
  a = Tensor();
  b = Tensor();
  EXPECT_EQ(p.deleted, 0);
  EXPECT_EQ(c.dl.data, p.bytes.data());
  EXPECT_EQ(c.dl.shape[1], 3);
  EXPECT_EQ(c.size, 6);
  EXPECT_EQ(c.flags, kFlagReadOnly) << "what is shared is nobody's own copy";
  c = Tensor();
  EXPECT_EQ(p.deleted, 1);
  Tensor unowned_tensor;
  EXPECT_FALSE(unowned_tensor.share().owner);
}

Tensor matrix(VersionedProducer& p) {
  auto* data = reinterpret_cast<float*>(p.bytes.data());
  std::iota(data, data + 64, 0.0F);
  return Tensor::take(&p.managed);
}

TEST(View, ReadsAndWritesEveryLayout) {
  VersionedProducer p({2, 3});
  Tensor t = matrix(p);
  const auto any = t.view<float, 2>();
  const auto c = t.view<const float, 2, c_contig, on_cpu>();
  EXPECT_EQ(any(1, 2), 5);
  EXPECT_EQ(c(1, 2), 5);
  EXPECT_EQ(c.span().size(), 6u);
  EXPECT_EQ(std::accumulate(c.begin(), c.end(), 0.0F), 15);
  any(1, 2) = 50;
  EXPECT_EQ(c(1, 2), 50);
  EXPECT_EQ(any.stride(0), 3);
  EXPECT_EQ(any.extents()[1], 3);
  const auto d = t.view<const float, static_cast<int>(dyn)>();
  EXPECT_EQ(d.rank(), 2);
  EXPECT_EQ(d(1, 0), 3);

  VersionedProducer q({3, 2});
  q.set_strides({1, 3});
  Tensor f = matrix(q);
  EXPECT_EQ((f.view<const float, 2, f_contig>()(2, 1)), 5);
  EXPECT_EQ((f.view<const float, 2>()(2, 1)), 5);

  VersionedProducer r(std::vector<std::int64_t>{});
  Tensor scalar = matrix(r);
  EXPECT_EQ((scalar.view<const float, 0>()()), 0);
}

TEST(View, NegativeStridesAndAnEmptyTensor) {
  VersionedProducer p({3});
  p.managed.dl_tensor.byte_offset = 8;
  p.set_strides({-1});
  Tensor t = matrix(p);
  const auto v = t.view<float, 1>();
  EXPECT_EQ(v(0), 2);
  EXPECT_EQ(v(2), 0);
  VersionedProducer q({0, 3});
  q.managed.dl_tensor.data = nullptr;
  Tensor empty = Tensor::take(&q.managed);
  EXPECT_TRUE((empty.view<float, 2, c_contig>().empty()));
}

TEST(View, AtChecksWhatTheCallDoesNot) {
  VersionedProducer p({2, 3});
  Tensor t = matrix(p);
  const auto v = t.view<float, 2>();
  EXPECT_EQ(v.at(1, 2), 5);
  expect_error(ErrorCode::kMalformed, {"within (2, 3)", "(1, 3)"}, [&] { return v.at(1, 3); });
  expect_error(ErrorCode::kMalformed, {"(-2, 0)"}, [&] { return v.at(-2, 0); });
  const auto d = t.view<float, static_cast<int>(dyn)>();
  expect_error(ErrorCode::kMalformed, {"got (1,)"}, [&] { return d.at(1); });
}

// What a view refuses, in the words that the user reads.
struct Refusal {
  const char* id;
  void (*damage)(VersionedProducer&);
  void (*view)(Tensor&);
  ErrorCode code;
  std::vector<std::string> says;
};

TEST(View, SaysExpectedGotAndWhatToDo) {
  const std::vector<Refusal> refusals = {
      {"dtype",
       [](VersionedProducer& p) { p.managed.dl_tensor.dtype = {kDLInt, 32, 1}; },
       [](Tensor& t) { t.view<float, 2>(); },
       ErrorCode::kWrongType,
       {"view: expected dtype float32, got (2, 3) [int32, strides (3, 1), cpu, writable]", "Hint: cast"}},
      {"rank",
       [](VersionedProducer&) {},
       [](Tensor& t) { t.view<float, 3>(); },
       ErrorCode::kMalformed,
       {"expected rank 3, got (2, 3) [float32"}},
      {"device",
       [](VersionedProducer& p) { p.managed.dl_tensor.device = {kDLCUDA, 1}; },
       [](Tensor& t) { t.view<float, 2>(); },
       ErrorCode::kRefused,
       {"expected device cpu or cuda_host", "cuda:1"}},
      {"layout",
       [](VersionedProducer& p) { p.set_strides({1, 2}); },
       [](Tensor& t) { t.view<const float, 2, c_contig>(); },
       ErrorCode::kCopyRefused,
       {"expected C-contiguous", "strides (1, 2)", "copy::if_needed"}},
      {"18 read-only",
       [](VersionedProducer& p) { p.managed.flags = kFlagReadOnly; },
       [](Tensor& t) { t.view<float, 2>(); },
       ErrorCode::kCopyRefused,
       {"expected writable memory", "read-only]"}},
      {"19 stride 0",
       [](VersionedProducer& p) { p.set_strides({0, 1}); },
       [](Tensor& t) { t.view<float, 2>(); },
       ErrorCode::kCopyRefused,
       {"distinct elements", "strides (0, 1)"}},
      {"axes that run into one another",
       [](VersionedProducer& p) { p.set_strides({1, 1}); },
       [](Tensor& t) { t.view<float, 2>(); },
       ErrorCode::kCopyRefused,
       {"distinct elements"}},
      {"15 misaligned",
       [](VersionedProducer& p) { p.managed.dl_tensor.byte_offset = 2; },
       [](Tensor& t) { t.view<const float, 2>(); },
       ErrorCode::kCopyRefused,
       {"aligned to 4 bytes", "the address"}},
  };
  for (const Refusal& r : refusals) {
    SCOPED_TRACE(r.id);
    VersionedProducer p({2, 3});
    r.damage(p);
    {
      Tensor t = Tensor::take(&p.managed);
      expect_error(r.code, r.says, [&] { return r.view(t), 0; });
    }
    EXPECT_EQ(p.deleted, 1);
  }
}

TEST(View, ConstElementsTakeWhatWritersMayNot) {
  VersionedProducer p({2, 3});
  p.managed.flags = kFlagReadOnly;
  p.set_strides({0, 1});
  Tensor t = matrix(p);
  const auto v = t.view<const float, 2>();
  EXPECT_EQ(v(1, 2), 2);
}

TEST(View, AFunctionMayTakeOneAndBeCalledWithATensor) {
  const auto sum = [](TensorView<const float, 1, c_contig> v) { return std::accumulate(v.begin(), v.end(), 0.0F); };
  VersionedProducer p({4});
  Tensor t = matrix(p);
  EXPECT_EQ(sum(t), 6);
  const Tensor& same = t;
  EXPECT_EQ(sum(same), 6);
  VersionedProducer q({2, 2});
  Tensor u = matrix(q);
  expect_error(ErrorCode::kMalformed, {"rank 1"}, [&] { return sum(u); });
}

TEST(View, WidensAndNeverNarrows) {
  using Strict = TensorView<float, 2, c_contig, on_cpu>;
  static_assert(std::is_convertible_v<Strict, TensorView<const float, 2>>);
  static_assert(std::is_convertible_v<Strict, TensorView<float, 2, any_layout, any_device>>);
  static_assert(!std::is_constructible_v<TensorView<float, 2>, TensorView<const float, 2>>);
  static_assert(!std::is_constructible_v<Strict, TensorView<float, 2>>);
  static_assert(!std::is_constructible_v<TensorView<float, 2, any_layout, on_cuda>, Strict>);
  static_assert(!std::is_constructible_v<TensorView<const float, 1>, Tensor>, "a view of a temporary");
}

TEST(View, ExtentsOfATemporaryOutliveIt) {
  VersionedProducer p({2, 3});
  Tensor t = matrix(p);
  const auto extents = t.view<float, 2>().extents();
  const auto strides = t.view<float, 2>().strides();
  static_assert(std::is_same_v<decltype(extents), const std::array<std::int64_t, 2>>);
  EXPECT_EQ(extents[1], 3);
  EXPECT_EQ(strides[0], 3);
  const auto of_tensor = t.view<float, static_cast<int>(dyn)>().extents();  // there they are the tensor's
  EXPECT_EQ(of_tensor.data(), t.dl.shape);
}

TEST(Check, SaysWhyAndDoesNotThrow) {
  VersionedProducer p({480, 640});
  Tensor t = Tensor::take(&p.managed);
  EXPECT_EQ((check<float, 2, c_contig, on_cpu>(t)), std::nullopt);
  EXPECT_EQ((check<const void, shape<480, dyn>>(t)), std::nullopt);
  EXPECT_TRUE((meets<float, rank<2>, writable>(t)));
  const auto why = check<float, shape<dyn, dyn, 3>, c_contig, on_cpu>(t, "torch.Tensor");
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->code, ErrorCode::kMalformed);
  EXPECT_EQ(why->message.substr(0, why->message.find(". Hint")),
            "expected shape (*, *, 3), got (480, 640) [torch.Tensor, float32, strides (640, 1), cpu, writable]");
  EXPECT_EQ((check<float, shape<481, dyn>>(t))->message.substr(0, 26), "expected shape (481, *), g");
  EXPECT_NE((check<float, 2, any_layout, on_cuda>(t))->message.find("cuda or cuda_managed"), std::string::npos);
  EXPECT_NE((check<float, 2, aligned<1 << 30>>(t))->message.find("1073741824"), std::string::npos);
}

TEST(DenseCopy, ReversesTheOrderOfAxesWhereFortranIsAskedFor) {
  VersionedProducer p({2, 3});
  Tensor t = matrix(p);
  const Tensor f = dense_copy_f(t);
  EXPECT_TRUE(is_f_contiguous(f.dl));
  EXPECT_EQ((f.view<const float, 2, f_contig>()(1, 2)), 5);
  EXPECT_EQ(f.dl.strides[1], 2);
}

}  // namespace
}  // namespace dlbridge
