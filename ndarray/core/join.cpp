#include "ndarray/core/join.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "dlbridge/dims.h"
#include "ndarray/core/copy.h"
#include "ndarray/core/indexing.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"

namespace dlbridge::nd {

namespace {

using Parts = std::span<const Tensor* const>;

Status check_devices(Parts parts) {
  for (const Tensor* part : parts)
    if (!same_device(part->dl.device, parts[0]->dl.device))
      return malformed("arrays on " + device_name(parts[0]->dl.device) + " and " + device_name(part->dl.device) +
                       " cannot be combined. Move them to one device: x.to_device(device)");
  return {};
}

// A new array, in C order on a device. On the host it lies as the parts do that have its axes: in the order of their
// memory a copy runs along both.
Status make_result(Parts parts, DType dtype, Dims shape, Tensor& made) {
  const DLDevice device = parts[0]->dl.device;
  std::int8_t axes[kMaxDims];
  if (!is_host(device) || parts[0]->dl.ndim != static_cast<std::int32_t>(shape.size()) ||
      copied_order(parts, shape, axes))
    return make_array(made, dtype, shape, device);
  return make_array_as(made, dtype, shape, {axes, shape.size()}, device);
}

// The array that is written to: a new one of that shape in `made`, or the one that was given for it.
Status find_target(Parts parts, Dims shape, const JoinOptions& options, Tensor& made, const Tensor*& target) {
  if (options.out != nullptr && options.dtype)
    return {ErrorCode::kWrongType, "out and dtype exclude each other: out has a dtype. Give one of them"};
  target = options.out != nullptr ? options.out : &made;
  if (options.out == nullptr) {
    std::vector<Input> inputs(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) inputs[k].array = parts[k];
    DLBRIDGE_TRY(make_result(parts, options.dtype.value_or(result_type(inputs)), shape, made));
  } else if (!std::ranges::equal(shape_of(*options.out), shape)) {
    return malformed("out has shape " + shape_text(shape_of(*options.out)) + "; the result has " + shape_text(shape));
  }
  for (const Tensor* part : parts)
    if (!can_cast(dtype_of(*part), dtype_of(*target), options.casting))
      return {ErrorCode::kWrongType, std::string(part->dtype().name) + " cannot be cast to " +
                                         std::string(target->dtype().name) + " with casting='" +
                                         std::string(name_of(options.casting)) + "'"};
  return {};
}

// The part of the target from position `start` of the axis on that has the shape of `part`, which has the axis or not.
Status place_of(const Tensor& target, const Tensor& part, int axis, std::int64_t start, Tensor& view) {
  std::int64_t strides[kMaxDims];
  int n = 0;
  for (int k = 0; k < target.dl.ndim; ++k)
    if (k != axis || part.dl.ndim == target.dl.ndim) strides[n++] = target.dl.strides[k];
  return make_view(target, shape_of(part), {strides, static_cast<std::size_t>(n)}, start * target.dl.strides[axis],
                   view);
}

// A dim and its stride in bytes that stand for all of an array's from `first` to before `end`; false where none does.
bool one_dim(const Tensor& x, int first, int end, std::int64_t& extent, std::int64_t& stride) {
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (int d = first; d < end; ++d) {
    shape[end - 1 - d] = x.dl.shape[d];
    strides[end - 1 - d] = x.dl.strides[d] * x.itemsize();
  }
  std::int64_t* rows = strides;
  const int left = merge_dims(shape, end - first, &rows, 1);
  extent = left == 0 ? 1 : shape[0];
  stride = left == 0 ? 0 : strides[0];
  return left <= 1;
}

constexpr std::int64_t kShortPiece = 1024;
constexpr std::int64_t kFewBytes = std::int64_t{1} << 22;
constexpr std::int64_t kFewOnHost = 256;

// The rows of a part: the dims before `inner` as one, and those from there to the axis.
bool fill_rows(const Tensor& part, int inner, int axis, int k, JoinArgs& args) {
  std::int64_t outer = 1;
  if (!one_dim(part, 0, inner, outer, args.outer_strides[k]) ||
      !one_dim(part, inner, axis, args.inner_rows, args.row_strides[k]))
    return false;
  args.rows = outer * args.inner_rows;
  return true;
}

// Rows of one dim if they can be, else of two that are the same of all parts; false where they are of more.
bool fill_all_rows(Parts parts, int axis, JoinArgs& args) {
  for (int inner = 0; inner < std::max(axis, 1); ++inner) {
    int k = 0;
    const bool fits = std::ranges::all_of(
        parts, [&](const Tensor* part) { return part->size == 0 || fill_rows(*part, inner, axis, k++, args); });
    if (fits) return true;
  }
  return false;
}

// Whether one kernel pays that writes all parts: where each would cost a launch for little, or leaves gaps so short
// that what lies between them in a sector is written by another; on the host, where to look for a loop for each would
// take longer than to copy it.
bool fill_join(Parts parts, int axis, const Tensor& target, JoinArgs& args) {
  if (is_host(target.dl.device) && (target.size > kFewOnHost || !is_c_contiguous(target))) return false;
  args.itemsize = static_cast<int>(target.itemsize());
  args.out = target.dl.data;
  std::int64_t longest = 0;
  std::uintptr_t places = 0;
  for (const Tensor* part : parts) {
    if (part->size == 0) continue;
    if (args.parts == kJoinedParts || dtype_of(*part) != dtype_of(target)) return false;
    const int k = args.parts++;
    if (!one_dim(*part, axis, part->dl.ndim, args.lengths[k], args.strides[k])) return false;
    args.in[k] = part->dl.data;
    longest = std::max(longest, args.lengths[k]);
    places |= reinterpret_cast<std::uintptr_t>(args.in[k]) | static_cast<std::uintptr_t>(args.strides[k]);
  }
  if (args.parts < 2 || !(longest * args.itemsize <= kShortPiece || target.nbytes() <= kFewBytes) ||
      !fill_all_rows(parts, axis, args))
    return false;
  for (int k = 0; k < args.parts; ++k)
    places |= static_cast<std::uintptr_t>(args.outer_strides[k]) | static_cast<std::uintptr_t>(args.row_strides[k]);
  return places % static_cast<std::uintptr_t>(args.itemsize) == 0;
}

Status join_by_kernel(Parts parts, const Tensor& target, JoinArgs& args) {
  std::vector<const Tensor*> used(parts.begin(), parts.end());
  used.push_back(&target);
  KernelCall call(target.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  args.stream = call.stream();
  return call.end(call.backend().join(args), "concatenate()");
}

Status join(Parts parts, int axis, Dims shape, const JoinOptions& options, Tensor& result) {
  Tensor made;
  const Tensor* target = nullptr;
  DLBRIDGE_TRY(find_target(parts, shape, options, made, target));
  if (JoinArgs args{}; options.out == nullptr && fill_join(parts, axis, made, args)) {
    DLBRIDGE_TRY(join_by_kernel(parts, made, args));
    result = std::move(made);
    return {};
  }
  std::int64_t start = 0;
  for (const Tensor* part : parts) {
    if (part->size != 0) {
      Tensor view;
      DLBRIDGE_TRY(place_of(*target, *part, axis, start, view));
      DLBRIDGE_TRY(copy_into(view, {part, {}}, Casting::kUnsafe));
    }
    start += part->dl.ndim == target->dl.ndim ? part->dl.shape[axis] : 1;
  }
  if (options.out == nullptr) result = std::move(made);
  return {};
}

}  // namespace

Status concatenate(Parts parts, int axis, const JoinOptions& options, Tensor& result) {
  DLBRIDGE_TRY(check_devices(parts));
  const Tensor& first = *parts[0];
  std::int64_t shape[kMaxDims];
  std::copy_n(first.dl.shape, first.dl.ndim, shape);
  for (std::size_t k = 1; k < parts.size(); ++k) {
    const Tensor& part = *parts[k];
    bool fits = part.dl.ndim == first.dl.ndim;
    for (int d = 0; fits && d < first.dl.ndim; ++d) fits = d == axis || part.dl.shape[d] == first.dl.shape[d];
    if (!fits)
      return malformed("array " + std::to_string(k) + " has shape " + shape_text(shape_of(part)) + ", the first " +
                       shape_text(shape_of(first)) + "; they must be equal but for axis " + std::to_string(axis));
    if (__builtin_add_overflow(shape[axis], part.dl.shape[axis], &shape[axis]))
      return overflow("the extents of axis " + std::to_string(axis) + " add up to more than 63 bits");
  }
  return join(parts, axis, {shape, static_cast<std::size_t>(first.dl.ndim)}, options, result);
}

Status stack(Parts parts, int axis, const JoinOptions& options, Tensor& result) {
  DLBRIDGE_TRY(check_devices(parts));
  const Tensor& first = *parts[0];
  for (const Tensor* part : parts)
    if (!std::ranges::equal(shape_of(*part), shape_of(first)))
      return malformed("the arrays have shapes " + shape_text(shape_of(first)) + " and " + shape_text(shape_of(*part)) +
                       "; they must have one");
  if (first.dl.ndim == kMaxDims) return malformed("the result would have more than 64 dimensions");
  std::int64_t shape[kMaxDims];
  std::copy_n(first.dl.shape, axis, shape);
  shape[axis] = static_cast<std::int64_t>(parts.size());
  std::copy(first.dl.shape + axis, first.dl.shape + first.dl.ndim, shape + axis + 1);
  return join(parts, axis, {shape, static_cast<std::size_t>(first.dl.ndim) + 1}, options, result);
}

namespace {
// Whether a dense copy is to be repeated: on the host, where rows would be gathered as often from elements that lie
// apart.
bool pays_to_gather(const Tensor& x, int axis, std::int64_t times) noexcept {
  const std::span strides(x.dl.strides, static_cast<std::size_t>(x.dl.ndim));
  return is_host(x.dl.device) && times > 1 && axis < x.dl.ndim - 1 &&
         std::ranges::none_of(strides, [](std::int64_t stride) { return stride == 0 || stride == 1; });
}
}  // namespace

Status repeat(const Tensor& x, int axis, std::int64_t times, Tensor& out) {
  const int ndim = x.dl.ndim;
  if (pays_to_gather(x, axis, times) && x.dl.shape[ndim - 1] > 1) {
    Tensor dense;
    DLBRIDGE_TRY(copy_as(x, dtype_of(x), CopyOrder::kC, dense));
    return repeat(dense, axis, times, out);
  }
  if (ndim == kMaxDims) return malformed("the array has 64 dimensions; at most 63 are possible");
  std::int64_t wide_shape[kMaxDims], wide_strides[kMaxDims], shape[kMaxDims];  // an axis more: that of the copies
  std::copy_n(x.dl.shape, ndim, shape);
  if (__builtin_mul_overflow(shape[axis], times, &shape[axis]))
    return overflow("the extent of axis " + std::to_string(axis) + " needs more than 63 bits");
  std::copy_n(x.dl.shape, axis + 1, wide_shape);
  std::copy_n(x.dl.strides, axis + 1, wide_strides);
  wide_shape[axis + 1] = times;
  wide_strides[axis + 1] = 0;
  std::copy(x.dl.shape + axis + 1, x.dl.shape + ndim, wide_shape + axis + 2);
  std::copy(x.dl.strides + axis + 1, x.dl.strides + ndim, wide_strides + axis + 2);
  const auto n = static_cast<std::size_t>(ndim);
  Tensor wide;
  DLBRIDGE_TRY(make_view(x, {wide_shape, n + 1}, {wide_strides, n + 1}, 0, wide));
  return reshape(wide, {shape, n}, Order::kC, true, out);
}

namespace {

// Of its own: another thread may write to the array meanwhile. It may lie at an odd address.
Status read_counts(const Tensor& counts, std::vector<std::int64_t>& out, std::int64_t& total) {
  out.resize(static_cast<std::size_t>(counts.size));
  const char* from = static_cast<const char*>(counts.dl.data);
  const std::int64_t step = counts.size > 1 ? counts.dl.strides[0] * counts.itemsize() : 0;
  for (std::int64_t& count : out) {
    std::memcpy(&count, from, sizeof count);
    from += step;
  }
  std::uint64_t bits = 0, sum = 0;
  for (const std::int64_t count : out) {
    bits |= static_cast<std::uint64_t>(count);
    sum += static_cast<std::uint64_t>(count);
  }
  total = static_cast<std::int64_t>(sum);
  if (bits >> 32 == 0 && out.size() >> 31 == 0) return {};  // no sum of so many is past 63 bits
  total = 0;
  for (const std::int64_t count : out) {
    if (count < 0) return malformed("repeats " + std::to_string(count) + " is negative; it is a number of times");
    if (__builtin_add_overflow(total, count, &total)) return overflow("the repeats add up to more than 63 bits");
  }
  return {};
}

// Elements of a vector, one of kBytes every `step` of them. Small counts, which no branch can tell apart, are written
// as the largest of them, and the next element over what is too much.
template <std::size_t kBytes>
void repeat_elements(const char* from, std::int64_t step, const std::vector<std::int64_t>& counts, char* to,
                     std::int64_t total) noexcept {
  constexpr std::int64_t kSmall = 4, kItem = kBytes;
  const char* const end = to + total * kItem;
  for (const std::int64_t count : counts) {
    char element[kBytes];
    std::memcpy(element, from, kBytes);
    from += step * kItem;
    const std::int64_t first = end - to < kSmall * kItem ? 0 : kSmall;
    if (first != 0)
      for (std::int64_t k = 0; k < kSmall; ++k) std::memcpy(to + k * kItem, element, kBytes);
    for (std::int64_t k = first; k < count; ++k) std::memcpy(to + k * kItem, element, kBytes);
    to += count * kItem;
  }
}

Status repeat_vector(const Tensor& x, const std::vector<std::int64_t>& counts, std::int64_t total, Tensor& out) {
  DLBRIDGE_TRY(make_array(out, dtype_of(x), {&total, 1}, x.dl.device));
  const Tensor* const used[] = {&x, &out};
  KernelCall call(x.dl.device, used);
  DLBRIDGE_TRY(call.begin());
  const auto write = [&]<std::size_t kBytes>() {
    repeat_elements<kBytes>(static_cast<const char*>(x.dl.data), x.dl.strides[0], counts,
                            static_cast<char*>(out.dl.data), total);
  };
  switch (x.itemsize()) {
    case 1: write.template operator()<1>(); break;
    case 2: write.template operator()<2>(); break;
    case 4: write.template operator()<4>(); break;
    case 8: write.template operator()<8>(); break;
    default: write.template operator()<16>();
  }
  return call.end(0, "repeat");
}

}  // namespace

Status repeat_by(const Tensor& x, int axis, const Tensor& counts, Tensor& out) {
  std::vector<std::int64_t> times;
  std::int64_t total = 0;
  DLBRIDGE_TRY(read_counts(counts, times, total));
  if (x.dl.ndim == 1) return repeat_vector(x, times, total, out);
  Tensor positions;
  DLBRIDGE_TRY(make_array(positions, DType::kInt64, {&total, 1}, x.dl.device));
  std::vector<std::int64_t> places(times.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  repeat_elements<sizeof(std::int64_t)>(reinterpret_cast<const char*>(places.data()), 1, times,
                                        static_cast<char*>(positions.dl.data), total);
  std::vector<IndexItem> items(static_cast<std::size_t>(axis) + 1);
  items.back().kind = IndexItem::Kind::kArray;
  items.back().array = &positions;
  return gather_at(x, items, out);
}

}  // namespace dlbridge::nd
