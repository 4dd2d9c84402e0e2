// The dtype table: every mapping between DLPack, PEP 3118, typestr, NumPy, Arrow, C++ and names derives from kDTypes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "dlbridge/dlpack.h"

namespace dlbridge {

// clang-format off
enum class DType : std::uint8_t {
  kBool, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
  kFloat16, kBFloat16, kFloat32, kFloat64, kComplex32, kComplex64, kComplex128,
  kFloat8E3M4, kFloat8E4M3, kFloat8E4M3B11FNUZ, kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ,
  kFloat8E8M0FNU, kFloat6E2M3FN, kFloat6E3M2FN, kFloat4E2M1FN, kFloat4E2M1FNx2,
};
// clang-format on

struct DTypeInfo {
  DType id;
  std::string_view name;  // the name NumPy, ml_dtypes or PyTorch use
  std::uint8_t code;      // DLDataTypeCode
  std::uint8_t bits;      // of one lane
  std::uint16_t lanes;
  std::uint8_t itemsize;     // bytes of one element; of a padded element for sub-byte types
  char kind;                 // typestr kind; 0: no typestr can say this dtype
  std::string_view pep3118;  // native struct code; empty: the buffer protocol cannot say it
  std::int8_t numpy_type;    // NPY_TYPES; -1: not one of NumPy's own
  char arrow = 0;            // Arrow's format of such elements side by side; 0: none (its bool is packed to bits)

  // Rows are compared by what they are rows of: t.dtype() == dtype_of_v<float>.
  friend constexpr bool operator==(const DTypeInfo& a, const DTypeInfo& b) noexcept { return a.id == b.id; }
  friend constexpr bool operator==(const DTypeInfo& a, DType b) noexcept { return a.id == b; }
};

inline constexpr std::array<DTypeInfo, 28> kDTypes{{
    {DType::kBool, "bool", kDLBool, 8, 1, 1, 'b', "?", 0},
    {DType::kInt8, "int8", kDLInt, 8, 1, 1, 'i', "b", 1, 'c'},
    {DType::kInt16, "int16", kDLInt, 16, 1, 2, 'i', "h", 3, 's'},
    {DType::kInt32, "int32", kDLInt, 32, 1, 4, 'i', "i", 5, 'i'},
    {DType::kInt64, "int64", kDLInt, 64, 1, 8, 'i', sizeof(long) == 8 ? "l" : "q", sizeof(long) == 8 ? 7 : 9, 'l'},
    {DType::kUInt8, "uint8", kDLUInt, 8, 1, 1, 'u', "B", 2, 'C'},
    {DType::kUInt16, "uint16", kDLUInt, 16, 1, 2, 'u', "H", 4, 'S'},
    {DType::kUInt32, "uint32", kDLUInt, 32, 1, 4, 'u', "I", 6, 'I'},
    {DType::kUInt64, "uint64", kDLUInt, 64, 1, 8, 'u', sizeof(long) == 8 ? "L" : "Q", sizeof(long) == 8 ? 8 : 10, 'L'},
    {DType::kFloat16, "float16", kDLFloat, 16, 1, 2, 'f', "e", 23, 'e'},
    {DType::kBFloat16, "bfloat16", kDLBfloat, 16, 1, 2, 0, "", -1},
    {DType::kFloat32, "float32", kDLFloat, 32, 1, 4, 'f', "f", 11, 'f'},
    {DType::kFloat64, "float64", kDLFloat, 64, 1, 8, 'f', "d", 12, 'g'},
    {DType::kComplex32, "complex32", kDLComplex, 32, 1, 4, 0, "Ze", -1},
    {DType::kComplex64, "complex64", kDLComplex, 64, 1, 8, 'c', "Zf", 14},
    {DType::kComplex128, "complex128", kDLComplex, 128, 1, 16, 'c', "Zd", 15},
    {DType::kFloat8E3M4, "float8_e3m4", kDLFloat8_e3m4, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E4M3, "float8_e4m3", kDLFloat8_e4m3, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E4M3FN, "float8_e4m3fn", kDLFloat8_e4m3fn, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E5M2, "float8_e5m2", kDLFloat8_e5m2, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, 1, 1, 0, "", -1},
    {DType::kFloat8E8M0FNU, "float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1, 1, 0, "", -1},
    {DType::kFloat6E2M3FN, "float6_e2m3fn", kDLFloat6_e2m3fn, 6, 1, 1, 0, "", -1},
    {DType::kFloat6E3M2FN, "float6_e3m2fn", kDLFloat6_e3m2fn, 6, 1, 1, 0, "", -1},
    {DType::kFloat4E2M1FN, "float4_e2m1fn", kDLFloat4_e2m1fn, 4, 1, 1, 0, "", -1},
    // PyTorch's float4: one byte holds two lanes, so it is an ordinary one-byte element.
    {DType::kFloat4E2M1FNx2, "float4_e2m1fn_x2", kDLFloat4_e2m1fn, 4, 2, 1, 0, "", -1},
}};

constexpr const DTypeInfo& info(DType id) noexcept { return kDTypes[static_cast<std::size_t>(id)]; }
constexpr DLDataType to_dl(DType id) noexcept { return {info(id).code, info(id).bits, info(id).lanes}; }

namespace detail {
inline constexpr std::size_t kCodes = 18;  // codes of DLPack 1.3; the next one is unknown here, and says so
inline constexpr std::size_t kMaxBits = 128;
inline constexpr std::uint8_t kNoDType = 0xff;

struct CodeBitsTable {
  std::uint8_t slot[kCodes][kMaxBits + 1];
};

consteval CodeBitsTable make_code_bits_table() {
  CodeBitsTable table{};
  for (auto& row : table.slot)
    for (auto& slot : row) slot = kNoDType;
  for (const DTypeInfo& d : kDTypes)
    if (d.lanes == 1) table.slot[d.code][d.bits] = static_cast<std::uint8_t>(d.id);
  return table;
}
inline constexpr CodeBitsTable kByCodeBits = make_code_bits_table();

consteval std::array<std::uint8_t, 24> make_numpy_table() {
  std::array<std::uint8_t, 24> table{};
  for (auto& slot : table) slot = kNoDType;
  for (const DTypeInfo& d : kDTypes)
    if (d.numpy_type >= 0) table[static_cast<std::size_t>(d.numpy_type)] = static_cast<std::uint8_t>(d.id);
  // NPY_LONG and NPY_LONGLONG are two types of one width on LP64: the table row names one, both must map.
  const std::size_t other = sizeof(long) == 8 ? 9 : 7;
  const std::size_t width32 = sizeof(long) == 8 ? 0 : 1;
  table[other] = static_cast<std::uint8_t>(width32 ? DType::kInt32 : DType::kInt64);
  table[other + 1] = static_cast<std::uint8_t>(width32 ? DType::kUInt32 : DType::kUInt64);
  return table;
}
inline constexpr std::array<std::uint8_t, 24> kByNumpyType = make_numpy_table();
}  // namespace detail

// The table's row for a DLPack type; nullptr where the table has none (unknown code, lanes, or width).
constexpr const DTypeInfo* find_dtype(DLDataType t) noexcept {
  if (t.code >= detail::kCodes || t.bits > detail::kMaxBits) [[unlikely]]
    return nullptr;
  if (t.lanes != 1) [[unlikely]] {
    const DTypeInfo& pair = info(DType::kFloat4E2M1FNx2);
    return t.code == pair.code && t.bits == pair.bits && t.lanes == pair.lanes ? &pair : nullptr;
  }
  const std::uint8_t slot = detail::kByCodeBits.slot[t.code][t.bits];
  return slot == detail::kNoDType ? nullptr : &kDTypes[slot];
}

constexpr const DTypeInfo* find_dtype_by_numpy_type(int type_num) noexcept {
  if (type_num < 0 || type_num >= static_cast<int>(detail::kByNumpyType.size())) return nullptr;
  const std::uint8_t slot = detail::kByNumpyType[static_cast<std::size_t>(type_num)];
  return slot == detail::kNoDType ? nullptr : &kDTypes[slot];
}

constexpr const DTypeInfo* find_dtype_by_name(std::string_view name) noexcept {
  for (const DTypeInfo& d : kDTypes)
    if (d.name == name) return &d;
  return nullptr;
}

constexpr const DTypeInfo* find_dtype_by_typestr(char kind, std::size_t itemsize) noexcept {
  for (const DTypeInfo& d : kDTypes)
    if (d.kind == kind && d.kind != 0 && d.itemsize == itemsize) return &d;
  return nullptr;
}

constexpr bool same_dtype(DLDataType a, DLDataType b) noexcept {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// By Arrow's one-letter format of fixed-width numbers.
constexpr const DTypeInfo* find_dtype_by_arrow(char format) noexcept {
  for (const DTypeInfo& d : kDTypes)
    if (d.arrow == format && format != 0) return &d;
  return nullptr;
}

constexpr bool is_subbyte(DLDataType t) noexcept { return t.bits * t.lanes < 8; }

// Bytes from one element to the next; for a packed sub-byte type this is the padded width, see storage_bytes().
constexpr std::int64_t itemsize_bytes(DLDataType t) noexcept { return (t.bits * t.lanes + 7) / 8; }

// A name for any DLPack type, also one that the table does not have: for messages.
inline std::string dtype_name(DLDataType t) {
  if (const DTypeInfo* d = find_dtype(t)) return std::string(d->name);
  return "DLDataType(code=" + std::to_string(t.code) + ", bits=" + std::to_string(t.bits) +
         ", lanes=" + std::to_string(t.lanes) + ")";
}

// C++ type -> table row. Specialise for a number type of your own; float16 and bfloat16 are in half.h.
template <class T>
struct dtype_of;
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, long double> && sizeof(T) <= 8)
struct dtype_of<T> {
  static constexpr std::uint8_t code = std::is_same_v<T, bool>       ? kDLBool
                                       : std::is_floating_point_v<T> ? kDLFloat
                                       : std::is_signed_v<T>         ? kDLInt
                                                                     : kDLUInt;
  static constexpr DType value = find_dtype({code, sizeof(T) * 8, 1})->id;
};
template <>
struct dtype_of<std::byte> {
  static constexpr DType value = DType::kUInt8;
};
// The compiler's own, which std::float16_t and std::bfloat16_t are where there are such.
#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__) && (defined(__clang__) || __GNUC__ > 12 || defined(__x86_64__))
template <>
struct dtype_of<_Float16> {
  static constexpr DType value = DType::kFloat16;
};
#endif
#if (defined(__STDCPP_BFLOAT16_T__) || defined(__BFLT16_MANT_DIG__)) && !defined(__CUDACC__)
template <>
struct dtype_of<__bf16> {
  static constexpr DType value = DType::kBFloat16;
};
#endif
// std::complex, and those of CCCL, Thrust, Kokkos and torch, by what they have in common: <complex> costs every user of
// this header 0.1 s, and the others are not to be seen from here.
template <class T>
concept ComplexLike =
    requires(const T& x) {
      typename T::value_type;
      { x.real() };
      { x.imag() };
    } && std::is_floating_point_v<typename T::value_type> && sizeof(T) == 2 * sizeof(typename T::value_type) &&
    sizeof(T) <= 16;
template <ComplexLike T>
struct dtype_of<T> {
  static constexpr DType value = find_dtype({kDLComplex, sizeof(T) * 8, 1})->id;
};

namespace detail {
// One message for a type without a dtype: what it is mistaken for, and what to say instead. A struct, because compilers
// go on after its first error, and behind that of a function say more of what follows from it.
template <class T>
struct element_dtype {
  static constexpr bool kNumber = std::is_arithmetic_v<T>;
  static_assert(!std::is_reference_v<T>, "no dtype is known for this element type, a reference. Leave out the &");
  static_assert(!std::is_pointer_v<T>, "no dtype is known for this element type, a pointer. Name what it points to: "
                                       "float, not float*");
  static_assert(!std::is_array_v<T>, "no dtype is known for this element type, an array. Name its elements, and give "
                                     "the tensor an axis more: shape<dyn, 3> of float, not shape<dyn> of float[3]");
  static_assert(!std::is_enum_v<T>, "no dtype is known for this element type, an enum. Say std::underlying_type_t<E>, "
                                    "or specialise dlbridge::dtype_of<E>");
  static_assert(!kNumber, "no dtype is known for this element type, a number of more than 64 bits, which frameworks do "
                          "not exchange. Convert to double or std::int64_t");
  static_assert(std::is_reference_v<T> || std::is_pointer_v<T> || std::is_array_v<T> || std::is_enum_v<T> || kNumber,
                "no dtype is known for this element type. For raw bytes say std::byte; for a number type of your own "
                "specialise dlbridge::dtype_of<T>");
  static constexpr DType value = DType::kUInt8;
};
template <class T>
  requires requires { dtype_of<T>::value; }
struct element_dtype<T> : dtype_of<T> {};
}  // namespace detail
template <class T>
inline constexpr DType dtype_of_v = detail::element_dtype<std::remove_cv_t<T>>::value;

namespace detail {
consteval bool table_is_consistent() {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    const DTypeInfo& d = kDTypes[i];
    if (static_cast<std::size_t>(d.id) != i) return false;
    if (find_dtype(to_dl(d.id)) != &d) return false;
    if (find_dtype_by_name(d.name) != &d) return false;
    if (d.itemsize != itemsize_bytes(to_dl(d.id))) return false;
    if (d.kind != 0 && find_dtype_by_typestr(d.kind, d.itemsize) != &d) return false;
    if (d.numpy_type >= 0 && find_dtype_by_numpy_type(d.numpy_type) != &d) return false;
    if (d.arrow != 0 && find_dtype_by_arrow(d.arrow) != &d) return false;
  }
  return true;
}
static_assert(table_is_consistent(), "each row must be found again through every mapping it takes part in");
static_assert(dtype_of_v<float> == DType::kFloat32 && dtype_of_v<const long long> == DType::kInt64);
static_assert(dtype_of_v<bool> == DType::kBool && dtype_of_v<unsigned char> == DType::kUInt8);
}  // namespace detail

}  // namespace dlbridge
