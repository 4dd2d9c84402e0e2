// Views: the same storage by other shapes and strides; and reshapes, which copy where no view can be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ndarray/core/array.h"

namespace dlbridge::nd {

// The elements of a storage that lie by these strides, the first at byte `offset`; strides in bytes. Numbers from
// anywhere: refuses what leaves the memory, and what no kernel can load.
Status make_strided(Storage& storage, std::int64_t offset, DType dtype, Dims shape, Dims stride_bytes, Tensor& out);
// A view with another shape; false in `viewed` where the strides do not allow one. -1 must have been replaced.
Status reshape_view(const Tensor& source, Dims shape, Order order, Tensor& out, bool& viewed);
Status transpose_view(const Tensor& source, std::span<const std::int8_t> axes, Tensor& out);
// Without the leading axes of extent 1 that are more than `ndim`; `array` points to `shorter` where there were any.
Status drop_leading_ones(const Tensor*& array, int ndim, Tensor& shorter);
// Broadcast to a shape; read-only where an axis was repeated.
Status broadcast_view(const Tensor& source, Dims shape, Tensor& out);
// The elements of x's storage that lie by these strides (bytes), the first `offset` bytes behind x's first. Read-only
// where x is.
Status strided_view(const Tensor& x, std::int64_t offset, DType dtype, Dims shape, Dims stride_bytes, Tensor& out);
// A dense array over a storage, from byte `offset` on.
Status make_dense_at(Storage& storage, std::int64_t offset, DType dtype, Dims shape, Order order, Tensor& out);
// The axes in another order, one place each; negative ones count from the end. Any numbers: refuses no permutation.
Status permute(const Tensor& source, Dims axes, Tensor& out);
Status reverse_axes(const Tensor& source, Tensor& out);
// Without those axes of the mask that have extent 1; refuses others where `all` is set.
Status squeeze(const Tensor& source, std::uint64_t axes, bool all, Tensor& out);
// The diagonals of the planes of two axes, last; offset > 0 lies above the main one.
Status diagonal(const Tensor& source, std::int64_t offset, int axis1, int axis2, Tensor& out);
// The real or the imaginary parts of complex numbers.
Status part_view(const Tensor& source, bool imaginary, Tensor& out);
// The bytes as another dtype; the last axis must be dense where the itemsize changes.
Status view_as(const Tensor& source, DType dtype, Tensor& out);

// Another shape, in which the one -1 is replaced: a view where the strides allow one, else a copy. copy: true makes one
// in any case, false never.
Status reshape(const Tensor& source, std::span<std::int64_t> shape, Order order, std::optional<bool> copy, Tensor& out);
// The first elements of a new vector, of which the others are not needed: few must not keep the room for all.
Status keep_first(Tensor& all, std::int64_t count);
// Its elements in C order, one step apart: a view where the strides allow one, a dense copy else.
Status in_steps(const Tensor& x, Tensor& row);
// One dense axis: a view where that is one and no copy is asked for.
Status flatten(const Tensor& source, CopyOrder order, bool copy, Tensor& out);

}  // namespace dlbridge::nd
