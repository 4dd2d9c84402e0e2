#include "ndarray/core/positions.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ndarray/core/kernel_call.h"
#include "ndarray/core/ready.h"

namespace dlbridge::nd {

namespace {

bool is_whole(const Tensor& x) noexcept { return is_integer(dtype_of(x)) || is_bool(dtype_of(x)); }

bool have_elements(Dims extents) noexcept {
  return std::ranges::all_of(extents, [](std::int64_t extent) { return extent > 0; });
}

// Whether there are axes, not too many, and int64 counts their places.
bool can_count(Dims extents) {
  std::int64_t size = 0;
  return !extents.empty() && extents.size() <= kLoopDims && have_elements(extents) &&
         count_elements(extents, 1, size).ok();
}

}  // namespace

Status ravel_positions(std::span<const Tensor* const> parts, Dims extents, Bounds bounds, Tensor& out, bool& done) {
  done = false;
  if (!can_count(extents) || parts.size() != extents.size()) return {};
  for (const Tensor* part : parts)
    if (!is_host(part->dl.device) || !is_whole(*part) || !same_shape(*part, *parts[0])) return {};
  std::vector<Tensor> copies(parts.size());
  Tensor result;
  const Tensor* used[kLoopDims + 1];
  host_kernels::AxisPositions axes[kLoopDims];
  for (std::size_t k = 0; k < parts.size(); ++k) {
    DLBRIDGE_TRY(ready_as(DType::kInt64, *parts[k], copies[k], used[k]));
    axes[k] = {elements<std::int64_t>(*used[k]), extents[k], bounds};
  }
  DLBRIDGE_TRY(make_array(result, DType::kInt64, shape_of(*parts[0]), parts[0]->dl.device));
  used[parts.size()] = &result;
  KernelCall call(result.dl.device, {used, parts.size() + 1});
  DLBRIDGE_TRY(call.begin());
  done = host_kernels::ravel_positions({axes, parts.size()}, result.size, elements<std::int64_t>(result));
  DLBRIDGE_TRY(call.end(0, "ravel_multi_index"));
  if (done) out = std::move(result);
  return {};
}

Status unravel_positions(const Tensor& places, Dims extents, std::span<Tensor> parts, bool& done) {
  done = false;
  if (!is_host(places.dl.device) || !is_whole(places) || !can_count(extents)) return {};
  Tensor copy;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(ready_as(DType::kInt64, places, copy, ready));
  std::int64_t* positions[kLoopDims];
  for (std::size_t k = 0; k < parts.size(); ++k) {
    DLBRIDGE_TRY(make_array(parts[k], DType::kInt64, shape_of(places), places.dl.device));
    positions[k] = elements<std::int64_t>(parts[k]);
  }
  const Tensor* const used[] = {ready};
  KernelCall call(places.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  done =
      host_kernels::unravel_positions(elements<std::int64_t>(*ready), places.size, extents, {positions, parts.size()});
  return call.end(0, "unravel_index");
}

Status count_values(const Tensor& x, const Tensor* weights, std::int64_t least, Tensor& counts, bool& done) {
  done = false;
  if (!is_host(x.dl.device) || x.dl.ndim != 1 || !is_whole(x) || x.size == 0) return {};
  if (weights != nullptr &&
      (!is_host(weights->dl.device) || !same_shape(*weights, x) || is_complex(dtype_of(*weights))))
    return {};
  Tensor numbers_copy, weights_copy, result;
  const Tensor *numbers = nullptr, *ready = nullptr;
  DLBRIDGE_TRY(ready_as(DType::kInt64, x, numbers_copy, numbers));
  if (weights != nullptr) DLBRIDGE_TRY(ready_as(DType::kFloat64, *weights, weights_copy, ready));
  const auto* const values = elements<std::int64_t>(*numbers);
  const Tensor* const read[] = {numbers};
  KernelCall search(x.dl.device, read);
  DLBRIDGE_TRY(search.begin());
  const auto [low, high] = host_kernels::find_extremes(values, x.size);
  DLBRIDGE_TRY(search.end(0, "bincount"));
  if (low < 0 || high == INT64_MAX) return {};
  const std::int64_t size = std::max(high + 1, least);
  DLBRIDGE_TRY(make_array(result, weights == nullptr ? DType::kInt64 : DType::kFloat64, {&size, 1}, x.dl.device));
  const Tensor* const used[] = {numbers, ready != nullptr ? ready : numbers, &result};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  if (size != 0) std::memset(result.dl.data, 0, static_cast<std::size_t>(size) * sizeof(std::int64_t));  // 0.0, too
  if (weights == nullptr) host_kernels::count_values(values, x.size, elements<std::int64_t>(result), size);
  else host_kernels::sum_weights(values, elements<double>(*ready), x.size, elements<double>(result), size);
  DLBRIDGE_TRY(call.end(0, "bincount"));
  done = true;
  counts = std::move(result);
  return {};
}

namespace {
// Whether elements of x can be replaced by values while a mask is read.
bool takes_by_mask(const Tensor& x, const Tensor& mask, const Tensor& values) noexcept {
  return lies_ready(x) && !x.readonly() && x.size != 0 && lies_ready(mask) && is_bool(dtype_of(mask)) &&
         same_shape(mask, x) && lies_ready(values) && values.size != 0 && dtype_of(values) == dtype_of(x) &&
         !may_overlap(x, mask) && !may_overlap(x, values);
}
}  // namespace

Status put_masked(const Tensor& x, const Tensor& mask, const Tensor& values, bool& done) {
  done = takes_by_mask(x, mask, values) && same_shape(values, x);
  if (!done) return {};
  const Tensor* const used[] = {&x};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::put_masked(x.dl.data, elements<std::uint8_t>(mask), values.dl.data, x.size, x.itemsize());
  return call.end(0, "putmask");
}

Status place(const Tensor& x, const Tensor& mask, const Tensor& values, bool& done) {
  done = takes_by_mask(x, mask, values);
  if (!done) return {};
  const Tensor* const used[] = {&x};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  host_kernels::place(x.dl.data, elements<std::uint8_t>(mask), x.size, values.dl.data, values.size, x.itemsize());
  return call.end(0, "place");
}

Status choose(const Tensor& numbers, std::span<const Tensor* const> choices, Tensor& out, bool& done) {
  done = false;
  if (!is_host(numbers.dl.device) || !is_whole(numbers) || choices.size() < 2) return {};
  for (const Tensor* choice : choices)
    if (!lies_ready(*choice) || !same_shape(*choice, numbers) || dtype_of(*choice) != dtype_of(*choices[0])) return {};
  const bool is_mask = is_bool(dtype_of(numbers));
  Tensor copy, result;
  const Tensor* ready = nullptr;
  DLBRIDGE_TRY(ready_as(is_mask ? DType::kBool : DType::kInt64, numbers, copy, ready));
  DLBRIDGE_TRY(make_array(result, dtype_of(*choices[0]), shape_of(numbers), numbers.dl.device));
  std::vector<const void*> data;
  for (const Tensor* choice : choices) data.push_back(choice->dl.data);
  const Tensor* const used[] = {&result};
  KernelCall call(numbers.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  if (is_mask)
    host_kernels::choose(elements<std::uint8_t>(*ready), result.size, data, result.itemsize(), result.dl.data);
  done = is_mask ||
         host_kernels::choose(elements<std::int64_t>(*ready), result.size, data, result.itemsize(), result.dl.data);
  DLBRIDGE_TRY(call.end(0, "choose"));
  if (done) out = std::move(result);
  return {};
}

}  // namespace dlbridge::nd
