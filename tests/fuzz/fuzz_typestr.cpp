// The typestr parser: any bytes are a typestr; what is accepted is a row of the table that prints to the same row.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/common/typestr.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An exact allocation, with no terminator: reading one byte too far is seen.
  const std::vector<char> text(data, data + size);
  const std::string_view typestr(text.data(), text.size());

  const dlbridge::DTypeInfo* dtype = nullptr;
  const dlbridge::Status status = dlbridge::parse_typestr(typestr, dtype);
  if (!status.ok()) {
    DLBRIDGE_CHECK(dtype == nullptr);
    DLBRIDGE_CHECK(!status.message().empty());
    return 0;
  }
  DLBRIDGE_CHECK(dtype == &dlbridge::info(dtype->id));
  DLBRIDGE_CHECK(dtype->kind == typestr[1]);
  const dlbridge::DTypeInfo* again = nullptr;
  DLBRIDGE_CHECK(dlbridge::parse_typestr(dlbridge::format_typestr(*dtype), again).ok());
  DLBRIDGE_CHECK(again == dtype);
  return 0;
}
