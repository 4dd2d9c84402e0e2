#include "ndarray/core/runs.h"

#include "ndarray/core/elementwise.h"
#include "ndarray/core/kernel_call.h"
#include "ndarray/core/views.h"

namespace dlbridge::nd {

namespace {
// Of integers the bits tell what is equal.
DType compared_as(DType dtype) noexcept {
  if (contains(kInexactSet, dtype)) return dtype;
  switch (info(dtype).itemsize) {
    case 1: return DType::kUInt8;
    case 2: return DType::kUInt16;
    case 4: return DType::kUInt32;
    default: return DType::kUInt64;
  }
}

}  // namespace

Status find_runs(const Tensor& sorted, const RunOptions& options, Runs& runs) {
  const std::int64_t shape[1] = {sorted.size};
  Tensor bools;
  const Tensor* row = nullptr;
  DLBRIDGE_TRY(comparable(sorted, bools, row));
  const auto room = [&](bool wanted, Tensor& out) {
    return wanted ? make_array(out, DType::kInt64, shape, sorted.dl.device) : Status{};
  };
  DLBRIDGE_TRY(make_array(runs.values, dtype_of(sorted), shape, sorted.dl.device));
  DLBRIDGE_TRY(room(options.first, runs.first));
  DLBRIDGE_TRY(room(options.lengths, runs.lengths));
  DLBRIDGE_TRY(room(options.inverse, runs.inverse));
  if (sorted.size == 0) return {};
  const Tensor* arrays[6] = {row, &runs.values};
  std::size_t n = 2;
  if (options.order != nullptr) arrays[n++] = options.order;
  for (const Tensor* part : {&runs.first, &runs.lengths, &runs.inverse})
    if (part->dl.data != nullptr) arrays[n++] = part;
  KernelCall kernel(sorted.dl.device, {arrays, n});
  DLBRIDGE_TRY(kernel.begin());
  const auto positions = [](const Tensor& part) { return static_cast<std::int64_t*>(part.dl.data); };
  std::int64_t count = 0;
  RunsArgs args{};
  args.dtype = compared_as(dtype_of(*row));
  args.equal_nan = options.equal_nan;
  args.n = sorted.size;
  args.sorted = row->dl.data;
  args.order = options.order == nullptr ? nullptr : positions(*options.order);
  args.values = runs.values.dl.data;
  args.first = positions(runs.first);
  args.lengths = positions(runs.lengths);
  args.inverse = positions(runs.inverse);
  args.count = &count;
  args.workspace = kernel.workspace();
  args.stream = kernel.stream();
  DLBRIDGE_TRY(kernel.end(kernel.wait_for(&Backend::runs, args), "unique"));
  for (Tensor* part : {&runs.values, &runs.first, &runs.lengths})
    if (part->dl.data != nullptr) DLBRIDGE_TRY(keep_first(*part, count));
  return {};
}

}  // namespace dlbridge::nd
