// faults.md 1, 2, 6, 7-17 as they reach the codec; every case also counts the deleter's calls.
#include "dlbridge/dlpack_codec.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/cpp/fixtures.h"

namespace dlbridge {
namespace {

using test::LegacyProducer;
using test::VersionedProducer;

template <class P>
class BothKinds : public testing::Test {};
using Producers = testing::Types<LegacyProducer, VersionedProducer>;
TYPED_TEST_SUITE(BothKinds, Producers);

TYPED_TEST(BothKinds, AGoodTensorIsTakenAndDeletedOnceWithTheDescriptor) {
  TypeParam producer;
  {
    Tensor t;
    const Status status = import_managed(&producer.managed, t);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(t.dl.data, producer.bytes.data());
    EXPECT_EQ(t.dl.shape[1], 3);
    EXPECT_EQ(t.dl.strides[0], 3);
    EXPECT_EQ(t.dtype().name, "float32");
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TYPED_TEST(BothKinds, Fault6NullDeleterIsAccepted) {
  TypeParam producer;
  producer.managed.deleter = nullptr;
  Tensor t;
  EXPECT_TRUE(import_managed(&producer.managed, t).ok());
}

TYPED_TEST(BothKinds, Fault7NullStridesAreFilledInOursAndNotInTheProducers) {
  TypeParam producer;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_NE(t.dl.strides, nullptr);
  EXPECT_EQ(producer.managed.dl_tensor.strides, nullptr);
}

TYPED_TEST(BothKinds, Fault8ZeroDimMayHaveNoShapeAtAll) {
  TypeParam producer(std::vector<std::int64_t>{});
  producer.managed.dl_tensor.shape = nullptr;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.size, 1);
}

// What a damaged producer can hand over: each is refused by name and deleted exactly once.
struct Damage {
  const char* id;
  void (*apply)(DLTensor&);
  ErrorCode want;
  const char* says;
};
const Damage kDamages[] = {
    {"Fault9NegativeNdim", [](DLTensor& t) { t.ndim = -1; }, ErrorCode::kMalformed, "ndim is -1"},
    {"Fault9HugeNdim", [](DLTensor& t) { t.ndim = 1'000'000'000; }, ErrorCode::kMalformed, "1000000000"},
    {"Fault9HugeNdimAndNoShape", [](DLTensor& t) { t.ndim = 65, t.shape = nullptr; }, ErrorCode::kMalformed, "65"},
    {"NullShape", [](DLTensor& t) { t.shape = nullptr; }, ErrorCode::kMalformed, "shape is null"},
    {"Fault10NegativeExtent", [](DLTensor& t) { t.shape[0] = -2; }, ErrorCode::kMalformed, "-2"},
    {"Fault11ShapeOverflow", [](DLTensor& t) { t.shape[0] = t.shape[1] = std::int64_t{1} << 40; }, ErrorCode::kOverflow,
     "shape"},
    {"Fault12StrideOverflow",
     [](DLTensor& t) {
       static std::int64_t strides[] = {std::int64_t{1} << 62, 1};
       t.shape[0] = 8;
       t.strides = strides;
     },
     ErrorCode::kOverflow, "stride times extent"},
    {"Fault14NullData", [](DLTensor& t) { t.data = nullptr; }, ErrorCode::kMalformed, "null"},
    {"Fault15OffsetLeavesTheAddressSpace", [](DLTensor& t) { t.byte_offset = ~std::uint64_t{0}; }, ErrorCode::kOverflow,
     "byte_offset"},
    {"Fault16Lanes", [](DLTensor& t) { t.dtype.lanes = 4; }, ErrorCode::kRefused, "code=2, bits=32, lanes=4"},
    {"Fault16Bits", [](DLTensor& t) { t.dtype.bits = 24; }, ErrorCode::kRefused, "code=2, bits=24, lanes=1"},
    {"Fault16Code", [](DLTensor& t) { t.dtype.code = 18; }, ErrorCode::kRefused, "code=18, bits=32, lanes=1"},
    {"UnknownDevice", [](DLTensor& t) { t.device.device_type = static_cast<DLDeviceType>(77); }, ErrorCode::kRefused,
     "77"},
};

TYPED_TEST(BothKinds, EveryDamageIsRefusedByNameAndDeletedOnce) {
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.id);
    TypeParam producer;
    damage.apply(producer.managed.dl_tensor);
    {
      Tensor t;
      const Status status = import_managed(&producer.managed, t);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), damage.want) << status.message();
      EXPECT_NE(status.message().find(damage.says), std::string::npos) << status.message();
      EXPECT_EQ(producer.deleted, 1) << "the codec takes the struct, also on failure";
      EXPECT_FALSE(t.owner);
    }
    EXPECT_EQ(producer.deleted, 1);
  }
}

TYPED_TEST(BothKinds, Fault13EmptyWithNullDataIsFine) {
  TypeParam producer({0, 3});
  producer.managed.dl_tensor.data = nullptr;
  producer.managed.dl_tensor.byte_offset = 64;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.dl.data, nullptr);
  EXPECT_EQ(t.dl.byte_offset, 0u);
  EXPECT_EQ(t.size, 0);
}

TYPED_TEST(BothKinds, Fault15ByteOffsetIsFoldedIntoAnAddress) {
  TypeParam producer;
  producer.managed.dl_tensor.byte_offset = 8;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.dl.data, producer.bytes.data() + 8);
  EXPECT_EQ(t.dl.byte_offset, 0u);
  EXPECT_EQ(producer.managed.dl_tensor.byte_offset, 8u);
}

TYPED_TEST(BothKinds, Fault15AMisalignedOffsetIsSeen) {
  TypeParam producer;
  producer.managed.dl_tensor.byte_offset = 2;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_FALSE(is_aligned(t));
}

TYPED_TEST(BothKinds, AHandleIsNotAnAddressSoItsOffsetStays) {
  TypeParam producer;
  producer.managed.dl_tensor.device = {kDLMetal, 0};
  producer.managed.dl_tensor.byte_offset = 8;
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.dl.data, producer.bytes.data());
  EXPECT_EQ(t.dl.byte_offset, 8u);
}

TYPED_TEST(BothKinds, AHostDeviceIdIsZeroWhateverTheProducerSays) {
  TypeParam producer;
  producer.managed.dl_tensor.device = {kDLCUDAHost, 3};
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.dl.device.device_id, 0);
}

// The struct ends where its ABI prefix ends, right before a page that cannot be read.
TEST(Versioned, Fault1AnotherMajorIsRefusedDeletedAndReadNoFurtherThanFlags) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* end = static_cast<char*>(memory) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  constexpr std::size_t kPrefix = offsetof(DLManagedTensorVersioned, dl_tensor);

  for (const std::uint32_t major : {0u, 2u, 4294967295u}) {
    int deleted = 0;
    const DLPackVersion version{major, 0};
    void* context = &deleted;
    void (*deleter)(DLManagedTensorVersioned*) = [](DLManagedTensorVersioned* self) {
      ++*static_cast<int*>(self->manager_ctx);
    };
    const std::uint64_t flags = 0;
    char* begin = end - kPrefix;
    std::memcpy(begin + offsetof(DLManagedTensorVersioned, version), &version, sizeof(version));
    std::memcpy(begin + offsetof(DLManagedTensorVersioned, manager_ctx), &context, sizeof(context));
    std::memcpy(begin + offsetof(DLManagedTensorVersioned, deleter), &deleter, sizeof(deleter));
    std::memcpy(begin + offsetof(DLManagedTensorVersioned, flags), &flags, sizeof(flags));

    Tensor t;
    const Status status = import_managed(reinterpret_cast<DLManagedTensorVersioned*>(begin), t);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kRefused);
    EXPECT_NE(status.message().find(std::to_string(major) + ".0"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("1.3"), std::string::npos) << status.message();
    EXPECT_EQ(deleted, 1);
  }
  munmap(memory, 2 * page);
}

TEST(Versioned, Fault2ANewerMinorIsAccepted) {
  VersionedProducer producer;
  producer.managed.version.minor = 99;
  Tensor t;
  EXPECT_TRUE(import_managed(&producer.managed, t).ok());
}

TEST(Versioned, FlagsAreKeptAndUnknownOnesDropped) {
  VersionedProducer producer;
  producer.managed.flags = kFlagReadOnly | kFlagCopied | (std::uint64_t{1} << 40);
  Tensor t;
  ASSERT_TRUE(import_managed(&producer.managed, t).ok());
  EXPECT_EQ(t.flags, kFlagReadOnly | kFlagCopied);
  EXPECT_TRUE(t.readonly());
}

TEST(Versioned, Fault17PaddedSubbyteIsKeptAndMeansNothingForWholeBytes) {
  for (const bool padded : {false, true}) {
    VersionedProducer producer({5}, {kDLFloat4_e2m1fn, 4, 1});
    producer.managed.flags = padded ? kFlagPadded : 0;
    Tensor t;
    ASSERT_TRUE(import_managed(&producer.managed, t).ok());
    EXPECT_EQ(t.padded(), padded);
    EXPECT_EQ(t.nbytes(), padded ? 5 : 3);
  }
  VersionedProducer whole;
  whole.managed.flags = kFlagPadded;
  Tensor t;
  ASSERT_TRUE(import_managed(&whole.managed, t).ok());
  EXPECT_FALSE(t.padded());
}

// Export and import again: shapes within the object and on the heap, and the first owner released once at the end.
class RoundTrip : public testing::TestWithParam<int> {};

TEST_P(RoundTrip, KeepsEverythingAndReleasesOnce) {
  const auto ndim = static_cast<std::size_t>(GetParam());
  std::vector<std::int64_t> shape(ndim, 1);
  std::vector<std::int64_t> strides(ndim);
  for (std::size_t i = 0; i < ndim; ++i) strides[i] = static_cast<std::int64_t>(i) + 5;
  if (ndim > 0) shape[0] = 2;
  VersionedProducer producer(shape);
  producer.set_strides(strides);
  producer.managed.flags = kFlagReadOnly;
  {
    Tensor first;
    ASSERT_TRUE(import_managed(&producer.managed, first).ok());
    DLManagedTensorVersioned* exported = export_managed(std::move(first));
    EXPECT_EQ(exported->version.major, 1u);
    EXPECT_EQ(exported->version.minor, 3u);
    EXPECT_EQ(exported->flags, kFlagReadOnly);
    ASSERT_EQ(exported->dl_tensor.ndim, GetParam());
    for (std::size_t i = 0; i < ndim; ++i) {
      EXPECT_EQ(exported->dl_tensor.shape[i], shape[i]);
      EXPECT_EQ(exported->dl_tensor.strides[i], strides[i]);
    }
    Tensor second;
    ASSERT_TRUE(import_managed(exported, second).ok());
    DLManagedTensor* legacy = export_legacy(std::move(second));
    EXPECT_EQ(legacy->dl_tensor.data, producer.bytes.data());
    EXPECT_EQ(producer.deleted, 0);
    legacy->deleter(legacy);
    EXPECT_EQ(producer.deleted, 1);
  }
  EXPECT_EQ(producer.deleted, 1);
}
INSTANTIATE_TEST_SUITE_P(Ndim, RoundTrip, testing::Values(0, 1, 2, kInlineDims, kInlineDims + 1, kMaxDims),
                         testing::PrintToStringParamName());

// The exchange API lends a DLTensor: nothing is owned, nothing may be deleted.
TEST(Borrowed, DecodingLeavesTheOwnerEmpty) {
  LegacyProducer producer;
  {
    Tensor t;
    ASSERT_TRUE(decode_dltensor(producer.managed.dl_tensor, 0, t).ok());
    EXPECT_FALSE(t.owner);
  }
  EXPECT_EQ(producer.deleted, 0);
}

}  // namespace
}  // namespace dlbridge
