// std::vector, std::array and std::span, and what from(), to(), borrow() and the options do with any converter.
#include "dlbridge/converters/std.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

// A user's own types: one that is moved in, one that throws midway, one that owns what it takes and throws.
struct Image {
  std::vector<std::uint8_t> pixels;
  std::int64_t height = 0, width = 0;
};
struct Grumpy {};
struct Owning {
  dlbridge::Tensor tensor;
};
inline int grumpy_calls = 0;

template <>
struct dlbridge::converter<Image> {
  static constexpr caps capabilities{
      .name = "Image", .max_rank = 3, .strides = stride_rule::positive, .result = result_kind::copy};
  static Tensor from(Image&& image) {
    const std::int64_t shape[3] = {image.height, image.width, 3};
    auto* kept = new Image(std::move(image));
    Tensor out;
    out.owner = Owner(kept, [](void* context) noexcept { delete static_cast<Image*>(context); });
    throw_if_failed("from<Image>", describe_memory(out, kept->pixels.data(), kCpuDevice, 3, shape, nullptr));
    return out;
  }
  static Image to(TensorView<const std::uint8_t, 3> v, const options&) {
    Image out{std::vector<std::uint8_t>(static_cast<std::size_t>(v.size())), v.extent(0), v.extent(1)};
    std::size_t at = 0;
    for (std::int64_t y = 0; y < v.extent(0); ++y)
      for (std::int64_t x = 0; x < v.extent(1); ++x)
        for (std::int64_t c = 0; c < 3; ++c) out.pixels[at++] = v(y, x, c);
    return out;
  }
};
template <>
struct dlbridge::converter<Grumpy> {
  static constexpr caps capabilities{.name = "Grumpy"};
  static Status describe(const Grumpy&, Tensor&) { return refused("expected a smile, got none. Hint: try later"); }
  static Grumpy to(Tensor&, const options&) {
    ++grumpy_calls;
    throw std::runtime_error("midway");
  }
};
template <>
struct dlbridge::converter<Owning> {
  static constexpr caps capabilities{.name = "Owning", .result = result_kind::owner, .consumes_on_error = true};
  static Owning to(Tensor&& t, const options&) {
    Owning out{std::move(t)};
    if (out.tensor.size == 4) throw std::runtime_error("midway");
    return out;
  }
};

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

using Views = testing::Types<std::vector<float>, std::vector<std::int16_t>, std::array<double, 2>, std::span<float>,
                             std::span<const float>, std::span<double, 2>>;
template <class X>
class Conformance : public testing::Test {};
TYPED_TEST_SUITE(Conformance, Views);
TYPED_TEST(Conformance, BadInput) { test::check_conformance<TypeParam>(); }

TEST(Vector, MovesInWithoutACopyAndOutAsOne) {
  std::vector<float> v{1, 2, 3};
  const float* data = v.data();
  Tensor t = from(std::move(v));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ(t.dtype().name, "float32");
  EXPECT_FALSE(t.readonly());
  EXPECT_TRUE(v.empty());
  EXPECT_EQ(to<std::vector<float>>(t), (std::vector<float>{1, 2, 3}));
  t.view<float, 1>()(1) = 7;
  EXPECT_EQ(to<std::vector<float>>(std::move(t))[1], 7);
}

TEST(Vector, ReversedElementsAreCopiedInTheirOrder) {
  VersionedProducer p({3}, {kDLInt, 32, 1});
  auto* data = reinterpret_cast<std::int32_t*>(p.bytes.data());
  std::iota(data, data + 3, 1);
  p.managed.dl_tensor.data = data + 2;
  p.set_strides({-1});
  EXPECT_EQ(to<std::vector<std::int32_t>>(Tensor::take(&p.managed)), (std::vector<std::int32_t>{3, 2, 1}));
  EXPECT_EQ(p.deleted, 1);
}

TEST(Array, TheExtentIsPartOfTheType) {
  Tensor t = from(std::array<int, 3>{1, 2, 3});
  EXPECT_EQ((to<std::array<int, 3>>(t)), (std::array<int, 3>{1, 2, 3}));
  expect_error(ErrorCode::kMalformed, {"shape (4,)", "(3,)"}, [&] { return to<std::array<int, 4>>(t); });
  expect_error(ErrorCode::kMalformed, {"shape (4,)", "(3,)"}, [&] { return to<std::span<int, 4>>(t), 0; });
}

TEST(Borrow, KeepsTheKeepaliveAndNoCopy) {
  auto keep = std::make_shared<std::vector<int>>(std::vector<int>{1, 2});
  const std::weak_ptr<std::vector<int>> watch = keep;
  {
    Tensor t = from(borrow(std::span<int>(*keep), keep));
    EXPECT_EQ(t.dl.data, keep->data());
    keep.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ((t.view<const int, 1>()(1)), 2);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Borrow, ConstLendsReadOnly) {
  const std::vector<float> v{1, 2};
  Tensor t = from(borrow(v, unowned));
  EXPECT_TRUE(t.readonly());
  EXPECT_FALSE(t.owner);
  EXPECT_EQ((t.view<const float, 1>()(1)), 2);
  expect_error(ErrorCode::kCopyRefused, {"writable memory", "read-only]"}, [&] { return t.view<float, 1>().data(); });
  Tensor s = from(borrow(std::span<const float>(v), unowned));
  EXPECT_TRUE(s.readonly());
  std::vector<float> mutable_vector{1};
  EXPECT_FALSE(from(borrow(mutable_vector, unowned)).readonly());
}

TEST(Span, OfATensorKeepsItsOwnerBesideIt) {
  VersionedProducer p({4});
  {
    Held<std::span<float>> held = to<std::span<float>>(Tensor::take(&p.managed));
    EXPECT_EQ(held->data(), reinterpret_cast<float*>(p.bytes.data()));
    std::span<float>& span = held;
    EXPECT_EQ(span.size(), 4u);
    Held<std::span<float>> moved = std::move(held);
    EXPECT_EQ(moved->size(), 4u);
    EXPECT_EQ(p.deleted, 0);
    const Tensor back = std::move(moved).into_owner();
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(View, OfAViewBorrowsAndNeverCopies) {
  VersionedProducer p({4});
  Tensor t = Tensor::take(&p.managed);
  const auto v = t.view<const float, 1>();
  const auto span = to<std::span<const float>>(v);
  EXPECT_EQ(span.data(), v.data());
  expect_error(ErrorCode::kCopyRefused, {"nowhere to keep it"},
               [&] { return to<std::span<const float>>(v, {.copy = copy::always}).data(); });
  EXPECT_EQ(to<std::vector<float>>(v).size(), 4u);
}

TEST(Copy, AlwaysMakesAWritableCopyOfItsOwn) {
  VersionedProducer p({4});
  p.managed.flags = kFlagReadOnly;
  auto held = to<std::span<float>>(Tensor::take(&p.managed), {.copy = copy::always});
  EXPECT_EQ(p.deleted, 1);
  EXPECT_NE(held->data(), reinterpret_cast<float*>(p.bytes.data()));
  EXPECT_FALSE(held.owner().readonly());
  const std::vector<float> v{1, 2};
  Tensor t = from(borrow(v, unowned), {.copy = copy::always});
  EXPECT_NE(t.dl.data, v.data());
  EXPECT_FALSE(t.readonly());
}

TEST(Extension, AUserTypeGoesBothWays) {
  Image image{std::vector<std::uint8_t>(2 * 4 * 3, 5), 2, 4};
  const auto* data = image.pixels.data();
  Tensor t = from(std::move(image));
  EXPECT_EQ(t.dl.data, data);
  EXPECT_EQ((check<const std::uint8_t, shape<dyn, dyn, 3>, c_contig, on_cpu>(t)), std::nullopt);
  const Image back = to<Image>(t);
  EXPECT_EQ(back.width, 4);
  EXPECT_EQ(back.pixels[23], 5);
  expect_error(ErrorCode::kMalformed, {"rank 3"}, [&] { return to<Image>(from(std::vector<std::uint8_t>{1})).width; });
  expect_error(ErrorCode::kMalformed, {"to<Image>: expected rank 3"}, [] {
    VersionedProducer p({1, 1, 1, 1}, {kDLUInt, 8, 1});
    return to<Image>(Tensor::take(&p.managed)).width;
  });
}

// 25: both kinds of ownership.
TEST(Fault25, AViewConverterThatThrowsLeavesTheTensor) {
  VersionedProducer p({2});
  {
    Tensor t = Tensor::take(&p.managed);
    EXPECT_THROW(to<Grumpy>(std::move(t)), std::runtime_error);
    EXPECT_EQ(p.deleted, 0);
    EXPECT_TRUE(t.owner);
    EXPECT_THROW(to<Grumpy>(t), std::runtime_error);
    EXPECT_EQ(p.deleted, 0);
    EXPECT_EQ(grumpy_calls, 2);
  }
  EXPECT_EQ(p.deleted, 1);
}
TEST(Fault25, AConsumingConverterThatThrowsHasDeletedOnce) {
  VersionedProducer p({2, 2});
  Tensor t = Tensor::take(&p.managed);
  EXPECT_THROW(to<Owning>(std::move(t)), std::runtime_error);
  EXPECT_EQ(p.deleted, 1);
  t = Tensor();
  EXPECT_EQ(p.deleted, 1);
  VersionedProducer q({2, 2});
  {
    Tensor u = Tensor::take(&q.managed);
    EXPECT_THROW(to<Owning>(u), std::runtime_error);  // a share was consumed, the tensor was not
    EXPECT_EQ(q.deleted, 0);
  }
  EXPECT_EQ(q.deleted, 1);
}
TEST(Fault25, AContainerThatCannotBeReadIsGivenBack) {
  expect_error(ErrorCode::kRefused, {"from<Grumpy>: expected a smile"}, [] { return from(Grumpy{}), 0; });
}

TEST(Options, StreamsAreNumberedAsDLPackDoes) {
  static_assert(!stream_ref());
  static_assert(stream_ref(nullptr).handle() == kLegacyStream);
  static_assert(stream_ref::from_handle(0).handle() == kLegacyStream);
  int something = 0;
  EXPECT_EQ(stream_ref(&something).handle(), reinterpret_cast<StreamHandle>(&something));
}

// Shares may end on any thread; the last one deletes. Under TSan this is the race test.
TEST(Share, CountsFromAnyThread) {
  VersionedProducer p({4});
  {
    Tensor t = Tensor::take(&p.managed);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([s = t.share()]() mutable {
        for (int k = 0; k < 100; ++k) Tensor more = s.share();
      });
    t = Tensor();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(Std, Documented) {
  test::expect_documented({
      {converter<std::vector<float>>::capabilities, "T"},
      {converter<std::array<float, 2>>::capabilities, "T"},
      {converter<std::span<float>>::capabilities, "T"},
      {converter<std::span<const float>>::capabilities, "T"},
  });
}

}  // namespace
}  // namespace dlbridge
