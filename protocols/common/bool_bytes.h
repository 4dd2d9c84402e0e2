// Bool data of foreign objects: one byte an element, and only 0 and 1 are values. Pillow's mode "1" holds 255.
#pragma once

#include "dlbridge/layout.h"
#include "dlbridge/validate.h"

namespace dlbridge::py {

namespace detail {
inline bool rows_are_bool(const unsigned char* data, const DLTensor& t, std::int32_t axis) noexcept {
  if (axis == t.ndim) return *data <= 1;
  const std::int64_t extent = t.shape[axis];
  const std::int64_t stride = t.strides[axis];
  if (axis == t.ndim - 1) {
    unsigned char seen = 0;
    for (std::int64_t i = 0; i < extent; ++i) seen = static_cast<unsigned char>(seen | data[i * stride]);
    return seen <= 1;
  }
  for (std::int64_t i = 0; i < extent; ++i)
    if (!rows_are_bool(data + i * stride, t, axis + 1)) return false;
  return true;
}
}  // namespace detail

// A refusal that copy=True lifts: the copy is normalised to 0 and 1.
inline constexpr const char kBadBoolText[] =
    "the dtype is bool and the data holds bytes other than 0 and 1, which consumers may misread. Use copy=True "
    "to normalise it, or view it as uint8";

inline bool has_bool_bytes(const Tensor& tensor) noexcept {
  return tensor.size == 0 || detail::rows_are_bool(static_cast<const unsigned char*>(tensor.dl.data), tensor.dl, 0);
}

// For a dense copy of dlbridge's own.
inline void normalise_bool_bytes(Tensor& dense) noexcept {
  auto* bytes = static_cast<unsigned char*>(dense.dl.data);
  for (std::int64_t i = 0; i < dense.size; ++i) bytes[i] = bytes[i] != 0;
}

inline Status check_bool_bytes(const Tensor& tensor) {
  return has_bool_bytes(tensor) ? Status() : refused(kBadBoolText);
}

}  // namespace dlbridge::py
