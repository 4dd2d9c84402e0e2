// Arrow's codec: format strings and metadata, bitmaps, columns of several arrays, exports whose children move.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dlbridge/arrow_codec.h"
#include "dlbridge/arrow_export.h"

namespace dlbridge::arrow_c {
namespace {

void release_schema(ArrowSchema* s) { s->release = nullptr; }
void release_array(ArrowArray* a) { a->release = nullptr; }

// Structs that own nothing.
ArrowSchema schema_of(const char* format) {
  ArrowSchema s{};
  s.format = format;
  s.release = release_schema;
  return s;
}
struct Numbers {
  std::vector<double> values;
  std::vector<std::uint8_t> bits;
  const void* buffers[2];
  ArrowArray array{};

  explicit Numbers(std::vector<double> v, std::vector<std::uint8_t> validity = {}, std::int64_t nulls = 0)
      : values(std::move(v)), bits(std::move(validity)), buffers{bits.empty() ? nullptr : bits.data(), values.data()} {
    array.length = static_cast<std::int64_t>(values.size());
    array.null_count = nulls;
    array.n_buffers = 2;
    array.buffers = buffers;
    array.release = release_array;
  }
  Numbers(const Numbers&) = delete;
  Part part() const { return {&array, 0, array.length}; }
};

struct Got {
  Status status;
  Tensor values;
  Tensor mask;
  const Part* shared = nullptr;
};
Got read(const ArrowSchema& schema, const std::vector<Part>& parts, ReadOptions options = {}) {
  Got got;
  ColumnType type;
  got.status = read_type(schema, type);
  if (got.status.ok()) got.status = read_column({schema, type, parts}, options, got.values, &got.mask, &got.shared);
  return got;
}

TEST(ArrowType, EveryRowOfTheDTypeTableIsFoundByItsFormat) {
  for (const DTypeInfo& d : kDTypes) {
    if (d.arrow == 0) continue;
    SCOPED_TRACE(std::string(d.name));
    const ArrowSchema schema = schema_of(format_of(d.id));
    ColumnType type;
    ASSERT_TRUE(read_type(schema, type).ok());
    EXPECT_EQ(type.dtype, &d);
    EXPECT_EQ(type_name(schema), d.name);
  }
}

TEST(ArrowType, NamesSayUnitsAndZones) {
  const struct {
    const char* format;
    const char* name;
  } cases[] = {
      {"tdD", "date32[day]"},
      {"tsu:", "timestamp[us]"},
      {"tsn:UTC", "timestamp[ns, UTC]"},
      {"tDm", "duration[ms]"},
      {"b", "bool"},
      {"vu", "string_view"},
      {"d:10,2", "decimal(10,2)"},
      {"+us:0,1", "sparse_union"},
      {"?", "of format '?'"},
      {"+w:3", "fixed_size_list<?>[3]"},
  };
  for (const auto& c : cases) EXPECT_EQ(type_name(schema_of(c.format)), c.name);
}

TEST(ArrowType, WhatIsNoNumberIsAWrongTypeAndNonsenseIsMalformed) {
  for (const char* format : {"u", "+l", "+s", "d:1,1", "n", "tiM", "+r"}) {
    ColumnType type;
    EXPECT_EQ(read_type(schema_of(format), type).code(), ErrorCode::kWrongType) << format;
  }
  for (const char* format : {"", "x", "ll", "+w", "+w:", "+w:x", "+w:9999999999", "ts", "tsu"}) {
    ColumnType type;
    EXPECT_EQ(read_type(schema_of(format), type).code(), ErrorCode::kMalformed) << format;
  }
}

TEST(ArrowMetadata, WhatIsWrittenIsRead) {
  const std::int64_t extents[] = {2, 3, 5};
  const std::string block = tensor_metadata(extents, 3);
  Extension extension;
  ASSERT_TRUE(read_extension(block.data(), extension, block.size()).ok());
  EXPECT_EQ(extension.name, kTensorExtension);
  TensorShape shape;
  ASSERT_TRUE(read_tensor_shape(extension.metadata, shape).ok());
  EXPECT_EQ(shape.extents.count, 3);
  EXPECT_EQ(shape.extents.values[2], 5);
  EXPECT_EQ(shape.order.values[2], 2);
}

TEST(ArrowMetadata, NoByteBehindTheLimitIsRead) {
  const std::int64_t extents[] = {2, 3};
  const std::string block = tensor_metadata(extents, 2);
  for (std::size_t limit = 0; limit < block.size(); ++limit) {
    const std::string cut = block.substr(0, limit);
    Extension extension;
    EXPECT_FALSE(read_extension(cut.data(), extension, cut.size()).ok()) << limit;
  }
}

TEST(ArrowMetadata, JsonIsReadWhole) {
  const struct {
    const char* json;
    bool good;
  } cases[] = {
      {R"({"shape":[2]})", true},
      {R"( { "dim_names" : [ "a\"]" ] , "shape" : [ 2 ] } )", true},
      {R"({"shape":[]})", true},
      {R"({"shape":[2],"permutation":[0]})", true},
      {R"({"shape":[2],"permutation":[1]})", false},
      {R"({"shape":[2],"dim_names":["a","b"]})", false},
      {R"({"shape":[2]} x)", false},
      {R"({"shape":[2],})", false},
      {R"({"shape":[2)", false},
      {R"({"shape":[99999999999999999999]})", false},
      {R"({"other":[2]})", false},
      {R"({"shape":"2"})", false},
      {R"({"dim_names":["a)", false},
      {"", false},
  };
  for (const auto& c : cases) {
    TensorShape shape;
    EXPECT_EQ(read_tensor_shape(c.json, shape).ok(), c.good) << c.json;
  }
}

TEST(ArrowNulls, BitsAreCountedFromAnyPlaceOn) {
  std::vector<std::uint8_t> bits(40);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint8_t>(i * 37 + 11);
  for (const std::int64_t first : {0, 1, 7, 8, 9, 63, 64})
    for (const std::int64_t count : {0, 1, 7, 8, 63, 64, 65, 200}) {
      std::int64_t zeros = 0, visited = 0;
      for (std::int64_t i = first; i < first + count; ++i) zeros += !detail::bit_at(bits.data(), i);
      detail::for_each_zero(bits.data(), first, count, [&](std::int64_t i) {
        EXPECT_FALSE(detail::bit_at(bits.data(), first + i));
        ++visited;
      });
      EXPECT_EQ(detail::count_zeros(bits.data(), first, count), zeros);
      EXPECT_EQ(visited, zeros);
    }
}

TEST(ArrowNulls, PackedBitsUnpack) {
  const std::vector<std::uint8_t> bytes{1, 0, 255, 0, 0, 1, 1, 0, 2, 0, 1};
  std::vector<std::uint8_t> bits(2), back(bytes.size());
  detail::pack_bits(bytes.data(), 11, bits.data());
  detail::unpack_bits(bits.data(), 0, 11, back.data());
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(back[i], bytes[i] != 0) << i;
}

TEST(ArrowColumn, OneArrayIsSharedAndEmptyOnesDoNotCount) {
  const Numbers none({}), some({1, 2});
  const std::vector<Part> parts{none.part(), some.part(), none.part()};
  const ArrowSchema schema = schema_of("g");
  Got got = read(schema, parts);
  ASSERT_TRUE(got.status.ok());
  EXPECT_EQ(got.values.dl.data, some.values.data());
  EXPECT_EQ(got.shared, &parts[1]);
  EXPECT_TRUE(got.values.readonly());
}

TEST(ArrowColumn, SeveralArraysAreJoinedWhereCopiesAreAllowed) {
  const Numbers a({1, 2}), b({3});
  const ArrowSchema schema = schema_of("g");
  EXPECT_EQ(read(schema, {a.part(), b.part()}).status.code(), ErrorCode::kCopyRefused);
  EXPECT_EQ(read(schema, {a.part(), b.part()}, {Nulls::kNan, Copies::kDeclared}).status.code(),
            ErrorCode::kCopyRefused);
  Got got = read(schema, {a.part(), b.part()}, {Nulls::kRefuse, Copies::kAllowed});
  ASSERT_TRUE(got.status.ok());
  EXPECT_EQ(got.shared, nullptr);
  EXPECT_EQ(got.values.size, 3);
  EXPECT_EQ(static_cast<const double*>(got.values.dl.data)[2], 3);
  EXPECT_FALSE(got.values.readonly());
}

TEST(ArrowColumn, NullsBecomeNanInACopyOrAMaskBesideTheValues) {
  const Numbers x({1, 2, 3}, {0b101}, 1);
  const ArrowSchema schema = schema_of("g");
  EXPECT_EQ(read(schema, {x.part()}).status.code(), ErrorCode::kRefused);
  EXPECT_EQ(read(schema, {x.part()}, {Nulls::kNan, Copies::kNever}).status.code(), ErrorCode::kCopyRefused);
  const Got nan = read(schema, {x.part()}, {Nulls::kNan, Copies::kDeclared});
  ASSERT_TRUE(nan.status.ok());
  EXPECT_NE(static_cast<const double*>(nan.values.dl.data)[1], static_cast<const double*>(nan.values.dl.data)[1]);
  EXPECT_EQ(x.values[1], 2);
  const Got masked = read(schema, {x.part()}, {Nulls::kMask, Copies::kNever});
  ASSERT_TRUE(masked.status.ok());
  EXPECT_EQ(masked.values.dl.data, x.values.data());
  EXPECT_EQ(std::memcmp(masked.mask.dl.data, "\0\1\0", 3), 0);
}

TEST(ArrowColumn, RowsPastTheEndAreRefused) {
  const Numbers x({1, 2, 3});
  const ArrowSchema schema = schema_of("g");
  const struct {
    std::int64_t first, rows;
  } cases[] = {{0, 4}, {3, 1}, {INT64_MAX, 1}, {1, INT64_MAX}, {4, 0}};
  for (const auto& c : cases)
    EXPECT_EQ(read(schema, {{&x.array, c.first, c.rows}}).status.code(), ErrorCode::kMalformed) << c.first;
}

TEST(ArrowColumn, DeviceMemoryIsNeverLookedAt) {
  const Numbers x({1, 2}, {0b11}, -1);
  const ArrowSchema schema = schema_of("g"), bits = schema_of("b");
  ColumnType numbers, bools;
  ASSERT_TRUE(read_type(schema, numbers).ok() && read_type(bits, bools).ok());
  const Part part = x.part();
  const DLDevice gpu{kDLCUDA, 0};
  const Part* shared = nullptr;
  Tensor out, mask;
  EXPECT_EQ(read_column({schema, numbers, {&part, 1}, gpu}, {}, out, &mask, &shared).code(), ErrorCode::kRefused);
  const Numbers y({1, 2});
  const Part whole = y.part();
  const ReadOptions all{Nulls::kRefuse, Copies::kAllowed}, masked{Nulls::kMask, Copies::kAllowed};
  EXPECT_EQ(read_column({bits, bools, {&whole, 1}, gpu}, all, out, &mask, &shared).code(), ErrorCode::kRefused);
  EXPECT_EQ(read_column({schema, numbers, {&whole, 1}, gpu}, masked, out, &mask, &shared).code(), ErrorCode::kRefused);
  ASSERT_TRUE(read_column({schema, numbers, {&whole, 1}, gpu}, {}, out, &mask, &shared).ok());
  EXPECT_TRUE(same_device(out.dl.device, gpu));
}

struct Count {
  int released = 0;
  Owner owner() {
    return {this, [](void* self) noexcept { ++static_cast<Count*>(self)->released; }};
  }
};
Tensor tensor_of(float* data, std::vector<std::int64_t> shape, Count& count) {
  Tensor t;
  t.set_dtype(info(DType::kFloat32));
  t.dl.data = data;
  EXPECT_TRUE(
      build_layout<StrideUnit::kElements>(t, static_cast<std::int64_t>(shape.size()), shape.data(), nullptr).ok());
  t.owner = count.owner();
  return t;
}

TEST(ArrowExport, AChildThatWasMovedOutOutlivesItsParent) {
  float data[6] = {};
  Count count;
  Tensor t = tensor_of(data, {2, 3}, count);
  ASSERT_TRUE(check_export(t, false).ok());
  Owned<ArrowSchema> schema;
  Owned<ArrowArray> array, child;
  export_schema(t, schema.value);
  export_array(std::move(t), array.value);
  EXPECT_STREQ(schema.value.format, "+w:3");
  child = Owned<ArrowArray>(*array.value.children[0]);
  array.reset();
  EXPECT_EQ(count.released, 0);
  EXPECT_EQ(child.value.buffers[1], data);
  child.reset();
  EXPECT_EQ(count.released, 1);
}

TEST(ArrowExport, AParentReleasesItsChild) {
  float data[6] = {};
  Count count;
  {
    Owned<ArrowArray> array;
    export_array(tensor_of(data, {3, 2}, count), array.value);
  }
  EXPECT_EQ(count.released, 1);
}

TEST(ArrowExport, WhatIsExportedIsReadAgain) {
  float data[24] = {};
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{24}, {2, 12}, {4, 3, 2}, {0, 2}, {2, 0}, {1, 1, 1}}) {
    Count count;
    Tensor t = tensor_of(data, shape, count);
    Owned<ArrowSchema> schema;
    Owned<ArrowArray> array;
    export_schema(t, schema.value);
    export_array(std::move(t), array.value);
    const Got got = read(schema.value, {{&array.value, 0, array.value.length}});
    ASSERT_TRUE(got.status.ok()) << got.status.message();
    EXPECT_EQ(std::vector<std::int64_t>(got.values.dl.shape, got.values.dl.shape + got.values.dl.ndim), shape);
    EXPECT_EQ(got.values.dl.data, got.values.size != 0 ? data : nullptr);
  }
}

}  // namespace
}  // namespace dlbridge::arrow_c
