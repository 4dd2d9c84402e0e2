#include "ndarray/core/index_line.h"

#include "ndarray/core/kernel_call.h"

namespace dlbridge::nd {

namespace {

// values: the bytes of elements of x, `value_stride` apart.
Status launch_line(const Tensor& x, const Tensor& index, void* values, std::int64_t value_stride, Bounds bounds,
                   bool scatter) {
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
  const Tensor* const used[] = {&x, &index};
  return run_index(args, x.dl.device, used, scatter);
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

Status assign_line(const Tensor& x, const Tensor& index, const Input& value, Bounds bounds, bool& done) {
  const Tensor* source = value.array;
  done =
      !may_overlap(index, x) &&
      (source == nullptr || (source->dl.ndim <= 1 && dtype_of(*source) == dtype_of(x) && is_host(source->dl.device) &&
                             (source->size == index.size || source->size == 1) && !may_overlap(*source, x)));
  if (!done) return {};
  ScalarValue scalar;
  if (source == nullptr) DLBRIDGE_TRY(write_scalar(value.scalar, dtype_of(x), scalar));
  const bool repeats = source == nullptr || source->size == 1;
  return launch_line(x, index, source == nullptr ? scalar.bytes : source->dl.data,
                     repeats ? 0 : source->dl.strides[0] * x.itemsize(), bounds, true);
}

}  // namespace dlbridge::nd
