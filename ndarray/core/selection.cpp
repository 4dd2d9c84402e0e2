#include "ndarray/core/selection.h"

#include <algorithm>
#include <string>

namespace dlbridge::nd {

namespace {

std::int64_t clamp_bound(std::int64_t value, std::int64_t extent, std::int64_t low, std::int64_t high) noexcept {
  if (value < 0) value += extent;
  return std::clamp(value, low, high);
}

// Python's rules for slices: the first index and the number of steps.
std::int64_t resolve_slice(const IndexItem& item, std::int64_t extent, std::int64_t& first) noexcept {
  const std::int64_t step = item.step;
  if (step > 0) {
    first = item.has_start ? clamp_bound(item.start, extent, 0, extent) : 0;
    const std::int64_t stop = item.has_stop ? clamp_bound(item.stop, extent, 0, extent) : extent;
    return stop > first ? (stop - first - 1) / step + 1 : 0;
  }
  first = item.has_start ? clamp_bound(item.start, extent, -1, extent - 1) : extent - 1;
  const std::int64_t stop = item.has_stop ? clamp_bound(item.stop, extent, -1, extent - 1) : -1;
  return first > stop ? (first - stop - 1) / -step + 1 : 0;
}

std::int64_t axes_taken(const IndexItem& item) noexcept {
  switch (item.kind) {
    case IndexItem::Kind::kInteger:
    case IndexItem::Kind::kSlice: return 1;
    case IndexItem::Kind::kArray: return is_bool(dtype_of(*item.array)) ? item.array->dl.ndim : 1;
    default: return 0;
  }
}

Status take_integer(const Tensor& x, const IndexItem& item, int axis, Selection& s) {
  const std::int64_t extent = x.dl.shape[axis];
  const std::int64_t i = item.start < 0 ? item.start + extent : item.start;
  if (i < 0 || i >= extent) [[unlikely]]
    return index_error("index " + std::to_string(item.start) + " is out of bounds for axis " + std::to_string(axis) +
                       " with size " + std::to_string(extent));
  s.offset += i * x.dl.strides[axis];
  return {};
}

Status take_array(const Tensor& x, const IndexItem& item, int axis, Selection& s) {
  if (s.array_count == s.arrays.size()) return index_error("more than 16 index arrays");
  const Tensor& index = *item.array;
  if (!is_bool(dtype_of(index)) && !is_integer(dtype_of(index)))
    return index_error("arrays used as indices must be of integer or bool dtype, got " +
                       std::string(index.dtype().name) + ". Convert with astype('int64')");
  if (is_bool(dtype_of(index)))
    for (int k = 0; k < index.dl.ndim; ++k)
      if (index.dl.shape[k] != x.dl.shape[axis + k] && index.dl.shape[k] != 0)  // the Array API lets 0 stand for none
        return index_error("the bool index has shape " + shape_text(shape_of(index)) + ", the axes it selects from " +
                           shape_text({x.dl.shape + axis, static_cast<std::size_t>(index.dl.ndim)}));
  s.note_array_like();
  s.arrays[s.array_count++] = {&index, axis};
  return {};
}

}  // namespace

Status select(const Tensor& x, std::span<const IndexItem> items, Selection& s) {
  std::int64_t taken = 0;
  bool ellipsis = false, advanced = false;
  for (const IndexItem& item : items) {
    taken += axes_taken(item);
    advanced |= item.kind == IndexItem::Kind::kArray;
    if (item.kind != IndexItem::Kind::kEllipsis) continue;
    if (ellipsis) return index_error("an index can only have a single ellipsis ('...')");
    ellipsis = true;
  }
  if (taken > x.dl.ndim)
    return index_error("too many indices: the array has " + std::to_string(x.dl.ndim) + " dimensions, but " +
                       std::to_string(taken) + " were indexed");
  int axis = 0;
  const auto pass = [&](int count) {
    Status status;
    for (; count > 0 && status.ok(); --count, ++axis) status = s.add_dim(x.dl.shape[axis], x.dl.strides[axis]);
    return status;
  };
  for (const IndexItem& item : items) {
    using Kind = IndexItem::Kind;
    if (item.kind != Kind::kArray && !(item.kind == Kind::kInteger && advanced)) s.array_group_open = false;
    switch (item.kind) {
      case Kind::kNewAxis: DLBRIDGE_TRY(s.add_dim(1, 0)); break;
      case Kind::kEllipsis: DLBRIDGE_TRY(pass(x.dl.ndim - static_cast<int>(taken))); break;
      case Kind::kSlice: {
        std::int64_t first = 0;
        const std::int64_t count = resolve_slice(item, x.dl.shape[axis], first);
        if (count > 0) s.offset += first * x.dl.strides[axis];
        DLBRIDGE_TRY(s.add_dim(count, x.dl.strides[axis] * (count > 1 ? item.step : 1)));
        ++axis;
        break;
      }
      case Kind::kInteger:
        if (advanced) s.note_array_like();
        DLBRIDGE_TRY(take_integer(x, item, axis++, s));
        break;
      case Kind::kArray:
        DLBRIDGE_TRY(take_array(x, item, axis, s));
        axis += static_cast<int>(axes_taken(item));
        break;
    }
  }
  DLBRIDGE_TRY(pass(x.dl.ndim - axis));
  if (s.arrays_apart) s.array_place = 0;
  return {};
}

}  // namespace dlbridge::nd
