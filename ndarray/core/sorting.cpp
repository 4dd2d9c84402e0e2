#include "ndarray/core/sorting.h"

#include <algorithm>
#include <cstring>

#include "ndarray/core/copy.h"
#include "ndarray/core/elementwise.h"
#include "ndarray/core/indexing.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/interpolate.h"
#include "ndarray/kernels/host/sort.h"

namespace dlbridge::nd {

namespace {
// The axis moved to the end (and, being its own inverse here, a last axis moved back where `inverse`).
void move_axis_last(int ndim, int axis, bool inverse, std::int8_t (&axes)[kMaxDims]) {
  for (int k = 0, next = 0; k < ndim; ++k)
    if (k != axis) axes[next++] = static_cast<std::int8_t>(k);
  axes[ndim - 1] = static_cast<std::int8_t>(axis);
  if (!inverse) return;
  std::int8_t back[kMaxDims];
  for (int k = 0; k < ndim; ++k) back[axes[k]] = static_cast<std::int8_t>(k);
  std::copy_n(back, ndim, axes);
}

Status launch_sort(const Tensor& rows, const SortOptions& options, Tensor* keys, Tensor* indices) {
  SortArgs args{};
  args.dtype = dtype_of(rows);
  args.descending = options.descending;
  args.stable = options.stable;
  args.n = rows.dl.shape[rows.dl.ndim - 1];
  args.rows = rows.size / args.n;
  args.keys_in = rows.dl.data;
  args.keys_out = keys == nullptr ? nullptr : keys->dl.data;
  args.indices = indices == nullptr ? nullptr : static_cast<std::int64_t*>(indices->dl.data);
  const Tensor* const used[] = {&rows, keys != nullptr ? keys : indices};
  KernelCall call(rows.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  args.workspace = call.workspace();
  const bool selects = !options.places.empty() && is_host(rows.dl.device);
  return call.end(selects ? host_kernels::select(args, options.places) : call.backend().sort(args), "sort");
}

Status sort_along(const Tensor& x, int axis, const SortOptions& options, bool want_indices, Tensor& result) {
  const int n = x.dl.ndim;
  if (x.dl.shape[axis] == 1 && is_cuda(x.dl.device)) {  // the host sorts so few as soon
    if (!want_indices) return copy_as(x, dtype_of(x), CopyOrder::kC, result);
    DLBRIDGE_TRY(make_array(result, DType::kInt64, shape_of(x), x.dl.device));
    return assign(result, {nullptr, Scalar::of_int(0)}, "argsort()");
  }
  Tensor bools, moved, dense, made;
  const Tensor* elements = &x;  // the host counts bools, whatever their bytes
  if (want_indices || is_cuda(x.dl.device)) DLBRIDGE_TRY(comparable(x, bools, elements));
  if (axis == n - 1 && is_c_contiguous(*elements)) {  // as the kernel takes and writes them
    DLBRIDGE_TRY(make_array(result, want_indices ? DType::kInt64 : dtype_of(x), shape_of(x), x.dl.device));
    if (x.size == 0) return {};
    return launch_sort(*elements, options, want_indices ? nullptr : &result, want_indices ? &result : nullptr);
  }
  std::int8_t axes[kMaxDims];
  move_axis_last(n, axis, false, axes);
  DLBRIDGE_TRY(transpose_view(*elements, {axes, static_cast<std::size_t>(n)}, moved));
  const Tensor* rows = &moved;
  if (!is_c_contiguous(moved)) {
    DLBRIDGE_TRY(copy_as(moved, dtype_of(x), CopyOrder::kC, dense));
    rows = &dense;
  }
  const bool in_place = rows == &dense && !want_indices;
  if (!in_place)
    DLBRIDGE_TRY(make_array(made, want_indices ? DType::kInt64 : dtype_of(x), shape_of(*rows), x.dl.device));
  Tensor& target = in_place ? dense : made;
  if (x.size != 0)
    DLBRIDGE_TRY(launch_sort(*rows, options, want_indices ? nullptr : &target, want_indices ? &target : nullptr));
  move_axis_last(n, axis, true, axes);
  DLBRIDGE_TRY(transpose_view(target, {axes, static_cast<std::size_t>(n)}, result));
  result.flags = target.flags;  // it outlives what it is a view of
  return {};
}

// Elements that are sorted at once in place, by memory that stays in a core's cache; and rows, where these lie across
// each other, so that a cache's lines are read whole.
constexpr std::int64_t kSortedAtOnce = 1 << 15, kCrossRows = 16;

// Whether rows of the host that lie one behind the other are in order already.
Status look(const Tensor& rows, std::int64_t n, bool& sorted) {
  const Tensor* const used[] = {&rows};
  KernelCall call(rows.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  sorted = host_kernels::are_in_order(dtype_of(rows), rows.dl.data, rows.size / n, n);
  return call.end(0, "sort");
}

// A block of rows of the host, along the last axis, through memory of its own: to what lies in the array others may
// write meanwhile.
Status sort_block(const Tensor& rows, const SortOptions& options) {
  Tensor sorted;
  if (!lies_ready(rows)) {
    DLBRIDGE_TRY(copy_as(rows, dtype_of(rows), CopyOrder::kC, sorted));
    DLBRIDGE_TRY(launch_sort(sorted, options, &sorted, nullptr));
    return assign(rows, {&sorted, {}}, "sort");
  }
  const std::int64_t n = rows.dl.shape[rows.dl.ndim - 1];
  bool is_sorted = false;
  if (n >= host_kernels::kLookAt) DLBRIDGE_TRY(look(rows, n, is_sorted));
  if (is_sorted) return {};
  DLBRIDGE_TRY(make_array(sorted, dtype_of(rows), shape_of(rows), rows.dl.device));
  DLBRIDGE_TRY(launch_sort(rows, options, &sorted, nullptr));
  std::memcpy(rows.dl.data, sorted.dl.data, static_cast<std::size_t>(rows.nbytes()));
  return {};
}
}  // namespace

Status sort_in_place(const Tensor& x, int axis, const SortOptions& options) {
  if (x.readonly()) return malformed("the array is read-only. Write to a copy of it");
  if (x.size == 0 || x.dl.shape[axis] == 1) return {};
  if (axis == x.dl.ndim - 1 && x.size <= kSortedAtOnce && lies_ready(x)) return sort_block(x, options);
  std::int8_t axes[kMaxDims];
  move_axis_last(x.dl.ndim, axis, false, axes);
  const std::int64_t n = x.dl.shape[axis], shape[2] = {x.size / n, n};
  Tensor moved, rows;
  bool viewed = false;
  DLBRIDGE_TRY(transpose_view(x, {axes, static_cast<std::size_t>(x.dl.ndim)}, moved));
  if (is_host(x.dl.device)) DLBRIDGE_TRY(reshape_view(moved, shape, Order::kC, rows, viewed));
  if (!viewed) {
    Tensor sorted;
    DLBRIDGE_TRY(sort(x, axis, options, sorted));
    return assign(x, {&sorted, {}}, "sort");
  }
  const std::int64_t step = std::max(is_c_contiguous(rows) ? 1 : kCrossRows, kSortedAtOnce / n);
  if (shape[0] <= step) return sort_block(rows, options);
  for (std::int64_t first = 0; first < shape[0]; first += step) {
    const std::int64_t part_shape[2] = {std::min(step, shape[0] - first), n};
    Tensor part;
    DLBRIDGE_TRY(make_view(rows, part_shape, {rows.dl.strides, 2}, first * rows.dl.strides[0], part));
    DLBRIDGE_TRY(sort_block(part, options));
  }
  return {};
}

Status sort(const Tensor& x, int axis, const SortOptions& options, Tensor& keys) {
  return sort_along(x, axis, options, false, keys);
}
Status argsort(const Tensor& x, int axis, const SortOptions& options, Tensor& indices) {
  return sort_along(x, axis, options, true, indices);
}

Status lexsort(std::span<const Tensor* const> keys, Tensor& indices) {
  const auto at = [](const Tensor& x, const Tensor& places, Tensor& out) {
    IndexItem item;
    item.kind = IndexItem::Kind::kArray;
    item.array = &places;
    return gather_at(x, {&item, 1}, out);
  };
  DLBRIDGE_TRY(argsort(*keys[0], 0, {}, indices));
  for (const Tensor* key : keys.subspan(1)) {
    Tensor part, order, before = std::move(indices);
    DLBRIDGE_TRY(at(*key, before, part));
    DLBRIDGE_TRY(argsort(part, 0, {}, order));
    DLBRIDGE_TRY(at(before, order, indices));
  }
  return {};
}

Status searchsorted(const Tensor& sorted, const Tensor& values, bool right, bool from_end, Tensor& result) {
  DLBRIDGE_TRY(make_array(result, DType::kInt64, shape_of(values), values.dl.device));
  if (values.size == 0) return {};
  Tensor row, searched, sorted_bools, values_bools;
  const Tensor *sorted_elements = nullptr, *values_elements = nullptr;
  DLBRIDGE_TRY(comparable(sorted, sorted_bools, sorted_elements));
  DLBRIDGE_TRY(comparable(values, values_bools, values_elements));
  DLBRIDGE_TRY(in_steps(*sorted_elements, row));
  DLBRIDGE_TRY(in_steps(*values_elements, searched));
  SearchArgs args{};
  args.dtype = dtype_of(values);
  args.right = right;
  args.from_end = from_end;
  args.sorted = row.dl.data;
  args.n = row.size;
  args.sorted_step = row.dl.strides[0];
  args.values = searched.dl.data;
  args.count = searched.size;
  args.value_step = searched.dl.strides[0];
  args.out = static_cast<std::int64_t*>(result.dl.data);
  const Tensor* const used[] = {&row, &searched, &result};
  KernelCall call(values.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().search(args), "searchsorted");
}

Status interpolate(const Tensor& at, const Tensor& knots, const Tensor& values, std::optional<double> left,
                   std::optional<double> right, Tensor& result) {
  DLBRIDGE_TRY(make_array(result, DType::kFloat64, shape_of(at), at.dl.device));
  Tensor at_copy, knots_copy, values_copy;
  const Tensor *dense_at = nullptr, *dense_knots = nullptr, *dense_values = nullptr;
  DLBRIDGE_TRY(ready_as(DType::kFloat64, at, at_copy, dense_at));
  DLBRIDGE_TRY(ready_as(DType::kFloat64, knots, knots_copy, dense_knots));
  DLBRIDGE_TRY(ready_as(DType::kFloat64, values, values_copy, dense_values));
  const auto* const heights = elements<double>(*dense_values);
  const Tensor* const used[] = {dense_at, dense_knots, dense_values, &result};
  KernelCall call(at.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::interpolate({elements<double>(*dense_knots), heights, knots.size, elements<double>(*dense_at), at.size,
                             left.value_or(heights[0]), right.value_or(heights[knots.size - 1]),
                             elements<double>(result)});
  return call.end(0, "interp");
}

}  // namespace dlbridge::nd
