#include "ndarray/core/indexing.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "ndarray/core/index_line.h"
#include "ndarray/core/selection.h"
#include "ndarray/core/views.h"

namespace dlbridge::nd {

namespace {

// The index arrays as int64, broadcast to one shape; bool arrays as their coordinates.
struct Indices {
  struct Entry {
    const Tensor* index;
    int axis;
  };
  std::list<Tensor> owned;  // entries point to them
  std::array<Entry, kMaxIndexArrays> arrays;
  std::size_t count = 0;
  std::int64_t shape[kMaxDims];
  int ndim = 0;

  std::span<Entry> entries() noexcept { return {arrays.data(), count}; }
  std::span<const Entry> entries() const noexcept { return {arrays.data(), count}; }
  Status add(const Tensor* index, int axis) {
    if (count == arrays.size()) return index_error("more than 16 index arrays");
    arrays[count++] = {index, axis};
    return {};
  }
};

Status prepare_indices(const Selection& s, Indices& out) {
  for (std::size_t k = 0; k < s.array_count; ++k) {
    const auto& [index, axis] = s.arrays[k];
    if (is_bool(dtype_of(*index))) {
      const auto count = static_cast<std::size_t>(std::max(index->dl.ndim, 1));
      std::vector<Tensor> coordinates(count);
      DLBRIDGE_TRY(nonzero(*index, coordinates));
      for (std::size_t d = 0; d < count; ++d) {
        out.owned.push_back(std::move(coordinates[d]));
        DLBRIDGE_TRY(out.add(&out.owned.back(), index->dl.ndim == 0 ? -1 : axis + static_cast<int>(d)));
      }
    } else if (dtype_of(*index) != DType::kInt64) {
      out.owned.emplace_back();
      DLBRIDGE_TRY(copy_as(*index, DType::kInt64, CopyOrder::kKeep, out.owned.back()));
      DLBRIDGE_TRY(out.add(&out.owned.back(), axis));
    } else {
      DLBRIDGE_TRY(out.add(index, axis));
    }
  }
  const Tensor* arrays[kMaxIndexArrays];
  for (std::size_t k = 0; k < out.count; ++k) arrays[k] = out.arrays[k].index;
  if (Status status = broadcast_shapes({arrays, out.count}, out.shape, out.ndim); !status.ok())
    return index_error("shape mismatch: the index arrays could not be broadcast together: " + status.message());
  return {};
}

// The loop of a gather or scatter, before merging: result dims in C order, outermost first.
struct IndexLoop {
  std::int64_t shape[kMaxDims];
  std::int64_t base[kMaxDims];                    // bytes; 0 on index dims
  std::int64_t index[kMaxIndexArrays][kMaxDims];  // bytes; 0 on the other dims
  std::size_t ndim = 0;
};

Status make_loop(const Tensor& x, const Selection& s, const Indices& indices, IndexLoop& loop) {
  if (s.ndim + static_cast<std::size_t>(indices.ndim) > static_cast<std::size_t>(kMaxDims))
    return index_error("the result would have more than 64 dimensions");
  const auto add_basic = [&](std::size_t d) {
    loop.shape[loop.ndim] = s.shape[d];
    loop.base[loop.ndim] = s.strides[d] * x.itemsize();
    for (std::size_t k = 0; k < indices.count; ++k) loop.index[k][loop.ndim] = 0;
    ++loop.ndim;
  };
  for (std::size_t d = 0; d < s.array_place; ++d) add_basic(d);
  for (int d = 0; d < indices.ndim; ++d) {
    loop.shape[loop.ndim] = indices.shape[d];
    loop.base[loop.ndim] = 0;
    for (std::size_t k = 0; k < indices.count; ++k) {
      const Tensor& t = *indices.arrays[k].index;
      loop.index[k][loop.ndim] = broadcast_stride(t, d, indices.ndim) * t.itemsize();
    }
    ++loop.ndim;
  }
  for (std::size_t d = s.array_place; d < s.ndim; ++d) add_basic(d);
  return {};
}

// Innermost first, merged: `loop` is, too. values: the dense or broadcast operand with the loop's shape. `axes`: the
// order in which they are walked, innermost first.
Status fill_args(IndexLoop& loop, const Tensor& values, std::span<const std::int8_t> axes, std::size_t arrays,
                 IndexArgs& args) {
  std::int64_t value[kMaxDims];
  for (std::size_t k = 0; k < loop.ndim; ++k) value[k] = values.dl.strides[k] * values.itemsize();
  std::int64_t* rows[2 + kMaxIndexArrays];
  rows[0] = loop.base;
  rows[1] = value;
  for (std::size_t a = 0; a < arrays; ++a) rows[2 + a] = loop.index[a];
  const auto count = static_cast<int>(2 + arrays), ndim = static_cast<int>(loop.ndim);
  const auto reorder = [&](std::int64_t* row) {
    std::int64_t in_order[kMaxDims];
    for (std::size_t k = 0; k < axes.size(); ++k) in_order[k] = row[axes[k]];
    std::copy_n(in_order, axes.size(), row);
  };
  reorder(loop.shape);
  for (int k = 0; k < count; ++k) reorder(rows[k]);
  args.ndim = merge_dims(loop.shape, ndim, rows, count);
  if (args.ndim > kLoopDims)
    return index_error("this advanced index needs more than 12 loop dimensions. Index in two steps");
  std::copy_n(loop.shape, args.ndim, args.shape);
  std::copy_n(loop.base, args.ndim, args.base_strides);
  std::copy_n(value, args.ndim, args.value_strides);
  for (std::size_t a = 0; a < arrays; ++a) std::copy_n(loop.index[a], args.ndim, args.index_strides[a]);
  args.size = values.size;
  return {};
}

// Positions that lie in the array which is written to would change on the way.
Status separate_indices(const Tensor& x, Indices& indices) {
  for (Indices::Entry& entry : indices.entries()) {
    if (!may_overlap(*entry.index, x)) continue;
    Tensor copy;
    DLBRIDGE_TRY(copy_as(*entry.index, DType::kInt64, CopyOrder::kKeep, copy));
    indices.owned.push_back(std::move(copy));
    entry.index = &indices.owned.back();
  }
  return {};
}

struct IndexCall {
  Bounds bounds = Bounds::kRefuse;
  Selection selection;
  Indices indices;
  IndexLoop loop;
  std::int8_t axes[kMaxDims];  // in which order the loop is walked: innermost first

  Dims shape() const noexcept { return {loop.shape, loop.ndim}; }
};

Status plan(const Tensor& x, std::span<const IndexItem> items, bool writes, IndexCall& call) {
  DLBRIDGE_TRY(select(x, items, call.selection));
  for (std::size_t k = 0; k < call.selection.array_count; ++k)
    if (!same_device(call.selection.arrays[k].index->dl.device, x.dl.device))
      return index_error("the index array is on " + device_name(call.selection.arrays[k].index->dl.device) +
                         ", the array on " + device_name(x.dl.device) + ". Move it there first");
  DLBRIDGE_TRY(prepare_indices(call.selection, call.indices));
  if (writes) DLBRIDGE_TRY(separate_indices(x, call.indices));
  DLBRIDGE_TRY(make_loop(x, call.selection, call.indices, call.loop));
  for (std::size_t k = 0; k < call.loop.ndim; ++k) call.axes[k] = static_cast<std::int8_t>(call.loop.ndim - 1 - k);
  return {};
}

// Has the loop run as x lies, on the host, where one row of positions takes the place of an axis behind others; false
// where that is C order. As in NumPy, such a result need not be in C order.
bool walk_in_memory_order(const Tensor& x, IndexCall& call) {
  const std::size_t place = call.selection.array_place;
  if (!is_host(x.dl.device) || place == 0 || call.indices.count != 1 || call.indices.ndim != 1) return false;
  const auto& [index, axis] = call.indices.arrays[0];
  if (axis < 0) return false;
  std::int64_t strides[kMaxDims];
  std::copy_n(call.loop.base, call.loop.ndim, strides);
  strides[place] = x.dl.strides[axis] * x.itemsize();
  Tensor along_x;
  along_x.dl.ndim = static_cast<std::int32_t>(call.loop.ndim);
  along_x.dl.shape = call.loop.shape;
  along_x.dl.strides = strides;
  const Tensor* input = &along_x;
  return !memory_order({&input, 1}, call.shape(), call.axes);
}

Status check_positions(const Tensor& index, std::int64_t extent) {
  Tensor dense;
  DLBRIDGE_TRY(copy_as(index, DType::kInt64, CopyOrder::kC, dense));
  const std::span positions(static_cast<const std::int64_t*>(dense.dl.data), static_cast<std::size_t>(dense.size));
  if (std::ranges::all_of(positions, [&](std::int64_t i) { return i >= -extent && i < extent; })) return {};
  return index_error("an index is out of bounds for an axis of size " + std::to_string(extent));
}

// Where nothing is selected, no kernel looks at the positions. Those on an axis without elements are out of bounds
// whatever they are; others only the host can see.
Status check_unread_positions(const Tensor& x, const Indices& indices, Bounds bounds) {
  for (const auto& entry : indices.entries())
    if (entry.index->size == 0) return {};
  for (const auto& [index, axis] : indices.entries()) {
    if (axis < 0) continue;
    const std::int64_t extent = x.dl.shape[axis];
    if (extent == 0) return index_error("index arrays on an axis of size 0 have nothing to select");
    if (bounds == Bounds::kRefuse && is_host(x.dl.device)) DLBRIDGE_TRY(check_positions(*index, extent));
  }
  return {};
}

Status launch(const Tensor& x, IndexCall& call, const Tensor& values, bool scatter, std::optional<Op> combine = {}) {
  if (values.size == 0) return check_unread_positions(x, call.indices, call.bounds);
  IndexArgs args;
  args.bounds = call.bounds;
  args.itemsize = static_cast<int>(x.itemsize());
  args.values = values.dl.data;
  args.base = static_cast<char*>(x.dl.data) + call.selection.offset * x.itemsize();
  args.accumulate = combine.has_value();
  args.combine = combine.value_or(Op::kAdd);
  args.dtype = dtype_of(x);
  args.arrays = 0;
  DLBRIDGE_TRY(fill_args(call.loop, values, {call.axes, call.loop.ndim}, call.indices.count, args));
  for (std::size_t k = 0; k < call.indices.count; ++k) {
    const auto& [index, axis] = call.indices.arrays[k];
    if (axis < 0) continue;  // a 0-d bool index only repeats
    const auto slot = static_cast<std::size_t>(args.arrays++);
    if (slot != k) std::copy_n(args.index_strides[k], args.ndim, args.index_strides[slot]);
    args.index[slot] = static_cast<const std::int64_t*>(index->dl.data);
    args.extent[slot] = x.dl.shape[axis];
    args.axis_stride[slot] = x.dl.strides[axis] * x.itemsize();
  }
  args.unique = call.selection.array_count == 1 && is_bool(dtype_of(*call.selection.arrays[0].index));
  const Tensor* used[2 + kMaxIndexArrays] = {&x, &values};
  for (std::size_t k = 0; k < call.indices.count; ++k) used[2 + k] = call.indices.arrays[k].index;
  return run_index(args, x.dl.device, {used, 2 + call.indices.count}, scatter);
}

constexpr std::int64_t kCached = std::int64_t{128} << 10;  // bytes: so many are near wherever they lie
constexpr std::int64_t kRun = 16;                          // elements that are taken as fast as they are copied

// Whether to copy first what lies apart, on the host: where as many elements are taken as there are, one at a time.
bool pays_to_gather(const Tensor& x, const IndexCall& call) noexcept {
  std::int64_t taken = 1;
  for (std::size_t d = 0; d < call.loop.ndim; ++d)
    if (__builtin_mul_overflow(taken, call.loop.shape[d], &taken)) return false;
  if (!is_host(x.dl.device) || x.dl.ndim == 0 || x.nbytes() < kCached || taken < x.size) return false;
  const std::size_t last = call.loop.ndim - 1;
  const std::size_t end_of_indices = call.selection.array_place + static_cast<std::size_t>(call.indices.ndim);
  if (end_of_indices <= last && call.loop.shape[last] >= kRun) return false;
  if (x.dl.strides[x.dl.ndim - 1] == 1 || is_bool(dtype_of(*call.selection.arrays[0].index))) return false;
  for (int d = 0; d < x.dl.ndim; ++d)
    if (x.dl.strides[d] == 0 && x.dl.shape[d] > 1) return false;
  return true;
}

// x[mask] = scalar needs no positions and no wait.
Status masked_fill(const Tensor& x, const Tensor& mask, const Input& value) {
  if (!same_device(mask.dl.device, x.dl.device)) return index_error("the mask is on another device than the array");
  const Input inputs[3] = {{&mask, {}}, value, {&x, {}}};
  const DType dtype = dtype_of(x);
  const ElementwiseOptions options{&x, &dtype, "x[mask] = value", Casting::kUnsafe};
  Tensor unused;
  return elementwise(Op::kWhere, inputs, options, unused);
}

// On the host. offset: in elements.
Status write_element(const Tensor& x, std::int64_t offset, const Scalar& scalar) {
  ScalarValue value;
  DLBRIDGE_TRY(write_scalar(scalar, dtype_of(x), value));
  std::memcpy(static_cast<char*>(x.dl.data) + offset * x.itemsize(), value.bytes,
              static_cast<std::size_t>(x.itemsize()));
  return {};
}

}  // namespace

bool is_basic(std::span<const IndexItem> items) noexcept {
  return std::ranges::none_of(items, [](const IndexItem& i) { return i.kind == IndexItem::Kind::kArray; });
}

Status view_at(const Tensor& x, std::span<const IndexItem> items, Tensor& out) {
  Selection s;
  DLBRIDGE_TRY(select(x, items, s));
  return make_view(x, {s.shape, s.ndim}, {s.strides, s.ndim}, s.offset, out);
}

Status gather_at(const Tensor& x, std::span<const IndexItem> items, Tensor& out, Bounds bounds, CopyOrder order) {
  if (const Tensor* index = line_of_positions(x, items); index != nullptr) return gather_line(x, *index, out, bounds);
  if (const Tensor* mask = mask_of_all(x, items); mask != nullptr && has_line(x, *mask))
    return gather_true(x, *mask, out);
  IndexCall call;
  call.bounds = bounds;
  DLBRIDGE_TRY(plan(x, items, false, call));
  if (order == CopyOrder::kKeep && walk_in_memory_order(x, call)) {
    DLBRIDGE_TRY(make_array_as(out, dtype_of(x), call.shape(), {call.axes, call.loop.ndim}, x.dl.device));
    return launch(x, call, out, false);
  }
  if (pays_to_gather(x, call)) {
    Tensor dense;
    DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, dense));
    return gather_at(dense, items, out, bounds, order);
  }
  DLBRIDGE_TRY(make_array(out, dtype_of(x), call.shape(), x.dl.device));
  return launch(x, call, out, false);
}

Status assign_at(const Tensor& x, std::span<const IndexItem> items, const Input& value, std::optional<Op> combine,
                 Bounds bounds) {
  if (x.readonly()) return malformed("the array is read-only. Write to a copy of it");
  if (is_basic(items) && !combine) {
    Selection s;
    DLBRIDGE_TRY(select(x, items, s));
    if (s.ndim == 0 && value.array == nullptr && is_host(x.dl.device)) return write_element(x, s.offset, value.scalar);
    Tensor view;
    DLBRIDGE_TRY(make_view(x, {s.shape, s.ndim}, {s.strides, s.ndim}, s.offset, view));
    return assign(view, value, "x[key] = value");
  }
  if (const Tensor* index = line_of_positions(x, items); index != nullptr && !combine) {
    bool done = false;
    DLBRIDGE_TRY(assign_line(x, *index, value, bounds, done));
    if (done) return {};
  }
  if (const Tensor* mask = mask_of_all(x, items); mask != nullptr && !combine) {
    if (value.array == nullptr) return masked_fill(x, *mask, value);
    bool done = false;
    if (has_line(x, *mask)) DLBRIDGE_TRY(assign_true(x, *mask, value, done));
    if (done) return {};
  }
  IndexCall call;
  call.bounds = bounds;
  DLBRIDGE_TRY(plan(x, items, true, call));
  Tensor scalar, cast, spread;
  const Tensor* source = value.array;
  if (source == nullptr) {
    DLBRIDGE_TRY(make_array(scalar, dtype_of(x), {}, x.dl.device));
    DLBRIDGE_TRY(assign(scalar, value, "x[key] = value"));
    source = &scalar;
  } else if (!same_device(source->dl.device, x.dl.device)) {
    return malformed("the value is on " + device_name(source->dl.device) + ", the array on " +
                     device_name(x.dl.device) + ". Move it there first");
  } else if (dtype_of(*source) != dtype_of(x) || may_overlap(*source, x)) {
    DLBRIDGE_TRY(copy_as(*source, dtype_of(x), CopyOrder::kC, cast));
    source = &cast;
  }
  Tensor shorter;
  DLBRIDGE_TRY(drop_leading_ones(source, static_cast<int>(call.loop.ndim), shorter));
  DLBRIDGE_TRY(broadcast_view(*source, call.shape(), spread));
  return launch(x, call, spread, true, combine);
}

}  // namespace dlbridge::nd
