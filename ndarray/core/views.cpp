#include "ndarray/core/views.h"

#include <algorithm>
#include <string>

#include "dlbridge/validate.h"
#include "ndarray/core/elementwise.h"

namespace dlbridge::nd {

Status make_strided(Storage& storage, std::int64_t offset, DType dtype, Dims shape, Dims stride_bytes, Tensor& out) {
  const std::int64_t item = itemsize(dtype);
  std::int64_t size = 0, strides[kMaxDims];
  DLBRIDGE_TRY(count_elements(shape, item, size));
  if (shape.size() != stride_bytes.size())
    return malformed("the shape " + shape_text(shape) + " has " + std::to_string(shape.size()) +
                     " axes, and there are " + std::to_string(stride_bytes.size()) +
                     " strides. Give one, in bytes, for each axis");
  DLBRIDGE_TRY(check_fits_in_memory(static_cast<std::int64_t>(shape.size()), shape.data(), stride_bytes.data(),
                                    StrideUnit::kBytes, item, offset, static_cast<std::int64_t>(storage.bytes),
                                    "Give a smaller shape, or more memory"));
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (size != 0 && shape[k] > 1 && stride_bytes[k] % item != 0)
      return malformed("the strides " + shape_text(stride_bytes) + " are not multiples of the itemsize, " +
                       std::to_string(item) + " bytes. Copy the array first");
    strides[k] = stride_bytes[k] / item;
  }
  Tensor first;
  first.set_dtype(dlbridge::info(dtype));
  first.dl.device = storage.device;
  if (size != 0) first.dl.data = static_cast<char*>(storage.data) + offset;
  DLBRIDGE_TRY(make_view(first, shape, {strides, shape.size()}, 0, out));
  out.owner = share(&storage);
  if (is_cuda(storage.device)) out.ready = Ordering::on_stream_of(&storage.stream);
  if (is_loadable(out)) return {};
  return malformed("the elements would not lie at a multiple of their itemsize, " + std::to_string(item) +
                   " bytes, which a GPU cannot load. Copy the array first");
}

Status strided_view(const Tensor& x, std::int64_t offset, DType dtype, Dims shape, Dims stride_bytes, Tensor& out) {
  Storage& storage = *storage_of(x);
  std::int64_t place = 0;  // an array without elements has no memory that an offset could lead into
  if (x.size != 0 &&
      __builtin_add_overflow(static_cast<char*>(x.dl.data) - static_cast<char*>(storage.data), offset, &place))
    return overflow("the offset of " + std::to_string(offset) + " bytes leaves 63 bits");
  DLBRIDGE_TRY(make_strided(storage, place, dtype, shape, stride_bytes, out));
  out.flags |= x.flags & kFlagReadOnly;
  return {};
}

Status make_dense_at(Storage& storage, std::int64_t offset, DType dtype, Dims shape, Order order, Tensor& out) {
  std::int64_t stride_bytes[kMaxDims], size = 0;
  DLBRIDGE_TRY(count_elements(shape, itemsize(dtype), size));
  dense_strides(shape, itemsize(dtype), stride_bytes, order);
  return make_strided(storage, offset, dtype, shape, {stride_bytes, shape.size()}, out);
}

namespace {
// NumPy's rule for a reshape without a copy: groups of old axes that multiply to groups of new ones must be mergeable.
// Both lists without the axes of extent 1, in C order (F order: reversed by the caller).
bool split_strides(Dims shape, Dims strides, Dims new_shape, std::int64_t* new_strides) {
  std::size_t old_axis = 0, new_axis = 0;
  while (old_axis < shape.size() && new_axis < new_shape.size()) {
    std::size_t old_end = old_axis + 1, new_end = new_axis + 1;
    std::int64_t old_count = shape[old_axis], new_count = new_shape[new_axis];
    while (old_count != new_count) {
      if (old_count < new_count) old_count *= shape[old_end++];
      else new_count *= new_shape[new_end++];
    }
    for (std::size_t k = old_axis; k + 1 < old_end; ++k)
      if (!continues(strides[k], strides[k + 1], shape[k + 1])) return false;
    new_strides[new_end - 1] = strides[old_end - 1];
    for (std::size_t k = new_end - 1; k > new_axis; --k) new_strides[k - 1] = new_strides[k] * new_shape[k];
    old_axis = old_end;
    new_axis = new_end;
  }
  return true;
}
}  // namespace

Status reshape_view(const Tensor& source, Dims shape, Order order, Tensor& out, bool& viewed) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t old_shape[kMaxDims], old_strides[kMaxDims], core_shape[kMaxDims], core_strides[kMaxDims];
  std::int64_t strides[kMaxDims];
  const std::size_t n = shape.size();
  const bool reversed = order == Order::kF;
  std::size_t kept = 0, core = 0;
  for (int k = 0; k < source.dl.ndim; ++k) {
    const int axis = reversed ? source.dl.ndim - 1 - k : k;
    if (source.dl.shape[axis] == 1) continue;
    old_shape[kept] = source.dl.shape[axis];
    old_strides[kept++] = source.dl.strides[axis];
  }
  for (std::size_t k = 0; k < n; ++k)
    if (const std::int64_t extent = shape[reversed ? n - 1 - k : k]; extent != 1) core_shape[core++] = extent;
  viewed = true;
  if (source.size == 0) {
    std::int64_t none = 0;
    DLBRIDGE_TRY(count_elements(shape, source.itemsize(), none));
    dense_strides(shape, 1, strides, Order::kC);
    return make_view(source, shape, {strides, n}, 0, out);
  }
  viewed = split_strides({old_shape, kept}, {old_strides, kept}, {core_shape, core}, core_strides);
  if (!viewed) return {};
  std::int64_t next = 1;  // an axis of extent 1 gets a stride that keeps the array contiguous
  for (std::size_t k = n; k-- > 0;) {
    const std::size_t axis = reversed ? n - 1 - k : k;
    if (shape[axis] != 1) next = core_strides[--core];
    strides[axis] = next;
    next *= shape[axis];
  }
  return make_view(source, shape, {strides, n}, 0, out);
}

Status transpose_view(const Tensor& source, std::span<const std::int8_t> axes, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (std::size_t k = 0; k < axes.size(); ++k) {
    shape[k] = source.dl.shape[axes[k]];
    strides[k] = source.dl.strides[axes[k]];
  }
  return make_view(source, {shape, axes.size()}, {strides, axes.size()}, 0, out);
}

Status drop_leading_ones(const Tensor*& array, int ndim, Tensor& shorter) {
  int drop = 0;
  while (array->dl.ndim - drop > ndim && array->dl.shape[drop] == 1) ++drop;
  if (drop == 0) return {};
  const auto n = static_cast<std::size_t>(array->dl.ndim - drop);
  DLBRIDGE_TRY(make_view(*array, {array->dl.shape + drop, n}, {array->dl.strides + drop, n}, 0, shorter));
  array = &shorter;
  return {};
}

Status broadcast_view(const Tensor& source, Dims shape, Tensor& out) {
  DLBRIDGE_TRY(check_ndim(shape));
  std::int64_t strides[kMaxDims];
  const auto missing = static_cast<std::ptrdiff_t>(shape.size()) - source.dl.ndim;
  bool repeats = false;
  bool fits = missing >= 0;
  for (std::size_t k = 0; fits && k < shape.size(); ++k) {
    const std::ptrdiff_t axis = static_cast<std::ptrdiff_t>(k) - missing;
    const std::int64_t extent = axis < 0 ? 1 : source.dl.shape[axis];
    strides[k] = axis < 0 || (extent == 1 && shape[k] != 1) ? 0 : source.dl.strides[axis];
    if (extent != shape[k]) {
      fits = extent == 1 && shape[k] >= 0;
      repeats = true;
    }
  }
  if (!fits)
    return malformed("shape " + shape_text(shape_of(source)) + " does not broadcast to " + shape_text(shape) +
                     ": each extent must be equal or 1, from the last axis on");
  std::int64_t size = 0;
  DLBRIDGE_TRY(count_elements(shape, source.itemsize(), size));
  DLBRIDGE_TRY(make_view(source, shape, {strides, shape.size()}, 0, out));
  if (repeats) out.flags |= kFlagReadOnly;
  return {};
}

Status permute(const Tensor& source, Dims axes, Tensor& out) {
  const int n = source.dl.ndim;
  std::int8_t places[kMaxDims];
  std::uint64_t seen = 0;
  bool valid = axes.size() == static_cast<std::size_t>(n);
  for (std::size_t k = 0; valid && k < axes.size(); ++k) {
    const std::int64_t axis = axes[k] < 0 ? axes[k] + n : axes[k];
    valid = axis >= 0 && axis < n && ((seen >> axis) & 1) == 0;
    if (valid) seen |= std::uint64_t{1} << axis;
    places[k] = static_cast<std::int8_t>(axis);
  }
  if (valid) return transpose_view(source, {places, axes.size()}, out);
  return malformed("axes " + shape_text(axes) + " are not a permutation of the " + std::to_string(n) +
                   " axes of the array");
}

Status reverse_axes(const Tensor& source, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  const auto n = static_cast<std::size_t>(source.dl.ndim);
  std::reverse_copy(source.dl.shape, source.dl.shape + n, shape);
  std::reverse_copy(source.dl.strides, source.dl.strides + n, strides);
  return make_view(source, {shape, n}, {strides, n}, 0, out);
}

Status squeeze(const Tensor& source, std::uint64_t axes, bool all, Tensor& out) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  std::size_t n = 0;
  for (int k = 0; k < source.dl.ndim; ++k) {
    const bool asked = ((axes >> k) & 1) != 0;
    if (asked && source.dl.shape[k] == 1) continue;
    if (asked && all)
      return malformed("axis " + std::to_string(k) + " has extent " + std::to_string(source.dl.shape[k]) +
                       "; only extent 1 can be dropped");
    shape[n] = source.dl.shape[k];
    strides[n++] = source.dl.strides[k];
  }
  return make_view(source, {shape, n}, {strides, n}, 0, out);
}

Status diagonal(const Tensor& source, std::int64_t offset, int axis1, int axis2, Tensor& out) {
  if (axis1 == axis2) return malformed("axis " + std::to_string(axis1) + " is given twice; a plane has two axes");
  const std::int64_t rows = source.dl.shape[axis1], columns = source.dl.shape[axis2];
  const std::int64_t row_stride = source.dl.strides[axis1], column_stride = source.dl.strides[axis2];
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  std::size_t n = 0;
  for (int k = 0; k < source.dl.ndim; ++k) {
    if (k == axis1 || k == axis2) continue;
    shape[n] = source.dl.shape[k];
    strides[n++] = source.dl.strides[k];
  }
  shape[n] =
      std::max<std::int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  strides[n] = row_stride + column_stride;
  const std::int64_t first = shape[n] == 0 ? 0 : offset >= 0 ? offset * column_stride : -offset * row_stride;
  return make_view(source, {shape, n + 1}, {strides, n + 1}, first, out);
}

Status part_view(const Tensor& source, bool imaginary, Tensor& out) {
  std::int64_t strides[kMaxDims];
  for (int k = 0; k < source.dl.ndim; ++k) strides[k] = 2 * source.dl.strides[k];
  DLBRIDGE_TRY(make_view(source, shape_of(source), {strides, static_cast<std::size_t>(source.dl.ndim)}, 0, out));
  out.set_dtype(dlbridge::info(real_part(dtype_of(source))));
  if (imaginary && out.size != 0) out.dl.data = static_cast<char*>(out.dl.data) + out.itemsize();
  return {};
}

Status view_as(const Tensor& source, DType dtype, Tensor& out) {
  const std::int64_t from = source.itemsize(), to = itemsize(dtype);
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  const auto n = static_cast<std::size_t>(source.dl.ndim);
  if (dtype == dtype_of(source)) return make_view(source, shape_of(source), {source.dl.strides, n}, 0, out);
  std::copy_n(source.dl.shape, n, shape);
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t stride = source.dl.strides[k], bytes = stride * from;
    const bool last = k + 1 == n;
    if (from != to && (last ? stride != 1 && shape[k] > 1 : bytes % to != 0))
      return malformed("a view as " + std::string(dlbridge::info(dtype).name) + " needs a dense last axis. Copy first");
    strides[k] = from == to ? stride : last ? 1 : bytes / to;
  }
  if (from != to) {
    if (n == 0 || shape[n - 1] * from % to != 0)
      return malformed("the last axis of shape " + shape_text(shape_of(source)) + " has no whole number of " +
                       std::string(dlbridge::info(dtype).name) + " elements");
    shape[n - 1] = shape[n - 1] * from / to;
  }
  DLBRIDGE_TRY(make_view(source, {shape, n}, {strides, n}, 0, out));
  out.set_dtype(dlbridge::info(dtype));
  if (is_loadable(out)) return {};
  return malformed("the view would not lie at a multiple of its itemsize, which a GPU cannot load. Copy first");
}

namespace {

// Replaces the one -1 by what is left over.
Status infer_extent(const Tensor& t, std::span<std::int64_t> shape) {
  std::int64_t known = 1;
  std::int64_t* unknown = nullptr;
  bool valid = true;
  for (std::int64_t& extent : shape) {
    if (extent == -1 && unknown != nullptr)
      return malformed("shape " + shape_text(shape) + " has more than one -1; can only specify one unknown dimension");
    if (extent == -1) unknown = &extent;
    else if (extent < 0) valid = false;
    else if (__builtin_mul_overflow(known, extent, &known)) valid = false;
  }
  if (valid && unknown != nullptr) {
    valid = known != 0 && t.size % known == 0;
    if (valid) *unknown = t.size / known;
  } else if (valid) {
    valid = known == t.size;
  }
  if (valid) [[likely]]
    return {};
  return malformed("cannot reshape array of size " + std::to_string(t.size) + " and shape " + shape_text(shape_of(t)) +
                   " into " + shape_text(shape) + ": the numbers of elements must be equal, and extents 0 or more");
}

Status reshape_copy(const Tensor& source, Dims shape, Order order, Tensor& out) {
  Tensor dense;
  bool viewed = false;
  DLBRIDGE_TRY(copy_as(source, dtype_of(source), order == Order::kC ? CopyOrder::kC : CopyOrder::kF, dense));
  DLBRIDGE_TRY(reshape_view(dense, shape, order, out, viewed));
  out.flags = dense.flags;  // it outlives what it is a view of
  return {};
}

// The axes as they lie in memory, the outermost first: C order of that is order 'K'.
Status in_memory_order(const Tensor& t, Tensor& out) {
  const Tensor* const input = &t;
  std::int8_t axes[kMaxDims];
  memory_order({&input, 1}, shape_of(t), axes);
  std::reverse(axes, axes + t.dl.ndim);
  return transpose_view(t, {axes, static_cast<std::size_t>(t.dl.ndim)}, out);
}

}  // namespace

Status reshape(const Tensor& source, std::span<std::int64_t> shape, Order order, std::optional<bool> copy,
               Tensor& out) {
  DLBRIDGE_TRY(infer_extent(source, shape));
  bool viewed = false;
  if (copy != std::optional(true)) DLBRIDGE_TRY(reshape_view(source, shape, order, out, viewed));
  if (viewed) return {};
  if (copy == std::optional(false))
    return {ErrorCode::kCopyRefused,
            "Unable to avoid creating a copy: the strides do not allow this shape, and copy=False forbids one"};
  return reshape_copy(source, shape, order, out);
}

Status keep_first(Tensor& all, std::int64_t count) {
  constexpr std::int64_t kSmallRoom = 1 << 15;  // bytes that an array may keep and not use
  if (count == all.size) return {};
  const std::int64_t shape[1] = {count}, strides[1] = {1};
  Tensor part, copy;
  DLBRIDGE_TRY(make_view(all, shape, strides, 0, part));
  const bool keeps = count >= all.size / 2 || all.nbytes() <= kSmallRoom;
  if (!keeps) DLBRIDGE_TRY(copy_as(part, dtype_of(all), CopyOrder::kC, copy));
  all = std::move(keeps ? part : copy);
  return {};
}

Status in_steps(const Tensor& x, Tensor& row) {
  bool viewed = false;
  if (is_aligned(x)) DLBRIDGE_TRY(reshape_view(x, {&x.size, 1}, Order::kC, row, viewed));
  if (viewed) return {};
  Tensor copy;
  DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, copy));
  return reshape_view(copy, {&copy.size, 1}, Order::kC, row, viewed);
}

Status flatten(const Tensor& source, CopyOrder order, bool copy, Tensor& out) {
  constexpr std::int64_t kDense[] = {1};
  const std::int64_t all[] = {source.size};
  if (!copy && order != CopyOrder::kF && is_c_contiguous(source)) return make_view(source, all, kDense, 0, out);
  const Tensor* t = &source;
  Tensor sorted;
  if (order == CopyOrder::kKeep) {
    DLBRIDGE_TRY(in_memory_order(source, sorted));
    t = &sorted;
  }
  const Order walk = order == CopyOrder::kF ? Order::kF : Order::kC;
  bool viewed = false;
  if (!copy) DLBRIDGE_TRY(reshape_view(*t, all, walk, out, viewed));
  // A view with gaps will not do: what asks for a flat array counts on a dense one. A copy then, as NumPy's.
  if (viewed && is_c_contiguous(out)) return {};
  out = Tensor();
  return reshape_copy(*t, all, walk, out);
}

}  // namespace dlbridge::nd
