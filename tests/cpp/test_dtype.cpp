#include "dlbridge/dtype.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstddef>
#include <set>
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

#include "dlbridge/half.h"
#include "dlbridge/tensor.h"

namespace dlbridge {
namespace {

// Written from the specifications, not from kDTypes: codes of DLPack 1.3, struct codes of PEP 3118, NumPy's typestrs.
struct Expected {
  const char* name;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t itemsize;
  char kind;  // 0: no typestr
  const char* pep3118;
};
constexpr Expected kExpected[] = {
    {"bool", 6, 8, 1, 1, 'b', "?"},
    {"int8", 0, 8, 1, 1, 'i', "b"},
    {"int16", 0, 16, 1, 2, 'i', "h"},
    {"int32", 0, 32, 1, 4, 'i', "i"},
    {"int64", 0, 64, 1, 8, 'i', sizeof(long) == 8 ? "l" : "q"},
    {"uint8", 1, 8, 1, 1, 'u', "B"},
    {"uint16", 1, 16, 1, 2, 'u', "H"},
    {"uint32", 1, 32, 1, 4, 'u', "I"},
    {"uint64", 1, 64, 1, 8, 'u', sizeof(long) == 8 ? "L" : "Q"},
    {"float16", 2, 16, 1, 2, 'f', "e"},
    {"bfloat16", 4, 16, 1, 2, 0, ""},
    {"float32", 2, 32, 1, 4, 'f', "f"},
    {"float64", 2, 64, 1, 8, 'f', "d"},
    {"complex32", 5, 32, 1, 4, 0, "Ze"},
    {"complex64", 5, 64, 1, 8, 'c', "Zf"},
    {"complex128", 5, 128, 1, 16, 'c', "Zd"},
    {"float8_e3m4", 7, 8, 1, 1, 0, ""},
    {"float8_e4m3", 8, 8, 1, 1, 0, ""},
    {"float8_e4m3b11fnuz", 9, 8, 1, 1, 0, ""},
    {"float8_e4m3fn", 10, 8, 1, 1, 0, ""},
    {"float8_e4m3fnuz", 11, 8, 1, 1, 0, ""},
    {"float8_e5m2", 12, 8, 1, 1, 0, ""},
    {"float8_e5m2fnuz", 13, 8, 1, 1, 0, ""},
    {"float8_e8m0fnu", 14, 8, 1, 1, 0, ""},
    {"float6_e2m3fn", 15, 6, 1, 1, 0, ""},
    {"float6_e3m2fn", 16, 6, 1, 1, 0, ""},
    {"float4_e2m1fn", 17, 4, 1, 1, 0, ""},
    {"float4_e2m1fn_x2", 17, 4, 2, 1, 0, ""},
};

class DTypeRow : public testing::TestWithParam<Expected> {};

TEST_P(DTypeRow, IsFoundByEveryKeyAndSaysWhatTheStandardsSay) {
  const Expected& want = GetParam();
  const DTypeInfo* row = find_dtype(DLDataType{want.code, want.bits, want.lanes});
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->name, want.name);
  EXPECT_EQ(row->itemsize, want.itemsize);
  EXPECT_EQ(row->kind, want.kind);
  EXPECT_EQ(row->pep3118, want.pep3118);
  EXPECT_EQ(find_dtype_by_name(want.name), row);
  EXPECT_EQ(dtype_name({want.code, want.bits, want.lanes}), want.name);
  EXPECT_EQ(itemsize_bytes({want.code, want.bits, want.lanes}), want.itemsize);
  if (want.kind != 0) {
    EXPECT_EQ(find_dtype_by_typestr(want.kind, static_cast<std::size_t>(want.itemsize)), row);
  }
}
INSTANTIATE_TEST_SUITE_P(All, DTypeRow, testing::ValuesIn(kExpected),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(DTypeTable, HasNoRowThatTheTestsDoNotKnow) { EXPECT_EQ(kDTypes.size(), std::size(kExpected)); }

// An unknown type has no row, and its name in messages tells code, bits and lanes.
TEST(DTypeTable, Fault16UnknownTypesHaveNoRowAndAreNamed) {
  constexpr DLDataType kUnknown[] = {{kDLFloat, 32, 4},
                                     {kDLFloat, 24, 1},
                                     {kDLInt, 128, 1},
                                     {kDLInt, 0, 1},
                                     {18, 8, 1},
                                     {255, 8, 1},
                                     {kDLFloat, 255, 1},
                                     {kDLFloat, 32, 0},
                                     {kDLBool, 1, 1},
                                     {kDLOpaqueHandle, 64, 1},
                                     {kDLFloat4_e2m1fn, 4, 3}};
  for (const DLDataType& t : kUnknown) {
    EXPECT_EQ(find_dtype(t), nullptr) << dtype_name(t);
    EXPECT_EQ(dtype_name(t), "DLDataType(code=" + std::to_string(t.code) + ", bits=" + std::to_string(t.bits) +
                                 ", lanes=" + std::to_string(t.lanes) + ")");
  }
}

TEST(DTypeTable, EveryCodeBitsLanesIsARowOrNothingAndNeverReadsOutside) {
  constexpr std::uint16_t kLanes[] = {0, 1, 2, 65535};
  std::set<std::string_view> found;
  for (unsigned code = 0; code < 256; ++code)
    for (unsigned bits = 0; bits < 256; ++bits)
      for (const std::uint16_t lanes : kLanes) {
        const DLDataType t{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), lanes};
        if (const DTypeInfo* row = find_dtype(t)) {
          EXPECT_EQ(row->code, t.code);
          EXPECT_EQ(row->bits, t.bits);
          EXPECT_EQ(row->lanes, t.lanes);
          found.insert(row->name);
        }
      }
  EXPECT_EQ(found.size(), kDTypes.size());
}

TEST(DTypeTable, NumpyTypeNumbersIncludeBothLongs) {
  EXPECT_EQ(find_dtype_by_numpy_type(7)->itemsize, sizeof(long));  // NPY_LONG
  EXPECT_EQ(find_dtype_by_numpy_type(9)->itemsize, 8);             // NPY_LONGLONG
  EXPECT_EQ(find_dtype_by_numpy_type(9)->name, "int64");
  EXPECT_EQ(find_dtype_by_numpy_type(10)->name, "uint64");
  EXPECT_EQ(find_dtype_by_numpy_type(23)->name, "float16");
  for (int longdouble_objects_and_datetimes : {13, 16, 17, 18, 19, 20, 21, 22})
    EXPECT_EQ(find_dtype_by_numpy_type(longdouble_objects_and_datetimes), nullptr);
  for (int outside : {-1, 24, 25, 1 << 20}) EXPECT_EQ(find_dtype_by_numpy_type(outside), nullptr);
}

TEST(DTypeTable, LookupsByAStrangeKeyFindNothing) {
  EXPECT_EQ(find_dtype_by_name("float31"), nullptr);
  EXPECT_EQ(find_dtype_by_name(""), nullptr);
  EXPECT_EQ(find_dtype_by_typestr('f', 3), nullptr);
  EXPECT_EQ(find_dtype_by_typestr('f', 16), nullptr);  // long double
  EXPECT_EQ(find_dtype_by_typestr('\0', 2), nullptr);  // the kind of rows that have none
}

TEST(DTypeTable, SubbyteTypesAreThoseBelowOneByte) {
  EXPECT_TRUE(is_subbyte({kDLFloat4_e2m1fn, 4, 1}));
  EXPECT_TRUE(is_subbyte({kDLFloat6_e2m3fn, 6, 1}));
  EXPECT_FALSE(is_subbyte({kDLFloat4_e2m1fn, 4, 2}));
  EXPECT_FALSE(is_subbyte({kDLBool, 8, 1}));
}

TEST(DTypeOf, MapsCppTypes) {
  EXPECT_EQ(info(dtype_of_v<double>).name, "float64");
  EXPECT_EQ(info(dtype_of_v<std::complex<double>>).name, "complex128");
  EXPECT_EQ(info(dtype_of_v<long>).itemsize, sizeof(long));
  EXPECT_EQ(info(dtype_of_v<unsigned long long>).name, "uint64");
  EXPECT_EQ(info(dtype_of_v<const signed char>).name, "int8");
  EXPECT_EQ(info(dtype_of_v<char>).itemsize, 1);
  EXPECT_EQ(info(dtype_of_v<std::byte>).name, "uint8");
}

TEST(DTypeOf, TheCompilersOwnTypesOf16BitsAreTwoDTypes) {
  EXPECT_EQ(info(dtype_of_v<float16>).name, "float16");
  EXPECT_EQ(info(dtype_of_v<const bfloat16>).name, "bfloat16");
#if defined(__FLT16_MANT_DIG__)
  EXPECT_EQ(info(dtype_of_v<_Float16>).name, "float16");
#endif
#if defined(__STDCPP_FLOAT16_T__)
  EXPECT_EQ(info(dtype_of_v<std::float16_t>).name, "float16");
#endif
#if defined(__STDCPP_BFLOAT16_T__)
  EXPECT_EQ(info(dtype_of_v<std::bfloat16_t>).name, "bfloat16");
#endif
}

TEST(DTypeOf, ComparesWithTheDTypeOfATensor) {
  Tensor t;
  t.set_dtype(info(DType::kFloat32));
  EXPECT_TRUE(t.dtype() == dtype_of_v<float>);
  EXPECT_TRUE(dtype_of_v<double> != t.dtype());
  EXPECT_TRUE(t.dtype() == info(DType::kFloat32));
}

}  // namespace
}  // namespace dlbridge
