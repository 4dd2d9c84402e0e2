// Which elements a key names, up to its arrays.
#pragma once

#include <array>

#include "ndarray/core/indexing.h"

namespace dlbridge::nd {

// A key applied to an array up to its arrays: a view's dims, and between them the places of the arrays.
struct Selection {
  std::int64_t shape[kMaxDims], strides[kMaxDims];  // of the basic part, elements
  std::size_t ndim = 0;
  std::int64_t offset = 0;
  std::size_t array_place = 0;  // where in the result the index dims go
  bool any_array = false;
  bool array_group_open = false, arrays_apart = false;
  struct Array {
    const Tensor* index;
    int axis;  // first axis of x that it indexes
  };
  std::array<Array, kMaxIndexArrays> arrays;
  std::size_t array_count = 0;

  void note_array_like() {  // an array, or an integer beside arrays: adjacent ones are replaced in place
    if (!array_group_open && any_array) arrays_apart = true;
    if (!any_array) array_place = ndim;
    any_array = array_group_open = true;
  }
  Status add_dim(std::int64_t extent, std::int64_t stride) {
    if (ndim == static_cast<std::size_t>(kMaxDims)) return index_error("the result would have more than 64 dimensions");
    shape[ndim] = extent;
    strides[ndim++] = stride;
    return {};
  }
};

// IndexError where the key does not fit the array.
Status select(const Tensor& x, std::span<const IndexItem> items, Selection& s);

}  // namespace dlbridge::nd
