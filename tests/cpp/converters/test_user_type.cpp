// A converter for a type of a user's own, as docs/converters.md shows it: what it takes is what the type can hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "dlbridge/converter.h"
#include "dlbridge/describe.h"
#include "tests/cpp/converters/conformance.h"

// Three bytes a pixel, row after row, in memory of somebody else's.
struct MyImage {
  std::uint8_t* pixels;
  std::int64_t height, width;
};

// docs/converters.md: begin
template <>
struct dlbridge::converter<MyImage> {
  static constexpr caps capabilities{.name = "MyImage", .extents = shape<dyn, dyn, 3>::kList};
  static Status describe(MyImage& image, Tensor& out) {  // all but the owner: from() keeps the image itself
    const std::int64_t shape[3] = {image.height, image.width, 3};
    return describe_memory(out, image.pixels, kCpuDevice, 3, shape, nullptr);
  }
  static MyImage to(TensorView<std::uint8_t, 3> v, const options&) {  // or (Tensor&& t, …) to take the owner
    return {v.data(), v.extent(0), v.extent(1)};
  }
};
// docs/converters.md: end

// Says nothing of what it takes but for the view.
struct Samples {
  std::vector<double> values;
};
template <>
struct dlbridge::converter<Samples> {
  static constexpr caps capabilities{
      .name = "Samples", .strides = stride_rule::any, .read_only = true, .result = result_kind::copy};
  static Samples to(TensorView<const double, 1> v, const options&) {
    Samples out;
    for (std::int64_t i = 0; i < v.extent(0); ++i) out.values.push_back(v(i));
    return out;
  }
};

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

int sum(const MyImage& image) {
  return std::accumulate(image.pixels, image.pixels + image.height * image.width * 3, 0);
}

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

TEST(UserType, ADenseTensorIsTaken) {
  Picture p(9);
  const auto image = to<MyImage>(Tensor::take(&p.managed));
  EXPECT_EQ(sum(*image), 18);
  EXPECT_EQ(image->width, 3);
}

TEST(UserType, RowsWithPaddingAreRefusedOrCopied) {
  Picture p(12);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<MyImage>: expected C-contiguous, got (2, 3, 3)"},
               [&] { return to<MyImage>(t), 0; });
  const auto image = to<MyImage>(t, {.copy = copy::if_needed});
  EXPECT_EQ(sum(*image), 18);
}

TEST(UserType, AnotherExtentThanTheTypeHasIsRefused) {
  Picture p(12, 4);
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kMalformed, {"to<MyImage>: expected shape (*, *, 3), got (2, 3, 4)"},
               [&] { return to<MyImage>(t), 0; });
  expect_error(ErrorCode::kMalformed, {"to<MyImage>: expected shape (*, *, 3)"},
               [&] { return to<MyImage>(t.view<std::uint8_t, 3>()), 0; });
}

TEST(UserType, WhatTheViewAsksForIsRefusedInTheTypesName) {
  VersionedProducer p({2, 3, 3});
  Tensor t = Tensor::take(&p.managed);
  expect_error(ErrorCode::kWrongType, {"to<MyImage>: expected dtype uint8, got (2, 3, 3) [float32"},
               [&] { return to<MyImage>(t), 0; });
  Picture q(9);
  q.managed.flags = kFlagReadOnly;
  Tensor readonly = Tensor::take(&q.managed);
  expect_error(ErrorCode::kCopyRefused, {"to<MyImage>: expected writable memory"},
               [&] { return to<MyImage>(readonly), 0; });
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

TEST(UserType, ThePageShowsTheConverterThatIsTestedHere) {
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string page = DLBRIDGE_CONVERTER_PAGE, root = page.substr(0, page.find("docs/converters.md"));
  const std::string source = read(root + "tests/cpp/converters/test_user_type.cpp"), mark = "// docs/converters.md: ";
  const std::size_t begin = source.find(mark + "begin\n") + mark.size() + 6;
  const std::string shown = source.substr(begin, source.find(mark + "end\n") - begin);
  EXPECT_NE(read(page).find(shown), std::string::npos) << "the page does not show\n" << shown;
}

}  // namespace
}  // namespace dlbridge
