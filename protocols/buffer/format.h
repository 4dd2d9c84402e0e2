// PEP 3118 format strings <-> the dtype table. Pure C++: no Python, fuzzed by tests/fuzz/fuzz_format.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#include "dlbridge/dtype.h"
#include "dlbridge/errors.h"
#include "protocols/common/byte_order.h"

namespace dlbridge::buffer {

namespace detail {

struct Code {
  char code;
  char kind;                  // b bool, i int, u uint, f float, c complex
  std::size_t native_size;    // in the modes '@' and '^'
  std::size_t standard_size;  // in '=', '<', '>', '!'; 0: the code is native only
};

// `c` is a char: uint8 by explicit choice, as memoryview and NumPy cannot agree on anything else.
inline constexpr Code kCodes[] = {
    {'?', 'b', sizeof(bool), 1},
    {'b', 'i', 1, 1},
    {'B', 'u', 1, 1},
    {'c', 'u', 1, 1},
    {'h', 'i', sizeof(short), 2},
    {'H', 'u', sizeof(short), 2},
    {'i', 'i', sizeof(int), 4},
    {'I', 'u', sizeof(int), 4},
    {'l', 'i', sizeof(long), 4},
    {'L', 'u', sizeof(long), 4},
    {'q', 'i', sizeof(long long), 8},
    {'Q', 'u', sizeof(long long), 8},
    {'n', 'i', sizeof(std::size_t), 0},
    {'N', 'u', sizeof(std::size_t), 0},
    {'e', 'f', 2, 2},
    {'f', 'f', 4, 4},
    {'d', 'f', 8, 8},
};

inline const DTypeInfo* by_kind(char kind, std::size_t size) noexcept {
  if (kind == 'c' && size == 4) return &info(DType::kComplex32);  // Ze: no typestr says it, PEP 3118 does
  return find_dtype_by_typestr(kind, size);
}

inline Status refuse_format(std::string_view format, const char* why, const char* remedy) {
  return refused("buffer format '" + std::string(format) + "' " + why + ". " + remedy);
}
}  // namespace detail

// Reads a buffer's `format` (null: 'B') for elements of `itemsize` bytes. The other byte order is refused, or said in
// *swapped where the caller can swap bytes.
inline Status parse_format(const char* text, std::int64_t itemsize, const DTypeInfo*& out, bool* swapped = nullptr) {
  const std::string_view format = text == nullptr ? std::string_view("B") : std::string_view(text);
  std::string_view rest = format;
  char order = '@';
  if (!rest.empty() && std::string_view("@^=<>!").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  const bool complex = rest.size() == 2 && rest.front() == 'Z';
  if (complex) rest.remove_prefix(1);
  if (rest.size() != 1)
    return detail::refuse_format(format,
                                 "is not one plain number: structured, repeated and empty formats have no dtype",
                                 "View one field, or view the bytes as uint8");
  const bool native = order == '@' || order == '^';
  for (const detail::Code& code : detail::kCodes) {
    if (code.code != rest.front()) continue;
    if (complex && code.kind != 'f') break;
    std::size_t size = native ? code.native_size : code.standard_size;
    if (size == 0) return detail::refuse_format(format, "uses a native-only code in standard mode", "Use '@n' or 'q'");
    const bool little = std::endian::native == std::endian::little;
    const bool other_order = size > 1 && (little ? order == '>' || order == '!' : order == '<');
    if (other_order && swapped == nullptr)
      return detail::refuse_format(format, "is in the opposite byte order; DLPack needs the native one", kSwapRemedy);
    if (complex) size *= 2;
    if (static_cast<std::int64_t>(size) != itemsize)
      return detail::refuse_format(
          format,
          ("has size " + std::to_string(size) + ", the buffer's itemsize is " + std::to_string(itemsize)).c_str(),
          "The exporter contradicts itself");
    out = detail::by_kind(complex ? 'c' : code.kind, size);
    if (out == nullptr) break;
    if (other_order) *swapped = true;
    return {};
  }
  return detail::refuse_format(format,
                               "has no dtype in dlbridge: accepted are ? b B c h H i I l L q Q n N e f d Ze Zf Zd",
                               "Convert to one of these first");
}

}  // namespace dlbridge::buffer
