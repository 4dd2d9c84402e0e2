// A converter for a type of a user's own, as docs/converters.md shows it: what it takes is what the type can hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"
#include "dlbridge/testing/conformance.h"
#include "tests/cpp/converters/conformance.h"

// docs/converters.md: begin
struct MyImage {  // three bytes a pixel; rows may be padded; copies of it share the pixels
  std::shared_ptr<std::uint8_t> pixels;
  std::int64_t height, width, row_bytes;
};

template <>
struct dlbridge::converter<MyImage> {
  static constexpr caps capabilities{.name = "MyImage",
                                     .dtypes = dtypes(DType::kUInt8),
                                     .extents = shape<dyn, dyn, 3>::kList,
                                     .strides = stride_rule::pitched,
                                     .source = source_kind::handle,
                                     .result = result_kind::owner};
  static Status describe(const MyImage& image, Tensor& out) {  // all but the owner: from() keeps the image itself
    const std::int64_t shape[3] = {image.height, image.width, 3}, strides[3] = {image.row_bytes, 3, 1};
    return describe_memory(out, image.pixels.get(), kCpuDevice, 3, shape, strides);
  }
  static MyImage to(Tensor&& t, const options&) {  // the pixels keep the tensor, and the tensor its memory
    const auto kept = std::make_shared<Tensor>(std::move(t));
    const DLTensor& dl = kept->dl;
    return {{kept, static_cast<std::uint8_t*>(dl.data)}, dl.shape[0], dl.shape[1], dl.strides[0]};
  }
};
// docs/converters.md: end

// One that owns nothing, and has no room for strides.
struct Pixels {
  std::uint8_t* first;
  std::int64_t height, width;
};
template <>
struct dlbridge::converter<Pixels> {
  static constexpr caps capabilities{
      .name = "Pixels", .extents = shape<dyn, dyn, 3>::kList, .source = source_kind::view};
  static Status describe(const Pixels& image, Tensor& out) {
    const std::int64_t shape[3] = {image.height, image.width, 3};
    return describe_memory(out, image.first, kCpuDevice, 3, shape, nullptr);
  }
  static Pixels to(TensorView<std::uint8_t, 3> v, const options&) { return {v.data(), v.extent(0), v.extent(1)}; }
};

// Says nothing of what it takes but for the view.
struct Samples {
  std::vector<double> values;
};
template <>
struct dlbridge::converter<Samples> {
  static constexpr caps capabilities{.name = "Samples",
                                     .strides = stride_rule::any,
                                     .read_only = true,
                                     .source = source_kind::none,
                                     .result = result_kind::copy};
  static Samples to(TensorView<const double, 1> v, const options&) {
    Samples out;
    for (std::int64_t i = 0; i < v.extent(0); ++i) out.values.push_back(v(i));
    return out;
  }
};

// What to() was given: where the extents lie that it reads.
struct Extents {
  const std::int64_t* first;
};
template <>
struct dlbridge::converter<Extents> {
  static constexpr caps capabilities{
      .name = "Extents", .devices = kOnHost, .strides = stride_rule::any, .source = source_kind::none};
  static Extents to(TensorView<double, dyn> v, const options&) { return {v.extents().data()}; }
};

// docs/converters.md: begin
TEST(MyImage, KeepsWhatItsConverterPromises) {
  for (const std::string& broken : dlbridge::conformance<MyImage>()) ADD_FAILURE() << broken;
}
// docs/converters.md: end

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

int sum(const Pixels& image) { return std::accumulate(image.first, image.first + image.height * image.width * 3, 0); }

// 2 x 3 pixels of 3 bytes, each byte 1; whatever lies between rows is 7.
struct Picture : VersionedProducer {
  explicit Picture(std::int64_t row_stride, std::int64_t channels = 3)
      : VersionedProducer({2, 3, channels}, {kDLUInt, 8, 1}) {
    std::fill(bytes.begin(), bytes.end(), char{7});
    for (auto row = bytes.begin(); row < bytes.begin() + 2 * row_stride; row += row_stride)
      std::fill(row, row + 3 * channels, char{1});
    set_strides({row_stride, channels, 1});
  }
};

TEST(UserType, TheOthersKeepWhatTheyPromise) {
  test::check_conformance<Pixels>();
  test::check_conformance<Samples>();
}

TEST(UserType, AnImageSharesItsPixelsBothWays) {
  Picture p(12);
  {
    MyImage image = to<MyImage>(Tensor::take(&p.managed));
    EXPECT_EQ(image.pixels.get(), reinterpret_cast<std::uint8_t*>(p.bytes.data()));
    EXPECT_EQ(image.row_bytes, 12);
    const Tensor back = from(MyImage(image));
    image = {};
    EXPECT_EQ(p.deleted, 0) << "the tensor keeps the pixels";
    EXPECT_EQ((back.view<const std::uint8_t, 3>()(1, 2, 2)), 1);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(UserType, ADenseTensorIsTaken) {
  Picture p(9);
  const auto image = to<Pixels>(Tensor::take(&p.managed));
  EXPECT_EQ(sum(*image), 18);
  EXPECT_EQ(image->width, 3);
}

TEST(UserType, RowsWithPaddingAreRefusedOrCopied) {
  Picture p(12);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<Pixels>: expected C-contiguous, got (2, 3, 3)"},
               [&] { return to<Pixels>(t), 0; });
  const auto image = to<Pixels>(t, {.copy = copy::if_needed});
  EXPECT_EQ(sum(*image), 18);
}

TEST(UserType, AnotherExtentThanTheTypeHasIsRefused) {
  Picture p(12, 4);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kMalformed, {"to<Pixels>: expected shape (*, *, 3), got (2, 3, 4)"},
               [&] { return to<Pixels>(t), 0; });
  expect_error(ErrorCode::kMalformed, {"to<Pixels>: expected shape (*, *, 3)"},
               [&] { return to<Pixels>(t.view<std::uint8_t, 3>()), 0; });
}

TEST(UserType, WhatTheViewAsksForIsRefusedInTheTypesName) {
  VersionedProducer p({2, 3, 3});
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kWrongType, {"to<Pixels>: expected dtype uint8, got (2, 3, 3) [float32"},
               [&] { return to<Pixels>(t), 0; });
  Picture q(9);
  q.managed.flags = kFlagReadOnly;
  Tensor readonly = Tensor::take(&q.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<Pixels>: expected writable memory"},
               [&] { return to<Pixels>(readonly), 0; });
  VersionedProducer r({2, 3}, {kDLFloat, 64, 1});
  Tensor matrix = Tensor::take(&r.managed);
  expect_error(ErrorCode::kMalformed, {"to<Samples>: expected rank 1, got (2, 3)"},
               [&] { return to<Samples>(matrix), 0; });
}

TEST(UserType, StridesAreTakenWhereTheTypeSaysSo) {
  VersionedProducer p({3}, {kDLFloat, 64, 1});
  p.managed.flags = kFlagReadOnly;
  p.set_strides({2});
  auto* data = reinterpret_cast<double*>(p.bytes.data());
  std::iota(data, data + 5, 0.0);
  Tensor t = Tensor::take(&p.managed);
  EXPECT_EQ(to<Samples>(t).values, (std::vector<double>{0, 2, 4}));
}

TEST(UserType, AViewWhoseTypeSaysAllReachesToAsItIs) {
  VersionedProducer p({3}, {kDLFloat, 64, 1});
  Tensor t = Tensor::take(&p.managed);
  EXPECT_EQ(to<Extents>(t.view<double, dyn>()).first, t.dl.shape);
  EXPECT_EQ((to<Extents>(t.view<double, dyn, c_contig, on_cpu>()).first), t.dl.shape);
  expect_error(ErrorCode::kCopyRefused, {"to<Extents>", "nowhere to keep it"},
               [&] { return to<Extents>(t.view<double, dyn>(), {.copy = copy::always}), 0; });
}

TEST(UserType, ThePageShowsTheConverterThatIsTestedHere) {
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string page = DLBRIDGE_CONVERTER_PAGE, root = page.substr(0, page.find("docs/converters.md"));
  const std::string source = read(root + "tests/cpp/converters/test_user_type.cpp"), mark = "// docs/converters.md: ";
  int blocks = 0;
  for (std::size_t begin = 0; (begin = source.find("\n" + mark + "begin\n", begin)) != std::string::npos; ++blocks) {
    begin += mark.size() + 7;
    const std::string shown = source.substr(begin, source.find(mark + "end\n", begin) - begin);
    EXPECT_NE(read(page).find(shown), std::string::npos) << "the page does not show\n" << shown;
  }
  EXPECT_EQ(blocks, 2);
}

}  // namespace
}  // namespace dlbridge
