#include "ndarray/core/dims.h"

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

}  // namespace

bool is_dense(const Tensor& t, std::span<const std::int8_t> axes) noexcept {
  std::int64_t expected = 1;
  for (const std::int8_t axis : axes) {
    if (t.dl.shape[axis] == 1) continue;
    if (t.dl.strides[axis] != expected) return t.size == 0;
    expected *= t.dl.shape[axis];
  }
  return true;
}

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
  enum class Verdict : std::uint8_t { kUnknown, kStays, kGoesInside };
  // `a` goes inside `b` where no operand has the smaller stride on `b`, and one has it on `a`.
  const auto compare = [&](std::int8_t a, std::int8_t b) {
    Verdict verdict = Verdict::kUnknown;
    for (const Tensor* t : inputs) {
      if (t == nullptr) continue;
      const std::int64_t sa = std::llabs(broadcast_stride(*t, a, n)), sb = std::llabs(broadcast_stride(*t, b, n));
      if (sa == 0 || sb == 0) continue;
      if (sb <= sa) return Verdict::kStays;
      verdict = Verdict::kGoesInside;
    }
    return verdict;
  };
  bool plain = true;
  for (int i = 1; i < n; ++i) {
    int place = i;
    for (int j = i - 1; j >= 0; --j) {  // an axis of which nothing is known stands in nobody's way
      const Verdict verdict = compare(axes[i], axes[j]);
      if (verdict == Verdict::kStays) break;
      if (verdict == Verdict::kGoesInside) place = j;
    }
    if (place == i) continue;
    std::rotate(axes + place, axes + i, axes + i + 1);
    plain = false;
  }
  return plain;
}

std::string shape_text(Dims shape) {
  std::string text = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(shape[k]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace dlbridge::nd
