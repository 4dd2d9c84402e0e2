// How an array's dims lie in memory: contiguity, dense strides, and the order of axes that arrays have in common. What
// of several operands' dims is one is dlbridge/dims.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dlbridge/dims.h"
#include "dlbridge/errors.h"
#include "dlbridge/layout.h"
#include "dlbridge/tensor.h"

namespace dlbridge::nd {

using Dims = std::span<const std::int64_t>;

inline Dims shape_of(const Tensor& t) noexcept { return {t.dl.shape, static_cast<std::size_t>(t.dl.ndim)}; }

enum class Order : std::uint8_t { kC, kF };
enum class CopyOrder : std::uint8_t { kC, kF, kKeep };  // kKeep: as the source lies

inline bool is_c_contiguous(const Tensor& t) noexcept { return dlbridge::is_c_contiguous(t.dl); }
inline bool is_f_contiguous(const Tensor& t) noexcept { return dlbridge::is_f_contiguous(t.dl); }
// No gaps between the elements, walked by `axes` from the innermost on.
bool is_dense(const Tensor& t, std::span<const std::int8_t> axes) noexcept;
// NumPy's order 'A'.
inline Order order_of(const Tensor& t) noexcept {
  return is_f_contiguous(t) && !is_c_contiguous(t) ? Order::kF : Order::kC;
}

// The strides of an array without gaps, in multiples of `unit`; axis_at(0) is the innermost axis.
template <class AxisAt>
void dense_strides(Dims shape, std::int64_t unit, std::int64_t* strides, AxisAt axis_at) noexcept {
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const auto axis = static_cast<std::size_t>(axis_at(k));
    strides[axis] = unit;
    if (shape[axis] > 1) unit *= shape[axis];
  }
}
inline void dense_strides(Dims shape, std::int64_t unit, std::int64_t* strides, Order order) noexcept {
  const std::size_t last = shape.size() - 1;
  if (order == Order::kC) dense_strides(shape, unit, strides, [last](std::size_t k) { return last - k; });
  else dense_strides(shape, unit, strides, [](std::size_t k) { return k; });
}

// The stride along an axis of the `ndim` that `t` is broadcast to; 0 where an element is repeated.
inline std::int64_t broadcast_stride(const Tensor& t, int axis, int ndim) noexcept {
  const int own = axis - (ndim - t.dl.ndim);
  return own < 0 || t.dl.shape[own] == 1 ? 0 : t.dl.strides[own];
}

// Shape that `inputs` (null: a scalar) broadcast to.
Status broadcast_shapes(std::span<const Tensor* const> inputs, std::int64_t (&shape)[kMaxDims], int& ndim);
Status broadcast_shapes(std::span<const Dims> shapes, std::int64_t (&shape)[kMaxDims], int& ndim);

// Which axis lies innermost, second, … in memory, as the inputs have them (NumPy's order 'K'): the layout of a new
// output. C order where the inputs disagree. Returns true where that is plain C order.
bool memory_order(std::span<const Tensor* const> inputs, Dims shape, std::int8_t (&axes)[kMaxDims]);

// The same for copies of `parts`, of the result's rank or less: an axis that repeats elements lies innermost there.
bool copied_order(std::span<const Tensor* const> parts, Dims shape, std::int8_t (&axes)[kMaxDims]);

// "(2, 3)", for messages.
std::string shape_text(Dims shape);

}  // namespace dlbridge::nd
