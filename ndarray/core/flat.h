// Elements of arrays of the host by one number in C order, whatever the layout.
#pragma once

#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

// How many bytes behind the first the element at a place lies, of the `size` that there are.
std::int64_t flat_offset(const Tensor& x, std::int64_t place) noexcept;

// Places that there are: `count` from `first` on, each `step` further, or those of a dense int64 array of the host.
struct FlatPlaces {
  std::int64_t first = 0, step = 1, count = 0;
  Tensor listed;  // empty: there is no such array
};
// The places that an array of integers names, negative ones from the end; in `found` whether all of them exist.
Status list_places(const Tensor& positions, std::int64_t size, FlatPlaces& out, bool& found);

// Writes values, of which there is one at least, to places of a writable array: they begin again behind the last one.
Status write_flat(const Tensor& x, const FlatPlaces& places, const Input& values);

}  // namespace dlbridge::nd
