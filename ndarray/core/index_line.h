// Keys that are one vector of int64 positions in a vector of the host, or a mask for all elements, as most keys with an
// array are: their kernel is called at once. And how the kernels of all keys with arrays are called.
#pragma once

#include <span>

#include "ndarray/core/indexing.h"
#include "ndarray/kernels/api.h"

namespace dlbridge::nd {

// Calls the kernel; `used`: what it reads and writes.
Status run_index(IndexArgs& args, DLDevice device, std::span<const Tensor* const> used, bool scatter);

// The positions, which are some, of such a key; null for any other.
const Tensor* line_of_positions(const Tensor& x, std::span<const IndexItem> items) noexcept;
Status gather_line(const Tensor& x, const Tensor& index, Tensor& out, Bounds bounds);

// The mask for all elements of x that a key is; null for any other. And whether x, dense or a vector, lies on the host
// beside it, as the functions below need it.
const Tensor* mask_of_all(const Tensor& x, std::span<const IndexItem> items) noexcept;
bool has_line(const Tensor& x, const Tensor& mask) noexcept;
// The elements where it is true.
Status gather_true(const Tensor& x, const Tensor& mask, Tensor& out);
// In `done` whether it served: a vector of as many such elements, or one of them, beside x.
Status assign_true(const Tensor& x, const Tensor& mask, const Input& value, bool& done);

// In `done` whether it served: a number, a vector of such elements, or one of them, beside x.
Status assign_line(const Tensor& x, const Tensor& index, const Input& value, Bounds bounds, bool& done);

}  // namespace dlbridge::nd
