// typestr of the array interface (and of the CUDA Array Interface) <-> the dtype table. Pure C++: no Python.
#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "dlbridge/dtype.h"
#include "dlbridge/errors.h"
#include "protocols/common/byte_order.h"

namespace dlbridge {

inline constexpr bool kLittleEndian = std::endian::native == std::endian::little;

namespace detail {
inline Status refuse_typestr(std::string_view typestr, const std::string& why, const char* remedy) {
  return refused("typestr '" + std::string(typestr) + "' " + why + ". " + remedy);
}
}  // namespace detail

// Reads '<f4', '|u1', '=i8' … : byte order, kind, bytes; one-byte items have no order. The other byte order is
// refused, or said in *swapped where the caller can swap bytes.
inline Status parse_typestr(std::string_view typestr, const DTypeInfo*& out, bool* swapped = nullptr) {
  if (typestr.size() < 3 || std::string_view("<>|=").find(typestr[0]) == std::string_view::npos)
    return malformed(
        "typestr '" + std::string(typestr) +
        "' is not <, >, | or = followed by a kind and a number of bytes. This must be fixed in the producer");
  const char kind = typestr[1];
  std::size_t itemsize = 0;
  const char* first = typestr.data() + 2;
  const char* last = typestr.data() + typestr.size();
  const auto [end, error] = std::from_chars(first, last, itemsize);
  // datetimes carry a unit: '<M8[ns]'
  const bool has_unit = (kind == 'M' || kind == 'm') && end != last && *end == '[';
  if (error != std::errc{} || (end != last && !has_unit))
    return malformed("typestr '" + std::string(typestr) +
                     "' has no whole number of bytes. This must be fixed in the producer");
  if (std::string_view("tbiufcmMOSUV").find(kind) == std::string_view::npos)
    return malformed("typestr '" + std::string(typestr) + "' has the kind '" + kind +
                     "', not one of tbiufcmMOSUV. This must be fixed in the producer");
  const bool other_order = typestr[0] == (kLittleEndian ? '>' : '<') && itemsize > 1;
  if (other_order && swapped == nullptr)
    return detail::refuse_typestr(typestr, "is in the opposite byte order; DLPack needs the native one", kSwapRemedy);
  if (kind == 'V')
    return detail::refuse_typestr(typestr, "is raw or structured data; it names no number",
                                  "View one field, pass the dtype by DLPack (bfloat16 and float8), or view as uint8");
  out = find_dtype_by_typestr(kind, itemsize);
  if (out == nullptr)
    return detail::refuse_typestr(typestr,
                                  "has no dtype that DLPack can carry (bits, datetimes, objects, strings and "
                                  "long doubles have none)",
                                  "Convert to a plain number type first");
  if (other_order) *swapped = true;
  return {};
}

// The typestr of a dtype; empty where the array interface cannot say it.
inline std::string format_typestr(const DTypeInfo& dtype) {
  if (dtype.kind == 0) return {};
  const char order = dtype.itemsize == 1 ? '|' : kLittleEndian ? '<' : '>';
  return std::string{order, dtype.kind} + std::to_string(dtype.itemsize);
}

}  // namespace dlbridge
