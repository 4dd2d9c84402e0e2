#include "protocols/common/typestr.h"

#include <gtest/gtest.h>

#include <string>

namespace dlbridge {
namespace {

struct Accepted {
  const char* typestr;
  const char* dtype;
};
constexpr Accepted kAccepted[] = {
    {"|b1", "bool"},      {"<b1", "bool"},        {">u1", "uint8"},    {"|i1", "int8"},    {"<i2", "int16"},
    {"<i4", "int32"},     {"<i8", "int64"},       {"=i8", "int64"},    {"|u1", "uint8"},   {"<u2", "uint16"},
    {"<u4", "uint32"},    {"<u8", "uint64"},      {"<f2", "float16"},  {"<f4", "float32"}, {"<f8", "float64"},
    {"<c8", "complex64"}, {"<c16", "complex128"}, {"<f04", "float32"},
};

TEST(ParseTypestr, AcceptsNativeNumbers) {
  for (const Accepted& c : kAccepted) {
    const DTypeInfo* dtype = nullptr;
    const Status status = parse_typestr(c.typestr, dtype);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(dtype->name, c.dtype) << c.typestr;
  }
}

struct Refused {
  std::string_view typestr;
  ErrorCode code;
  const char* says;
};
constexpr Refused kRefused[] = {
    {">f4", ErrorCode::kRefused, "opposite byte order"},
    {">c16", ErrorCode::kRefused, "opposite byte order"},
    {"<V2", ErrorCode::kRefused, "raw or structured"},
    {"|V1", ErrorCode::kRefused, "raw or structured"},
    {"|V16", ErrorCode::kRefused, "raw or structured"},
    {"<f1", ErrorCode::kRefused, "no dtype"},
    {"<f16", ErrorCode::kRefused, "no dtype"},
    {"<t4", ErrorCode::kRefused, "no dtype"},
    {"<M8[ns]", ErrorCode::kRefused, "no dtype"},
    {"<m8", ErrorCode::kRefused, "no dtype"},
    {"|O8", ErrorCode::kRefused, "no dtype"},
    {"|S3", ErrorCode::kRefused, "no dtype"},
    {"<U3", ErrorCode::kRefused, "no dtype"},
    {"<i3", ErrorCode::kRefused, "no dtype"},
    {"<f0", ErrorCode::kRefused, "no dtype"},
    {"<c4", ErrorCode::kRefused, "no dtype"},
    {"", ErrorCode::kMalformed, "followed by"},
    {"f4", ErrorCode::kMalformed, "followed by"},
    {"<f", ErrorCode::kMalformed, "followed by"},
    {"!f4", ErrorCode::kMalformed, "followed by"},
    {"<q8", ErrorCode::kMalformed, "kind"},
    {"<f-4", ErrorCode::kMalformed, "whole number"},
    {"<f4x", ErrorCode::kMalformed, "whole number"},
    {"<f 4", ErrorCode::kMalformed, "whole number"},
    {"<f99999999999999999999999", ErrorCode::kMalformed, "whole number"},
    {"<f4[ns]", ErrorCode::kMalformed, "whole number"},
    {std::string_view("<f4\0", 4), ErrorCode::kMalformed, "whole number"},
};

TEST(ParseTypestr, RefusesTheRestAndNamesIt) {
  for (const Refused& c : kRefused) {
    const DTypeInfo* dtype = nullptr;
    const Status status = parse_typestr(c.typestr, dtype);
    ASSERT_FALSE(status.ok()) << c.typestr;
    EXPECT_EQ(status.code(), c.code) << status.message();
    EXPECT_NE(status.message().find("'" + std::string(c.typestr) + "'"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(c.says), std::string::npos) << status.message();
    EXPECT_EQ(dtype, nullptr) << c.typestr;
  }
}

TEST(FormatTypestr, EveryRowThatHasOneReadsBack) {
  for (const DTypeInfo& row : kDTypes) {
    const std::string typestr = format_typestr(row);
    EXPECT_EQ(typestr.empty(), row.kind == 0) << row.name;
    if (typestr.empty()) continue;
    const DTypeInfo* dtype = nullptr;
    ASSERT_TRUE(parse_typestr(typestr, dtype).ok()) << typestr;
    EXPECT_EQ(dtype, &row) << typestr;
  }
}

TEST(FormatTypestr, OneByteItemsHaveNoByteOrder) {
  EXPECT_EQ(format_typestr(info(DType::kBool)), "|b1");
  EXPECT_EQ(format_typestr(info(DType::kComplex128)), kLittleEndian ? "<c16" : ">c16");
  EXPECT_EQ(format_typestr(info(DType::kBFloat16)), "");
}

}  // namespace
}  // namespace dlbridge
