#include "ndarray/core/index_line.h"

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"

namespace dlbridge::nd {

namespace {

// values: the bytes of elements of x, `value_stride` apart. rising: the positions are those of a mask.
Status launch_line(const Tensor& x, const Tensor& index, void* values, std::int64_t value_stride, Bounds bounds,
                   bool scatter, bool rising = false) {
  IndexArgs args;
  args.itemsize = static_cast<int>(x.itemsize());
  args.ndim = args.arrays = 1;
  args.size = args.shape[0] = index.size;
  args.values = values;
  args.value_strides[0] = value_stride;
  args.base = x.dl.data;
  args.base_strides[0] = 0;
  args.index[0] = static_cast<const std::int64_t*>(index.dl.data);
  args.index_strides[0][0] = index.dl.strides[0] * index.itemsize();
  args.extent[0] = x.dl.shape[0];
  args.axis_stride[0] = x.dl.strides[0] * args.itemsize;
  args.accumulate = false;
  args.dtype = dtype_of(x);
  args.bounds = bounds;
  args.unique = rising;
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
  const Tensor* mask = items[0].array;
  const bool serves = same_shape(*mask, x) && x.dl.ndim > 0 && is_host(x.dl.device) && is_host(mask->dl.device) &&
                      (x.dl.ndim == 1 || is_c_contiguous(x));
  return serves ? mask : nullptr;
}

namespace {
// The positions where a mask is true, in a view of all of x as a vector.
Status true_positions(const Tensor& x, const Tensor& mask, Tensor& positions, Tensor& flat) {
  DLBRIDGE_TRY(flat_nonzero(mask, positions));
  const std::int64_t one = 1;
  return make_view(x, {&x.size, 1}, {x.dl.ndim == 1 ? x.dl.strides : &one, 1}, 0, flat);
}
}  // namespace

Status gather_true(const Tensor& x, const Tensor& mask, Tensor& out) {
  Tensor positions, flat;
  DLBRIDGE_TRY(true_positions(x, mask, positions, flat));
  DLBRIDGE_TRY(make_array(out, dtype_of(x), {&positions.size, 1}, x.dl.device));
  if (out.size == 0) return {};
  return launch_line(flat, positions, out.dl.data, out.itemsize(), Bounds::kRefuse, false, true);
}

Status assign_true(const Tensor& x, const Tensor& mask, const Input& value, bool& done) {
  const Tensor* source = value.array;
  done = source != nullptr && is_line_for(*source, x);
  if (!done) return {};
  Tensor positions, flat;
  DLBRIDGE_TRY(true_positions(x, mask, positions, flat));
  done = source->size == positions.size || source->size == 1;
  if (!done || positions.size == 0) return {};
  return launch_line(flat, positions, source->dl.data, source->size == 1 ? 0 : source->dl.strides[0] * x.itemsize(),
                     Bounds::kRefuse, true, true);
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
