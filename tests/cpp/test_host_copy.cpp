// host_copy.h: allocation of dense memory and the gather of every layout, against an oracle that walks the indices.
#include "dlbridge/host_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

// An allocation that cannot succeed must come back as an error, also under AddressSanitizer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace dlbridge {
namespace {

constexpr DLDataType kFloat32 = to_dl(DType::kFloat32);
constexpr std::int64_t kHuge = std::int64_t{1} << 45;

struct Layout {
  const char* name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
};

Tensor borrow(void* data, DLDataType dtype, const Layout& layout) {
  Tensor t;
  t.set_dtype(*find_dtype(dtype));
  t.dl.data = data;
  EXPECT_TRUE(build_layout(t, static_cast<std::int64_t>(layout.shape.size()), layout.shape.data(),
                           layout.strides.data(), StrideUnit::kElements)
                  .ok());
  return t;
}

// Memory that holds all of the layout, filled with bytes that differ; data() is element 0, `misalign` bytes off.
class Storage {
 public:
  Storage(const Layout& layout, std::int64_t itemsize, std::size_t misalign = 0) {
    Tensor probe = borrow(this, to_dl(DType::kUInt8), layout);
    const ElementSpan span = element_span(probe.dl);
    bytes_.resize(static_cast<std::size_t>((span.high - span.low) * itemsize) + misalign);
    std::mt19937 random(7);
    for (auto& b : bytes_) b = static_cast<unsigned char>(random());
    origin_ = bytes_.data() + misalign - span.low * itemsize;
  }
  void* data() { return origin_; }

 private:
  std::vector<unsigned char> bytes_;
  unsigned char* origin_;
};

// Element by element, the slow and obvious way.
std::vector<unsigned char> oracle(const Tensor& t) {
  std::vector<unsigned char> out;
  const std::int64_t itemsize = t.itemsize();
  for (std::int64_t linear = 0; linear < t.size; ++linear) {
    std::int64_t rest = linear;
    std::int64_t offset = 0;
    for (std::int32_t i = t.dl.ndim - 1; i >= 0; --i) {
      offset += rest % t.dl.shape[i] * t.dl.strides[i];
      rest /= t.dl.shape[i];
    }
    const auto* from = static_cast<const unsigned char*>(t.dl.data) + offset * itemsize;
    out.insert(out.end(), from, from + itemsize);
  }
  return out;
}

void expect_dense_copy(const Tensor& source) {
  Tensor out;
  const Status status = dense_host_copy(source, out);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(is_c_contiguous(out.dl));
  ASSERT_EQ(out.dl.ndim, source.dl.ndim);
  for (std::int32_t i = 0; i < out.dl.ndim; ++i) ASSERT_EQ(out.dl.shape[i], source.dl.shape[i]);
  EXPECT_EQ(out.size, source.size);
  EXPECT_EQ(out.dl.device.device_type, kDLCPU);
  EXPECT_EQ(out.flags & ~kFlagPadded, kFlagCopied);
  EXPECT_TRUE(out.ready.is_ready());
  if (source.size == 0) {
    EXPECT_EQ(out.dl.data, nullptr);
    return;
  }
  EXPECT_TRUE(out.owner);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(out.dl.data) % 64, 0u);
  const std::vector<unsigned char> expected = oracle(source);
  EXPECT_EQ(std::memcmp(out.dl.data, expected.data(), expected.size()), 0);
}

const Layout kLayouts[] = {
    {"scalar", {}, {}},
    {"one_element", {1, 1}, {77, -5}},
    {"dense_1d", {1000}, {1}},
    {"dense_3d", {3, 4, 5}, {20, 5, 1}},
    {"size_one_axes_with_odd_strides", {3, 1, 4}, {4, 999, 1}},
    {"empty", {3, 0, 2}, {2, 2, 1}},
    {"every_second", {500}, {2}},
    {"reversed", {500}, {-1}},
    {"reversed_both", {7, 9}, {-9, -1}},
    {"reversed_rows", {7, 9}, {-9, 1}},
    {"row_slice", {10, 6}, {16, 1}},
    {"column_slice", {10, 3}, {18, 6}},
    {"transposed_small", {3, 5}, {1, 3}},
    {"transposed_odd_tiles", {67, 129}, {1, 67}},
    {"transposed_full_tiles", {64, 96}, {1, 64}},
    {"transposed_reversed", {65, 33}, {-1, 65}},
    {"transposed_3d", {5, 40, 37}, {1, 185, 5}},
    {"rotated_axes", {4, 5, 6}, {1, 24, 4}},
    {"broadcast_scalar", {40, 50}, {0, 0}},
    {"broadcast_rows", {40, 50}, {0, 1}},
    {"broadcast_columns", {40, 50}, {1, 0}},
    {"sliding_window", {20, 8}, {1, 1}},
    {"nine_axes", {2, 1, 2, 2, 1, 2, 2, 3, 2}, {1, 0, 4, 8, 3, 16, 32, 64, 2}},
};
const DType kWidths[] = {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128};

class Gather : public testing::TestWithParam<std::tuple<Layout, DType>> {};

TEST_P(Gather, equals_the_oracle) {
  const auto& [layout, dtype] = GetParam();
  Storage storage(layout, info(dtype).itemsize);
  expect_dense_copy(borrow(storage.data(), to_dl(dtype), layout));
}

TEST_P(Gather, takes_misaligned_data) {
  const auto& [layout, dtype] = GetParam();
  Storage storage(layout, info(dtype).itemsize, 1);
  expect_dense_copy(borrow(storage.data(), to_dl(dtype), layout));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Gather, testing::Combine(testing::ValuesIn(kLayouts), testing::ValuesIn(kWidths)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  std::string(dlbridge::info(std::get<1>(test.param)).name);
                         });

TEST(GatherProperty, random_layouts_equal_the_oracle) {
  std::mt19937 random(20261121);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 400; ++round) {
    Layout layout{"random", {}, {}};
    const int ndim = pick(0, 5);
    for (int i = 0; i < ndim; ++i) {
      layout.shape.push_back(pick(1, 9));
      layout.strides.push_back(pick(-12, 12));
    }
    const DType dtype = kWidths[pick(0, 4)];
    Storage storage(layout, info(dtype).itemsize, static_cast<std::size_t>(pick(0, 3)));
    expect_dense_copy(borrow(storage.data(), to_dl(dtype), layout));
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

TEST(DenseHostCopy, is_writable_though_the_source_is_not) {
  std::vector<float> data(6, 1.0f);
  Tensor source = borrow(data.data(), kFloat32, {"", {6}, {1}});
  source.flags = kFlagReadOnly;
  Tensor out;
  ASSERT_TRUE(dense_host_copy(source, out).ok());
  EXPECT_FALSE(out.readonly());
  static_cast<float*>(out.dl.data)[0] = 2.0f;
  EXPECT_EQ(data[0], 1.0f);
}

TEST(DenseHostCopy, keeps_the_padded_flag_and_gathers_padded_elements) {
  std::vector<unsigned char> data(16);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(0));
  Tensor source = borrow(data.data(), to_dl(DType::kFloat4E2M1FN), {"", {8}, {2}});
  source.flags = kFlagPadded;
  Tensor out;
  ASSERT_TRUE(dense_host_copy(source, out).ok());
  EXPECT_TRUE(out.padded());
  EXPECT_EQ(out.nbytes(), 8);
  EXPECT_EQ(static_cast<unsigned char*>(out.dl.data)[3], 6);
}

TEST(DenseHostCopy, copies_packed_elements_by_their_bytes) {
  std::vector<unsigned char> data{1, 2, 3};
  Tensor source = borrow(data.data(), to_dl(DType::kFloat4E2M1FN), {"", {5}, {1}});
  Tensor out;
  ASSERT_TRUE(dense_host_copy(source, out).ok());
  EXPECT_EQ(out.nbytes(), 3);
  EXPECT_EQ(std::memcmp(out.dl.data, data.data(), 3), 0);
}

TEST(DenseHostCopy, refuses_packed_elements_that_are_strided) {
  std::vector<unsigned char> data(8);
  Tensor source = borrow(data.data(), to_dl(DType::kFloat4E2M1FN), {"", {4}, {2}});
  Tensor out;
  const Status status = dense_host_copy(source, out);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kRefused);
  EXPECT_NE(status.message().find("float4_e2m1fn"), std::string::npos);
}

TEST(AllocateHost, memory_is_counted_and_freed_once) {
  const std::int64_t before = live_copies();
  const std::int64_t shape[] = {3, 5};
  {
    Tensor out;
    ASSERT_TRUE(allocate_host(kFloat32, 2, shape, out).ok());
    EXPECT_EQ(live_copies(), before + 1);
    Tensor moved = std::move(out);
    EXPECT_EQ(moved.dl.strides[0], 5);
    EXPECT_EQ(moved.nbytes(), 60);
    std::memset(moved.dl.data, 0, 60);
  }
  EXPECT_EQ(live_copies(), before);
}

TEST(AllocateHost, large_blocks_have_256_byte_alignment) {
  for (const std::int64_t extent : {64, 65, 1000, 100000}) {
    Tensor out;
    ASSERT_TRUE(allocate_host(kFloat32, 1, &extent, out).ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(out.dl.data) % 256, 0u);
  }
}

TEST(AllocateHost, an_empty_tensor_has_neither_memory_nor_owner) {
  const std::int64_t shape[] = {0, kHuge};
  Tensor out;
  ASSERT_TRUE(allocate_host(kFloat32, 2, shape, out).ok());
  EXPECT_EQ(out.dl.data, nullptr);
  EXPECT_EQ(out.size, 0);
  EXPECT_FALSE(out.owner);
}

TEST(AllocateHost, a_size_that_cannot_be_had_is_out_of_memory_and_named) {
  const std::int64_t before = live_copies();
  const std::int64_t shape[] = {kHuge, 512};
  Tensor out;
  const Status status = allocate_host(kFloat32, 2, shape, out);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(status.message().find(std::to_string(kHuge * 512 * 4)), std::string::npos);
  EXPECT_EQ(live_copies(), before);
}

TEST(AllocateHost, bad_shapes_are_refused) {
  Tensor out;
  const std::int64_t product[] = {kHuge, kHuge};
  EXPECT_EQ(allocate_host(kFloat32, 2, product, out).code(), ErrorCode::kOverflow);
  const std::int64_t bytes[] = {std::int64_t{1} << 61};
  EXPECT_EQ(allocate_host(kFloat32, 1, bytes, out).code(), ErrorCode::kOverflow);
  const std::int64_t negative[] = {-1};
  EXPECT_EQ(allocate_host(kFloat32, 1, negative, out).code(), ErrorCode::kMalformed);
  EXPECT_EQ(allocate_host(kFloat32, 65, product, out).code(), ErrorCode::kMalformed);
  EXPECT_EQ(allocate_host({kDLFloat, 24, 1}, 0, nullptr, out).code(), ErrorCode::kRefused);
}

}  // namespace
}  // namespace dlbridge
