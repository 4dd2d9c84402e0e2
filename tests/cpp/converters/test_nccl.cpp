// NCCL's arguments against its header, or the fake's declarations of it: nothing here calls the library.
#include "dlbridge/converters/nccl.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "tests/cpp/converters/capability_table.h"
#include "tests/cpp/converters/conformance.h"
#include "tests/cpp/fake_driver.h"

namespace dlbridge {
namespace {

using test::expect_error;

TEST(Nccl, Conformance) {
  test::check_conformance<NcclBuffer>();
  test::check_conformance<NcclSource>();
}

TEST(Nccl, AViewGivesPointerCountTypeAndStream) {
  const auto& fake = test::FakeDriver::get();
  if (!fake) GTEST_SKIP() << "libcuda.so.1 is not the fake";
  const StreamHandle made_on = fake.new_stream(), used_on = fake.new_stream();
  test::VersionedProducer p({2, 3}, to_dl(DType::kFloat32));
  p.managed.dl_tensor.device = {kDLCUDA, 0};
  Tensor t = Tensor::take(&p.managed);
  t.ready = Ordering::on_stream(made_on);
  fake.reset();
  const auto buffer =
      to<NcclBuffer>(t.view<float, 2, any_layout, on_cuda>(), {.stream = stream_ref::from_handle(used_on)});
  EXPECT_EQ(buffer.data, t.dl.data);
  EXPECT_EQ(buffer.count, 6u);
  EXPECT_EQ(buffer.type, ncclFloat32);
  EXPECT_EQ(reinterpret_cast<StreamHandle>(buffer.stream), used_on);
  EXPECT_EQ(fake.count("stream_wait"), 1) << fake.log();
}

TEST(Nccl, WithoutAStreamItIsTheThreads) {
  test::Subject<NcclBuffer> s;
  Tensor t = s.take();
  const auto stream = [&] {
    const auto held = to<NcclBuffer>(t, {.sync = sync::none});
    return reinterpret_cast<StreamHandle>(held->stream);
  };
  EXPECT_EQ(stream(), kLegacyStream);
  cuda::set_current_stream(0, 0x5000);
  EXPECT_EQ(stream(), StreamHandle{0x5000});
  cuda::set_current_stream(0, 0);
}

TEST(Nccl, EveryTypeIsAsWideAsItsDtypeSays) {
  constexpr std::size_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};  // bytes, by NCCL's number
  static_assert(std::size(kWidths) <= static_cast<std::size_t>(ncclNumTypes));
  for (const detail::NcclType& row : detail::kNcclTypes) {
    test::VersionedProducer p({2, 3}, to_dl(row.dtype));
    p.managed.dl_tensor.device = {kDLCUDA, 0};
    p.managed.dl_tensor.data = reinterpret_cast<void*>(0x100000);
    const auto held = to<NcclSource>(Tensor::take(&p.managed), {.sync = sync::none});
    EXPECT_EQ(held->type, row.nccl);
    EXPECT_EQ(held->count * kWidths[held->type], static_cast<std::size_t>(held.owner().nbytes()))
        << info(row.dtype).name;
  }
}

TEST(Nccl, ReadOnlyMemoryIsASourceOnly) {
  static_assert(std::is_const_v<std::remove_pointer_t<decltype(NcclSource::data)>>);
  test::Subject<NcclSource> s;
  s.producer.managed.flags = kFlagReadOnly;
  Tensor t = s.take();
  const auto source = to<NcclSource>(t, {.sync = sync::none});
  EXPECT_EQ(source->data, t.dl.data);
  expect_error(ErrorCode::kCopyRefused, {"to<NcclBuffer>", "read-only"}, [&] { return to<NcclBuffer>(t), 0; });
}

TEST(Nccl, WhatItCannotTakeIsRefusedWithTheRemedy) {
  test::Subject<NcclBuffer> strided({4});
  strided.producer.set_strides({2});
  Tensor t = strided.take();
  expect_error(ErrorCode::kCopyRefused, {"to<NcclBuffer>", "C-contiguous", "copy::if_needed"},
               [&] { return to<NcclBuffer>(t), 0; });
  test::VersionedProducer host({4});
  expect_error(ErrorCode::kRefused, {"device cuda", "cpu"},
               [&] { return to<NcclBuffer>(Tensor::take(&host.managed)), 0; });
  test::VersionedProducer narrow({4}, to_dl(DType::kInt16));
  narrow.managed.dl_tensor.device = {kDLCUDA, 0};
  expect_error(ErrorCode::kWrongType, {"to<NcclBuffer>", "bfloat16", "int16"},
               [&] { return to<NcclBuffer>(Tensor::take(&narrow.managed)), 0; });
}

TEST(Nccl, Documented) {
  test::expect_documented({
      {converter<NcclBuffer>::capabilities},
      {converter<NcclSource>::capabilities},
  });
}

}  // namespace
}  // namespace dlbridge
