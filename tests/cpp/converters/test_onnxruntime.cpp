// Ort::Value with the real libonnxruntime.
#include "dlbridge/converters/onnxruntime.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;

TEST(OnnxRuntime, Conformance) { test::check_conformance<Ort::Value>(); }

TEST(OnnxRuntime, AValueSharesTheTensorsMemory) {
  VersionedProducer p({2, 3});
  {
    Held<Ort::Value> held = to<Ort::Value>(Tensor::take(&p.managed), {.copy = copy::never});
    EXPECT_EQ(held->GetTensorMutableRawData(), p.bytes.data());
    EXPECT_EQ(held->GetTensorTypeAndShapeInfo().GetShape(), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(held->GetTensorTypeAndShapeInfo().GetElementType(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(OnnxRuntime, EveryDtypeGoesBothWays) {
  for (const detail::OrtType& row : detail::kOrtTypes) {
    SCOPED_TRACE(info(row.dtype).name);
    const std::int64_t shape[] = {2, 3};
    const Ort::AllocatorWithDefaultOptions allocator;
    Ort::Value value = Ort::Value::CreateTensor(allocator, shape, 2, row.ort);
    void* data = value.GetTensorMutableRawData();
    Tensor t = from(std::move(value));
    EXPECT_EQ(t.dl.data, data);
    EXPECT_EQ(t.dtype().id, row.dtype);
    EXPECT_EQ(t.dl.shape[1], 3);
    auto back = to<Ort::Value>(std::move(t));
    EXPECT_EQ(back->GetTensorTypeAndShapeInfo().GetElementType(), row.ort);
    EXPECT_EQ(back->GetTensorMutableRawData(), data);
  }
}

TEST(OnnxRuntime, WhatIsNoTensorOfNumbersIsRefusedByName) {
  expect_error(ErrorCode::kRefused, {"from<Ort::Value>", "empty"}, [] { return from(Ort::Value(nullptr)), 0; });
  const std::int64_t shape[] = {2};
  const Ort::AllocatorWithDefaultOptions allocator;
  expect_error(ErrorCode::kRefused, {"element type 8", "strings"}, [&] {
    return from(Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)), 0;
  });
}

TEST(OnnxRuntime, DevicesAreThoseOfItsAllocators) {
  DLDevice device{};
  EXPECT_TRUE(detail::ort_device("Cuda", 1, device).ok());
  EXPECT_TRUE(same_device(device, {kDLCUDA, 1}));
  EXPECT_TRUE(detail::ort_device("CudaPinned", 0, device).ok());
  EXPECT_EQ(device.device_type, kDLCUDAHost);
  EXPECT_NE(detail::ort_device("DML", 0, device).message().find("'DML'"), std::string::npos);
}

TEST(OnnxRuntime, Documented) {
  test::expect_documented({
      {converter<Ort::Value>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
