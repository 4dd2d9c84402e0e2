#include "ndarray/core/loop.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace dlbridge::nd {

namespace {

[[gnu::cold]] Status shapes_disagree(std::span<const Tensor* const> inputs) {
  std::string text;
  for (const Tensor* input : inputs)
    if (input != nullptr) text += (text.empty() ? "" : " ") + shape_text(shape_of(*input));
  return malformed("operands could not be broadcast together with shapes " + text +
                   ": each pair of extents must be equal or one of them 1, from the last axis on");
}

std::int64_t stride_of(const Tensor& t, int axis, int ndim) noexcept {
  const int own = axis - (ndim - t.dl.ndim);
  return own < 0 || t.dl.shape[own] == 1 ? 0 : t.dl.strides[own];
}

struct Walk {
  int ndim = 0;
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxOperands][kMaxDims];  // bytes, innermost first
};

// Drops the axes of extent 1 and turns those where the output runs backwards.
void collect_axes(std::span<const Tensor* const> operands, ElementwiseArgs& args, Walk& walk) {
  const Tensor& out = *operands[0];
  const int n = out.dl.ndim;
  for (int axis = n - 1; axis >= 0; --axis) {
    const std::int64_t extent = out.dl.shape[axis];
    if (extent == 1) continue;
    const bool backwards = out.dl.strides[axis] < 0;
    walk.shape[walk.ndim] = extent;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] == nullptr) {
        walk.strides[k][walk.ndim] = 0;
        continue;
      }
      std::int64_t stride = stride_of(*operands[k], axis, n) * operands[k]->itemsize();
      if (backwards) {
        args.data[k] = static_cast<char*>(args.data[k]) + stride * (extent - 1);
        stride = -stride;
      }
      walk.strides[k][walk.ndim] = stride;
    }
    ++walk.ndim;
  }
}

void swap_dims(Walk& walk, int a, int b, std::size_t operands) {
  std::swap(walk.shape[a], walk.shape[b]);
  for (std::size_t k = 0; k < operands; ++k) std::swap(walk.strides[k][a], walk.strides[k][b]);
}

// Ascending strides of the output; insertion sort, the order is nearly always right already.
void sort_dims(Walk& walk, std::size_t operands) {
  for (int i = 1; i < walk.ndim; ++i)
    for (int j = i; j > 0 && walk.strides[0][j] < walk.strides[0][j - 1]; --j) swap_dims(walk, j, j - 1, operands);
}

void merge_dims(Walk& walk, std::size_t operands) {
  int last = 0;
  for (int d = 1; d < walk.ndim; ++d) {
    bool mergeable = true;
    for (std::size_t k = 0; k < operands && mergeable; ++k)
      mergeable = walk.strides[k][d] == walk.strides[k][last] * walk.shape[last];
    if (mergeable) {
      walk.shape[last] *= walk.shape[d];
    } else {
      ++last;
      walk.shape[last] = walk.shape[d];
      for (std::size_t k = 0; k < operands; ++k) walk.strides[k][last] = walk.strides[k][d];
    }
  }
  if (walk.ndim > 0) walk.ndim = last + 1;
}

bool all_dense(std::span<const Tensor* const> operands) noexcept {
  const Tensor& out = *operands[0];
  for (const Tensor* t : operands)
    if (t != nullptr && (t->dl.ndim != out.dl.ndim || t->size != out.size || !is_c_contiguous(*t))) return false;
  return true;
}

}  // namespace

Status broadcast_shapes(std::span<const Tensor* const> inputs, std::int64_t (&shape)[kMaxDims], int& ndim) {
  ndim = 0;
  for (const Tensor* input : inputs)
    if (input != nullptr) ndim = std::max(ndim, static_cast<int>(input->dl.ndim));
  std::fill_n(shape, ndim, 1);
  for (const Tensor* input : inputs) {
    if (input == nullptr) continue;
    const int offset = ndim - input->dl.ndim;
    for (int k = 0; k < input->dl.ndim; ++k) {
      const std::int64_t extent = input->dl.shape[k];
      std::int64_t& slot = shape[offset + k];
      if (slot == 1) slot = extent;
      else if (extent != 1 && extent != slot) [[unlikely]] return shapes_disagree(inputs);
    }
  }
  return {};
}

bool memory_order(std::span<const Tensor* const> inputs, Dims shape, std::int8_t (&axes)[kMaxDims]) {
  const int n = static_cast<int>(shape.size());
  for (int k = 0; k < n; ++k) axes[k] = static_cast<std::int8_t>(n - 1 - k);
  // `a` goes inside `b` where the first operand that tells them apart has the smaller stride on it.
  const auto inside = [&](std::int8_t a, std::int8_t b) {
    for (const Tensor* t : inputs) {
      if (t == nullptr) continue;
      const std::int64_t sa = std::llabs(stride_of(*t, a, n)), sb = std::llabs(stride_of(*t, b, n));
      if (sa == 0 || sb == 0 || sa == sb) continue;
      return sa < sb;
    }
    return false;
  };
  bool plain = true;
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && inside(axes[j], axes[j - 1]); --j) {
      std::swap(axes[j], axes[j - 1]);
      plain = false;
    }
  return plain;
}

void plan_loop(std::span<const Tensor* const> operands, ElementwiseArgs& args, LoopPlan& plan) {
  const Tensor& out = *operands[0];
  args.operands = static_cast<std::uint8_t>(operands.size());
  args.size = out.size;
  for (std::size_t k = 0; k < operands.size(); ++k) args.data[k] = operands[k] == nullptr ? nullptr : operands[k]->dl.data;
  if (all_dense(operands)) [[likely]] {
    args.ndim = out.size == 1 ? 0 : 1;
    args.contiguous = true;
    args.shape[0] = out.size;
    for (std::size_t k = 0; k < operands.size(); ++k)
      args.strides[k][0] = operands[k] == nullptr ? 0 : operands[k]->itemsize();
    return;
  }
  Walk walk;
  collect_axes(operands, args, walk);
  sort_dims(walk, operands.size());
  merge_dims(walk, operands.size());
  args.ndim = std::min(walk.ndim, kLoopDims);
  args.size = 1;
  for (int d = 0; d < args.ndim; ++d) args.size *= args.shape[d] = walk.shape[d];
  args.contiguous = walk.ndim <= 1;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::copy_n(walk.strides[k], args.ndim, args.strides[k]);
    if (operands[k] != nullptr && walk.ndim == 1 && walk.strides[k][0] != operands[k]->itemsize()) args.contiguous = false;
  }
  plan.outer_ndim = walk.ndim - args.ndim;
  for (int d = 0; d < plan.outer_ndim; ++d) {
    plan.outer_shape[d] = walk.shape[args.ndim + d];
    for (std::size_t k = 0; k < operands.size(); ++k) plan.outer_strides[k][d] = walk.strides[k][args.ndim + d];
  }
}

}  // namespace dlbridge::nd
