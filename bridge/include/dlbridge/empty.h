// New tensors to write a result into.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "dlbridge/dtype.h"
#include "dlbridge/exception.h"
#include "dlbridge/host_copy.h"
#include "dlbridge/tensor.h"

namespace dlbridge {

// Uninitialised host memory, dense in C order, aligned for any use. Throws Error or std::bad_alloc.
template <class T>
Tensor empty(std::span<const std::int64_t> extents) {
  Tensor out;
  throw_if_failed("empty", detail::allocate_new(to_dl(dtype_of_v<T>), static_cast<std::int32_t>(extents.size()),
                                                extents.data(), kFlagCopied, out));
  return out;
}
template <class T>
Tensor empty(std::initializer_list<std::int64_t> extents) {
  return empty<T>(std::span(extents.begin(), extents.size()));
}

}  // namespace dlbridge
