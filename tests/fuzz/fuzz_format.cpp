// The PEP 3118 parser: any bytes are a format; what is accepted is a row of the table with the buffer's itemsize.
#include <cstddef>
#include <cstdint>
#include <string>

#include "protocols/buffer/format.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto itemsize = static_cast<std::int8_t>(data[0]);
  const std::string format(reinterpret_cast<const char*>(data) + 1, size - 1);
  const char* text = data[0] == 0x7f ? nullptr : format.c_str();

  const dlbridge::DTypeInfo* dtype = nullptr;
  const dlbridge::Status status = dlbridge::buffer::parse_format(text, itemsize, dtype);
  if (!status.ok()) {
    DLBRIDGE_CHECK(dtype == nullptr);
    DLBRIDGE_CHECK(status.code() == dlbridge::ErrorCode::kRefused);
    DLBRIDGE_CHECK(!status.message().empty());
    return 0;
  }
  DLBRIDGE_CHECK(dtype == &dlbridge::info(dtype->id));
  DLBRIDGE_CHECK(dtype->itemsize == itemsize);
  DLBRIDGE_CHECK(!dtype->pep3118.empty());
  const dlbridge::DTypeInfo* again = nullptr;
  DLBRIDGE_CHECK(dlbridge::buffer::parse_format(std::string(dtype->pep3118).c_str(), itemsize, again).ok());
  DLBRIDGE_CHECK(again == dtype);
  return 0;
}
