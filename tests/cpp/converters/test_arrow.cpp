// Arrow: the C interfaces, and Arrow C++ with the real libarrow.
#include "dlbridge/converters/arrow.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "dlbridge/converters/arrow_c.h"
#include "dlbridge/converters/std.h"
#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"
#include "tests/cpp/fake_driver.h"

namespace dlbridge {
namespace {

using test::expect_error;
using test::VersionedProducer;
using ArrowTensor = std::shared_ptr<arrow::Tensor>;
using ArrowArrayPtr = std::shared_ptr<arrow::Array>;

using Types = testing::Types<ArrowTensor, ArrowArrayPtr, ArrowCData, ArrowCDevice>;
template <class X>
class ArrowConformance : public testing::Test {};
TYPED_TEST_SUITE(ArrowConformance, Types);
TYPED_TEST(ArrowConformance, BadInput) { test::check_conformance<TypeParam>(); }

ArrowArrayPtr array_of(const std::vector<float>& values, bool with_null = false) {
  arrow::FloatBuilder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  EXPECT_TRUE(!with_null || builder.AppendNull().ok());
  return builder.Finish().ValueOrDie();
}

TEST(ArrowCpp, ATensorSharesBothWays) {
  VersionedProducer p({2, 3});
  p.set_strides({1, 2});
  {
    ArrowTensor x = to<ArrowTensor>(Tensor::take(&p.managed));
    EXPECT_EQ(x->raw_data(), reinterpret_cast<const std::uint8_t*>(p.bytes.data()));
    EXPECT_EQ(x->strides(), (std::vector<std::int64_t>{4, 8}));
    EXPECT_TRUE(x->is_mutable());
    Tensor back = from(x);
    EXPECT_EQ(back.dl.strides[1], 2);
    EXPECT_FALSE(back.readonly());
    x.reset();
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(ArrowCpp, ReadOnlyStaysReadOnly) {
  VersionedProducer p({4});
  p.managed.flags = kFlagReadOnly;
  const ArrowTensor x = to<ArrowTensor>(Tensor::take(&p.managed));
  EXPECT_FALSE(x->is_mutable());
  EXPECT_TRUE(from(x).readonly());
}

TEST(ArrowCpp, AnArrayIsReadOnlyAndMayBeASlice) {
  const ArrowArrayPtr x = array_of({1, 2, 3, 4})->Slice(1, 2);
  Tensor t = from(x);
  EXPECT_TRUE(t.readonly());
  EXPECT_EQ((t.view<const float, 1>()(1)), 3);
  EXPECT_EQ(t.dl.data, x->data()->GetValues<float>(1));
  const ArrowArrayPtr back = to<ArrowArrayPtr>(from(std::vector<float>{5, 6}));
  EXPECT_TRUE(back->Equals(array_of({5, 6})));
  EXPECT_EQ(from(array_of({})).size, 0);
}

TEST(ArrowCpp, WhatATensorCannotSayIsRefused) {
  expect_error(ErrorCode::kRefused, {"1 nulls", "fill_null"}, [] { return from(array_of({1}, true)), 0; });
  arrow::BooleanBuilder bits;
  EXPECT_TRUE(bits.Append(true).ok());
  const ArrowArrayPtr packed = bits.Finish().ValueOrDie();
  expect_error(ErrorCode::kRefused, {"bool", "bit-packed"}, [&] { return from(packed), 0; });
  expect_error(ErrorCode::kMalformed, {"null"}, [] { return from(ArrowArrayPtr()), 0; });
}

// 25: Arrow's import consumes on error, the opposite of torch's.
TEST(ArrowCpp, Fault25ArrowConsumesWhereItFails) {
  VersionedProducer p({2}, {kDLBfloat, 16, 1});
  EXPECT_FALSE(arrow::dlpack::ImportTensorVersioned(&p.managed).ok());
  EXPECT_EQ(p.deleted, 1) << "Arrow has changed its contract";
  // Past the validator, as a newer Arrow that takes less would have it.
  VersionedProducer q({2}, {kDLBfloat, 16, 1});
  Tensor t = Tensor::take(&q.managed);
  expect_error(ErrorCode::kRefused, {"Arrow's import failed", "consumes"},
               [&] { return converter<ArrowTensor>::to(std::move(t), {}), 0; });
  EXPECT_EQ(q.deleted, 1);
  t = Tensor();
  EXPECT_EQ(q.deleted, 1);
}

TEST(ArrowC, AnArrayIsHandedToArrowAndBack) {
  VersionedProducer p({4});
  {
    ArrowCData c = to<ArrowCData>(Tensor::take(&p.managed));
    ArrowSchema schema;
    ArrowArray array;
    std::move(c).export_to(&schema, &array);
    const ArrowArrayPtr x = arrow::ImportArray(&array, &schema).ValueOrDie();
    EXPECT_EQ(x->type()->ToString(), "float");
    EXPECT_EQ(x->data()->buffers[1]->data(), reinterpret_cast<const std::uint8_t*>(p.bytes.data()));
    EXPECT_EQ(p.deleted, 0);
    ArrowSchema schema2;
    ArrowArray array2;
    ASSERT_TRUE(arrow::ExportArray(*x->Slice(1), &array2, &schema2).ok());
    Tensor t = from(ArrowCData(&schema2, &array2));
    EXPECT_EQ(array2.release, nullptr) << "a moved struct is marked released";
    EXPECT_EQ(t.dl.data, p.bytes.data() + 4);
    EXPECT_EQ(t.size, 3);
    EXPECT_TRUE(t.readonly());
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST(ArrowC, EveryFormatGoesBothWays) {
  for (const DTypeInfo& row : kDTypes) {
    if (row.arrow == 0) continue;
    SCOPED_TRACE(row.arrow);
    VersionedProducer p({3}, to_dl(row.id));
    ArrowCData c = to<ArrowCData>(Tensor::take(&p.managed));
    EXPECT_EQ(c.schema.format[0], row.arrow);
    EXPECT_EQ(from(std::move(c)).dtype(), row);
    EXPECT_EQ(p.deleted, 1);
  }
}

TEST(ArrowC, DamagedStructsAreRefusedAndReleasedOnce) {
  const struct {
    const char* id;
    void (*damage)(ArrowCData&);
    ErrorCode code;
    const char* says;
  } cases[] = {
      {"4 released", [](ArrowCData& c) { c.array.release(&c.array); }, ErrorCode::kMalformed, "released already"},
      {"bits", [](ArrowCData& c) { c.schema.format = "b"; }, ErrorCode::kCopyRefused, "Arrow type bool"},
      {"a struct", [](ArrowCData& c) { c.schema.format = "+s"; }, ErrorCode::kWrongType, "'+s'"},
      {"no format", [](ArrowCData& c) { c.schema.format = nullptr; }, ErrorCode::kMalformed, "format ''"},
      {"10 negative length", [](ArrowCData& c) { c.array.length = -1; }, ErrorCode::kMalformed, "length -1"},
      {"one buffer", [](ArrowCData& c) { c.array.n_buffers = 1; }, ErrorCode::kMalformed, "1 buffers"},
      {"14 no data", [](ArrowCData& c) { c.array.buffers[1] = nullptr; }, ErrorCode::kMalformed, "null"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.id);
    VersionedProducer p({4});
    {
      ArrowCData x = to<ArrowCData>(Tensor::take(&p.managed));
      c.damage(x);
      expect_error(c.code, {"from<ArrowArray (C Data)>", c.says}, [&] { return from(std::move(x)), 0; });
    }
    EXPECT_EQ(p.deleted, 1);
  }
}

TEST(ArrowC, NullsAreFoundAlsoWhereTheirCountIsUnknown) {
  ArrowSchema schema;
  ArrowArray array;
  ASSERT_TRUE(arrow::ExportArray(*array_of({1, 2}, true), &array, &schema).ok());
  array.null_count = -1;
  expect_error(ErrorCode::kRefused, {"1 null"}, [&] { return from(ArrowCData(&schema, &array)), 0; });
  ASSERT_TRUE(arrow::ExportArray(*array_of({1, 2}, true)->Slice(0, 2), &array, &schema).ok());
  array.null_count = -1;
  EXPECT_EQ(from(ArrowCData(&schema, &array)).size, 2);
}

// The producer's event becomes the token; what is exported carries an event of its own.
TEST(ArrowCDevice, EventsOrderTheTwoSides) {
  const auto& fake = test::FakeDriver::get();
  if (!fake) GTEST_SKIP() << "libcuda.so.1 is not the fake";
  VersionedProducer p({4});
  p.managed.dl_tensor.device = {kDLCUDA, 1};
  {
    Tensor t = Tensor::take(&p.managed);
    t.ready = Ordering::on_stream(reinterpret_cast<StreamHandle>(fake.stream_create(1, 0, 0)));
    fake.reset();
    ArrowCDevice x = to<ArrowCDevice>(std::move(t));
    EXPECT_EQ(x.array.device_type, ARROW_DEVICE_CUDA);
    EXPECT_EQ(x.array.device_id, 1);
    ASSERT_NE(x.array.sync_event, nullptr);
    EXPECT_EQ(fake.log().find("synchronize"), std::string::npos);
    const auto event = *static_cast<std::uintptr_t*>(x.array.sync_event);
    t = from(std::move(x));
    EXPECT_EQ(t.ready, Ordering::at_event(event));
    EXPECT_TRUE(same_device(t.dl.device, {kDLCUDA, 1}));
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
  EXPECT_NE(fake.log().find("event_destroy"), std::string::npos);
}

TEST(ArrowCpp, Documented) {
  test::expect_documented({
      {converter<ArrowTensor>::capabilities},
      {converter<ArrowArrayPtr>::capabilities},
      {converter<ArrowCData>::capabilities},
      {converter<ArrowCDevice>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
