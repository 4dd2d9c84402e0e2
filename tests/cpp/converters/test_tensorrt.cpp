// TensorRT bindings against tests/cpp/fakes/tensorrt, since TensorRT's headers are in no package here. faults.md 35.
#include "dlbridge/converters/tensorrt.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using nvinfer1::DataType;
using nvinfer1::TensorFormat;
using nvinfer1::TensorIOMode;
using test::expect_error;

TEST(TensorRT, Conformance) { test::check_conformance<TensorRTBinding>(); }

TEST(TensorRT, Fault35SixteenBytesAreNotEnough) {
  test::Subject<TensorRTBinding> s;
  s.producer.managed.dl_tensor.byte_offset = 16;
  Tensor t = s.take();
  expect_error(ErrorCode::kCopyRefused, {"to<TensorRTBinding>", "aligned to 256 bytes", "the address"},
               [&] { return to<TensorRTBinding>(std::move(t)), 0; });
}

TEST(TensorRT, ABindingGoesToTheContextByName) {
  nvinfer1::ICudaEngine engine;
  engine.io = {{"x", {TensorIOMode::kINPUT, DataType::kFLOAT, TensorFormat::kLINEAR}},
               {"y", {TensorIOMode::kOUTPUT, DataType::kFLOAT, TensorFormat::kLINEAR}},
               {"half", {TensorIOMode::kINPUT, DataType::kHALF, TensorFormat::kLINEAR}},
               {"packed", {TensorIOMode::kINPUT, DataType::kFLOAT, TensorFormat::kCHW2}}};
  nvinfer1::IExecutionContext context(engine);
  test::Subject<TensorRTBinding> s;
  {
    const auto held = to<TensorRTBinding>(s.take());
    held->bind(context, "x");
    EXPECT_EQ(context.addresses["x"], s.producer.managed.dl_tensor.data);
    EXPECT_EQ(context.shapes["x"].d[1], 3);
    held->bind(context, "y");
    EXPECT_EQ(context.shapes.count("y"), 0u) << "an output's extents are the engine's";
    expect_error(ErrorCode::kRefused, {"'z'", "unknown"}, [&] { return held->bind(context, "z"), 0; });
    expect_error(ErrorCode::kRefused, {"'half'", "data type 1"}, [&] { return held->bind(context, "half"), 0; });
    expect_error(ErrorCode::kRefused, {"'packed'", "linear"}, [&] { return held->bind(context, "packed"), 0; });
    context.most_rows = 1;
    expect_error(ErrorCode::kRefused, {"'x'", "optimisation profile"}, [&] { return held->bind(context, "x"), 0; });
    EXPECT_EQ(s.producer.deleted, 0);
  }
  EXPECT_EQ(s.producer.deleted, 1);
}

TEST(TensorRT, EveryTypeHasItsDtype) {
  for (const detail::TrtType& row : detail::kTrtTypes) {
    test::VersionedProducer p({2}, to_dl(row.dtype));
    p.managed.dl_tensor.device = {kDLCUDA, 0};
    p.managed.dl_tensor.data = reinterpret_cast<void*>(0x100000);
    const auto held = to<TensorRTBinding>(Tensor::take(&p.managed));
    EXPECT_EQ(held->type, row.trt);
  }
}

TEST(TensorRT, Documented) {
  test::expect_documented({
      {converter<TensorRTBinding>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
