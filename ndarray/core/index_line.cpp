#include "ndarray/core/index_line.h"

#include <algorithm>

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"

namespace dlbridge::nd {

namespace {

// A call without its values and sizes, for positions `index_stride` bytes apart of elements `stride` apart.
IndexArgs line_args(const Tensor& x, std::int64_t stride, const std::int64_t* index, std::int64_t index_stride,
                    std::int64_t value_stride) noexcept {
  IndexArgs args;
  args.itemsize = static_cast<int>(x.itemsize());
  args.ndim = args.arrays = 1;
  args.value_strides[0] = value_stride;
  args.base = x.dl.data;
  args.base_strides[0] = 0;
  args.index[0] = index;
  args.index_strides[0][0] = index_stride;
  args.extent[0] = x.dl.shape[0];
  args.axis_stride[0] = stride * args.itemsize;
  args.accumulate = false;
  args.dtype = dtype_of(x);
  args.stream = 0;
  return args;
}

// values: the bytes of elements of x, `value_stride` apart.
Status launch_line(const Tensor& x, const Tensor& index, void* values, std::int64_t value_stride, Bounds bounds,
                   bool scatter) {
  IndexArgs args = line_args(x, x.dl.strides[0], static_cast<const std::int64_t*>(index.dl.data),
                             index.dl.strides[0] * index.itemsize(), value_stride);
  args.size = args.shape[0] = index.size;
  args.values = values;
  args.bounds = bounds;
  const Tensor* const used[] = {&x, &index};
  return run_index(args, x.dl.device, used, scatter);
}

// Elements of x in a row, beside it.
bool is_line_for(const Tensor& source, const Tensor& x) noexcept {
  return source.dl.ndim <= 1 && dtype_of(source) == dtype_of(x) && is_host(source.dl.device) && !may_overlap(source, x);
}

}  // namespace

Status run_index(IndexArgs& args, DLDevice device, std::span<const Tensor* const> used, bool scatter) {
  KernelCall kernel(device, used);
  DLBRIDGE_TRY(kernel.begin());
  args.stream = kernel.stream();
  args.workspace = kernel.workspace();
  const int code = scatter ? kernel.backend().scatter(args) : kernel.backend().gather(args);
  if (code == kErrorIndex) {
    std::string extents;
    for (int k = 0; k < args.arrays; ++k) extents += (k == 0 ? "" : ", ") + std::to_string(args.extent[k]);
    return index_error("an index is out of bounds for an axis of size " + extents);
  }
  return kernel.end(code, scatter ? "scatter" : "gather");
}

const Tensor* line_of_positions(const Tensor& x, std::span<const IndexItem> items) noexcept {
  if (items.size() != 1 || items[0].kind != IndexItem::Kind::kArray || x.dl.ndim != 1) return nullptr;
  const Tensor* index = items[0].array;
  const bool serves = index->dl.ndim == 1 && index->size > 0 && dtype_of(*index) == DType::kInt64 &&
                      is_host(x.dl.device) && is_host(index->dl.device);
  return serves ? index : nullptr;
}

Status gather_line(const Tensor& x, const Tensor& index, Tensor& out, Bounds bounds) {
  DLBRIDGE_TRY(make_array(out, dtype_of(x), {&index.size, 1}, x.dl.device));
  return launch_line(x, index, out.dl.data, out.itemsize(), bounds, false);
}

const Tensor* mask_of_all(const Tensor& x, std::span<const IndexItem> items) noexcept {
  if (items.size() != 1 || items[0].kind != IndexItem::Kind::kArray || !is_bool(dtype_of(*items[0].array)))
    return nullptr;
  return same_shape(*items[0].array, x) ? items[0].array : nullptr;
}

bool has_line(const Tensor& x, const Tensor& mask) noexcept {
  return x.dl.ndim > 0 && is_host(x.dl.device) && is_host(mask.dl.device) && (x.dl.ndim == 1 || is_c_contiguous(x));
}

namespace {
constexpr std::int64_t kMaskPart = 4096;  // elements: their positions stay in the first cache

// A mask as bytes in C order.
Status dense_mask(const Tensor& mask, Tensor& copy, const Tensor*& dense) {
  dense = &mask;
  if (is_c_contiguous(mask)) return {};
  dense = &copy;
  return copy_as(mask, DType::kBool, CopyOrder::kC, copy);
}

std::int64_t count_true(const KernelCall& kernel, const Tensor& mask) noexcept {
  std::int64_t count = 0;
  kernel.backend().nonzero({mask.dl.data, mask.size, nullptr, &count, {}, 0});
  return count;
}

// Moves `room` values, `value_stride` bytes apart, to or from the elements of x where a dense mask is true, a part of
// it after the other. No more, also where another thread has written to the mask since they were counted.
int move_true(const KernelCall& kernel, const Tensor& x, const Tensor& mask, char* values, std::int64_t value_stride,
              std::int64_t room, bool scatter) noexcept {
  const std::int64_t stride = x.dl.ndim == 1 ? x.dl.strides[0] : 1;
  std::int64_t positions[kMaskPart];
  IndexArgs args = line_args(x, stride, positions, sizeof(std::int64_t), value_stride);
  args.unique = true;
  for (std::int64_t first = 0; first < mask.size; first += kMaskPart) {
    std::int64_t count = 0;
    args.extent[0] = std::min(mask.size - first, kMaskPart);
    kernel.backend().nonzero(
        {static_cast<const char*>(mask.dl.data) + first, args.extent[0], positions, &count, {}, 0});
    count = std::min(count, room);
    if (count == 0) continue;
    args.size = args.shape[0] = count;
    args.values = values;
    args.base = static_cast<char*>(x.dl.data) + first * args.axis_stride[0];
    if (const int code = scatter ? kernel.backend().scatter(args) : kernel.backend().gather(args); code != 0)
      return code;
    values += count * value_stride;
    room -= count;
  }
  return 0;
}
}  // namespace

Status gather_true(const Tensor& x, const Tensor& mask, Tensor& out) {
  Tensor copy;
  const Tensor* dense = nullptr;
  DLBRIDGE_TRY(dense_mask(mask, copy, dense));
  const Tensor* const used[] = {&x, dense};
  std::int64_t count = 0;
  {
    KernelCall kernel(x.dl.device, used);
    DLBRIDGE_TRY(kernel.begin());
    count = count_true(kernel, *dense);
    DLBRIDGE_TRY(kernel.end(0, "gather"));
  }
  DLBRIDGE_TRY(
      make_array(out, dtype_of(x), {&count, 1}, x.dl.device));  // no call is open: one may have let the lock go
  KernelCall kernel(x.dl.device, used);
  DLBRIDGE_TRY(kernel.begin());
  return kernel.end(move_true(kernel, x, *dense, static_cast<char*>(out.dl.data), out.itemsize(), count, false),
                    "gather");
}

Status assign_true(const Tensor& x, const Tensor& mask, const Input& value, bool& done) {
  const Tensor* source = value.array;
  done = source != nullptr && is_line_for(*source, x) && !may_overlap(mask, x);
  if (!done) return {};
  Tensor copy;
  const Tensor* dense = nullptr;
  DLBRIDGE_TRY(dense_mask(mask, copy, dense));
  const Tensor* const used[] = {&x, dense, source};
  KernelCall kernel(x.dl.device, used);
  DLBRIDGE_TRY(kernel.begin());
  const std::int64_t count = count_true(kernel, *dense);
  done = source->size == count || source->size == 1;
  if (!done) return kernel.end(0, "scatter");
  const std::int64_t step = source->size == 1 ? 0 : source->dl.strides[0] * x.itemsize();
  return kernel.end(move_true(kernel, x, *dense, static_cast<char*>(source->dl.data), step, count, true), "scatter");
}

Status assign_line(const Tensor& x, const Tensor& index, const Input& value, Bounds bounds, bool& done) {
  const Tensor* source = value.array;
  done = !may_overlap(index, x) &&
         (source == nullptr || (is_line_for(*source, x) && (source->size == index.size || source->size == 1)));
  if (!done) return {};
  ScalarValue scalar;
  if (source == nullptr) DLBRIDGE_TRY(write_scalar(value.scalar, dtype_of(x), scalar));
  const bool repeats = source == nullptr || source->size == 1;
  return launch_line(x, index, source == nullptr ? scalar.bytes : source->dl.data,
                     repeats ? 0 : source->dl.strides[0] * x.itemsize(), bounds, true);
}

}  // namespace dlbridge::nd
