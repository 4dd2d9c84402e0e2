#include "protocols/buffer/format.h"

#include <gtest/gtest.h>

#include <string>

namespace dlbridge::buffer {
namespace {

// Python's struct module on LP64 is the oracle of sizes; the buffer's itemsize must say the same.
struct Accepted {
  const char* format;  // nullptr: the buffer gives none
  std::int64_t itemsize;
  const char* dtype;
};
constexpr Accepted kAccepted[] = {
    {nullptr, 1, "uint8"},   {"?", 1, "bool"},         {"b", 1, "int8"},    {"B", 1, "uint8"},   {"c", 1, "uint8"},
    {"h", 2, "int16"},       {"H", 2, "uint16"},       {"i", 4, "int32"},   {"I", 4, "uint32"},  {"q", 8, "int64"},
    {"Q", 8, "uint64"},      {"e", 2, "float16"},      {"f", 4, "float32"}, {"d", 8, "float64"}, {"Ze", 4, "complex32"},
    {"Zf", 8, "complex64"},  {"Zd", 16, "complex128"}, {"@i", 4, "int32"},  {"^i", 4, "int32"},  {"=i", 4, "int32"},
    {"<i", 4, "int32"},      {"=l", 4, "int32"},       {"<l", 4, "int32"},  {"<L", 4, "uint32"}, {"<q", 8, "int64"},
    {"<Zf", 8, "complex64"}, {">b", 1, "int8"},        {"!B", 1, "uint8"},  {">?", 1, "bool"},   {"<c", 1, "uint8"},
    {"=e", 2, "float16"},    {"<Ze", 4, "complex32"},
};

TEST(ParseFormat, AcceptsEveryListedCode) {
  for (const Accepted& c : kAccepted) {
    const DTypeInfo* dtype = nullptr;
    const Status status = parse_format(c.format, c.itemsize, dtype);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(dtype->name, c.dtype) << (c.format != nullptr ? c.format : "null");
  }
}

TEST(ParseFormat, NativeLongAndSizeTAreAsWideAsTheCompilers) {
  const DTypeInfo* dtype = nullptr;
  for (const char* format : {"l", "@l", "n"}) {
    ASSERT_TRUE(parse_format(format, sizeof(long), dtype).ok()) << format;
    EXPECT_EQ(dtype->name, sizeof(long) == 8 ? "int64" : "int32") << format;
  }
  for (const char* format : {"L", "N", "@N"}) {
    ASSERT_TRUE(parse_format(format, sizeof(long), dtype).ok()) << format;
    EXPECT_EQ(dtype->name, sizeof(long) == 8 ? "uint64" : "uint32") << format;
  }
}

struct Refused {
  const char* format;
  std::int64_t itemsize;
  const char* says;
};
constexpr Refused kRefused[] = {
    {">i", 4, "opposite byte order"},
    {"!i", 4, "opposite byte order"},
    {">Zf", 8, "opposite byte order"},
    {"i", 8, "itemsize"},
    {"<l", 8, "itemsize"},
    {"i", 0, "itemsize"},
    {"i", -4, "itemsize"},
    {"Zf", 4, "itemsize"},
    {"=n", 8, "native-only"},
    {"<N", 8, "native-only"},
    {"g", 16, "no dtype"},
    {"Zg", 32, "no dtype"},
    {"s", 1, "no dtype"},
    {"p", 1, "no dtype"},
    {"u", 2, "no dtype"},
    {"w", 4, "no dtype"},
    {"x", 1, "no dtype"},
    {"P", 8, "no dtype"},
    {"O", 8, "no dtype"},
    {"&i", 8, "plain number"},
    {"T{i:a:}", 4, "plain number"},
    {"2i", 8, "plain number"},
    {"ii", 8, "plain number"},
    {"", 1, "plain number"},
    {"<", 1, "plain number"},
    {"Z", 8, "no dtype"},
    {"Zi", 8, "no dtype"},
    {"Z?", 2, "no dtype"},
    {"ZZf", 8, "plain number"},
    {" i", 4, "plain number"},
    {"i ", 4, "plain number"},
    {"(2)i", 8, "plain number"},
    {"<<i", 4, "plain number"},
    {"F", 8, "no dtype"},
};

TEST(ParseFormat, RefusesTheRestAndNamesIt) {
  for (const Refused& c : kRefused) {
    const DTypeInfo* dtype = nullptr;
    const Status status = parse_format(c.format, c.itemsize, dtype);
    ASSERT_FALSE(status.ok()) << c.format;
    EXPECT_EQ(status.code(), ErrorCode::kRefused) << c.format;
    EXPECT_NE(status.message().find("'" + std::string(c.format) + "'"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(c.says), std::string::npos) << c.format << ": " << status.message();
    EXPECT_EQ(dtype, nullptr) << c.format;
  }
}

TEST(ParseFormat, EveryPep3118CodeOfTheTableReadsBack) {
  for (const DTypeInfo& row : kDTypes) {
    if (row.pep3118.empty()) continue;
    const DTypeInfo* dtype = nullptr;
    ASSERT_TRUE(parse_format(std::string(row.pep3118).c_str(), row.itemsize, dtype).ok()) << row.name;
    EXPECT_EQ(dtype, &row);
  }
}

}  // namespace
}  // namespace dlbridge::buffer
