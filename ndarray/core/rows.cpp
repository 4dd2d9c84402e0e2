#include "ndarray/core/rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ndarray/core/copy.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"
#include "ndarray/core/views.h"
#include "ndarray/kernels/host/rows.h"

namespace dlbridge::nd {

namespace {

host_kernels::Rows rows_of(const Tensor& x, int axis) noexcept {
  host_kernels::Rows rows{1, x.dl.shape[axis], x.itemsize()};
  for (int k = 0; k < axis; ++k) rows.outer *= x.dl.shape[k];
  for (int k = axis + 1; k < x.dl.ndim; ++k) rows.bytes *= x.dl.shape[k];
  return rows;
}

// The axes of the result in memory, the innermost first.
void order_axes(const Tensor& x, int axis, RowOrder order, std::int8_t (&axes)[kMaxDims]) {
  const int n = x.dl.ndim;
  if (order == RowOrder::kRowsOutermost && !is_c_contiguous(x)) {
    const Tensor* const parts[] = {&x};
    memory_order(parts, shape_of(x), axes);
    auto* const end = std::remove(axes, axes + n, static_cast<std::int8_t>(axis));
    *end = static_cast<std::int8_t>(axis);
    return;
  }
  std::iota(axes, axes + n, std::int8_t{0});
  if (order != RowOrder::kAsGiven || order_of(x) == Order::kC) std::reverse(axes, axes + n);
}

// An array and a new one for its rows, seen by their axes as they lie in the new one's memory, the outermost first.
struct Rowwise {
  Tensor views[2];
  const Tensor* x;
  const Tensor* out;
  int axis;
};

Status make_rowwise(const Tensor& x, int axis, std::int64_t extent, RowOrder order, Tensor& out, Rowwise& call) {
  std::int64_t shape[kMaxDims];
  std::int8_t axes[kMaxDims];
  const auto n = static_cast<std::size_t>(x.dl.ndim);
  std::copy_n(x.dl.shape, n, shape);
  shape[axis] = extent;
  order_axes(x, axis, order, axes);
  DLBRIDGE_TRY(make_array_as(out, dtype_of(x), {shape, n}, {axes, n}, x.dl.device));
  std::reverse(axes, axes + n);
  call = {{}, &x, &out, static_cast<int>(std::find(axes, axes + n, axis) - axes)};
  if (std::is_sorted(axes, axes + n)) return {};
  DLBRIDGE_TRY(transpose_view(x, {axes, n}, call.views[0]));
  DLBRIDGE_TRY(transpose_view(out, {axes, n}, call.views[1]));
  call.x = &call.views[0];
  call.out = &call.views[1];
  return {};
}

Status part_of(const Tensor& x, int axis, std::int64_t first, std::int64_t count, Tensor& view) {
  std::int64_t shape[kMaxDims];
  const auto n = static_cast<std::size_t>(x.dl.ndim);
  std::copy_n(x.dl.shape, n, shape);
  shape[axis] = count;
  return make_view(x, {shape, n}, {x.dl.strides, n}, first * x.dl.strides[axis], view);
}

// Rows of x from `first` to before `end` go to those of `out` from `to` on, which moves behind them.
Status copy_rows(const Rowwise& call, std::int64_t first, std::int64_t end, std::int64_t& to) {
  if (first == end) return {};
  Tensor source, target;
  DLBRIDGE_TRY(part_of(*call.x, call.axis, first, end - first, source));
  DLBRIDGE_TRY(part_of(*call.out, call.axis, to, end - first, target));
  to += end - first;
  return copy_into(target, {&source, {}}, Casting::kUnsafe);
}

// Runs of rows that lie apart, up to which each is copied by itself; more are taken from a dense copy.
constexpr std::size_t kFewRuns = 16;

// Where the first of some marks stands, or behind them.
const std::uint8_t* find_mark(const std::uint8_t* first, const std::uint8_t* end, int mark) noexcept {
  const void* found = first == end ? nullptr : std::memchr(first, mark, static_cast<std::size_t>(end - first));
  return found != nullptr ? static_cast<const std::uint8_t*>(found) : end;
}

struct Run {
  std::int64_t first, end;
};

// The runs that are not dropped; false where they are more than a few.
bool find_runs(std::span<const std::uint8_t> dropped, Run (&runs)[kFewRuns], std::size_t& count) noexcept {
  const std::uint8_t *const begin = dropped.data(), *const end = begin + dropped.size();
  count = 0;
  for (const std::uint8_t* at = find_mark(begin, end, 0); at != end; at = find_mark(at, end, 0)) {
    if (count == kFewRuns) return false;
    runs[count].first = at - begin;
    at = find_mark(at, end, 1);
    runs[count++].end = at - begin;
  }
  return true;
}

Status copy_between(const Rowwise& call, std::span<const std::int64_t> before, const Scalar& value) {
  std::int64_t done = 0, to = 0;
  for (const std::int64_t place : before) {
    DLBRIDGE_TRY(copy_rows(call, done, place, to));
    done = place;
    Tensor row;
    DLBRIDGE_TRY(part_of(*call.out, call.axis, to++, 1, row));
    DLBRIDGE_TRY(copy_into(row, {nullptr, value}, Casting::kUnsafe));
  }
  return copy_rows(call, done, call.x->dl.shape[call.axis], to);
}

}  // namespace

Status drop_rows(const Tensor& x, int axis, std::span<const std::uint8_t> dropped, RowOrder order, Tensor& out) {
  Run runs[kFewRuns];
  std::size_t count = 0;
  const bool is_few = find_runs(dropped, runs, count);
  std::int64_t kept = is_few ? 0 : std::ranges::count(dropped, std::uint8_t{0});
  if (is_few)
    for (const Run& run : std::span(runs).first(count)) kept += run.end - run.first;
  Rowwise call;
  DLBRIDGE_TRY(make_rowwise(x, axis, kept, order, out, call));
  if (out.size == 0) return {};
  Tensor copy;
  if (!lies_ready(*call.x)) {
    if (is_few) {
      std::int64_t to = 0;
      for (const Run& run : std::span(runs).first(count)) DLBRIDGE_TRY(copy_rows(call, run.first, run.end, to));
      return {};
    }
    DLBRIDGE_TRY(ready_as(dtype_of(x), *call.x, copy, call.x));
  }
  const Tensor* const used[] = {&out};
  KernelCall kernel(x.dl.device, used);
  DLBRIDGE_TRY(kernel.begin());
  host_kernels::drop_rows(call.x->dl.data, rows_of(*call.x, call.axis), dropped.data(), kept, out.dl.data);
  return kernel.end(0, "delete");
}

Status insert_rows(const Tensor& x, int axis, std::span<const std::int64_t> before, const Scalar& value, Tensor& out) {
  ScalarValue element;
  DLBRIDGE_TRY(write_scalar(value, dtype_of(x), element));
  const std::int64_t extent = x.dl.shape[axis] + static_cast<std::int64_t>(before.size());
  Rowwise call;
  DLBRIDGE_TRY(make_rowwise(x, axis, extent, RowOrder::kAsGiven, out, call));
  if (out.size == 0) return {};
  Tensor copy;
  if (!lies_ready(*call.x)) {
    if (before.size() < kFewRuns) return copy_between(call, before, value);
    DLBRIDGE_TRY(ready_as(dtype_of(x), *call.x, copy, call.x));
  }
  const Tensor* const used[] = {&out};
  KernelCall kernel(x.dl.device, used);
  DLBRIDGE_TRY(kernel.begin());
  host_kernels::insert_rows(call.x->dl.data, rows_of(*call.x, call.axis), before, element.bytes, x.itemsize(),
                            out.dl.data);
  return kernel.end(0, "insert");
}

}  // namespace dlbridge::nd
