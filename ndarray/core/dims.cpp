#include "ndarray/core/dims.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

namespace dlbridge::nd {

namespace {

template <class DimsAt>
[[gnu::cold]] Status shapes_disagree(std::size_t count, DimsAt dims_at) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k)
    if (dims_at(k)) text += (text.empty() ? "" : " ") + shape_text(*dims_at(k));
  return malformed("operands could not be broadcast together with shapes " + text +
                   ": each pair of extents must be equal or one of them 1, from the last axis on");
}

// The rule, for dims_at(k) of `count` operands, of which some have none.
template <class DimsAt>
Status broadcast(std::size_t count, DimsAt dims_at, std::int64_t (&shape)[kMaxDims], int& ndim) {
  ndim = 0;
  for (std::size_t k = 0; k < count; ++k)
    if (const auto dims = dims_at(k)) ndim = std::max(ndim, static_cast<int>(dims->size()));
  std::fill_n(shape, ndim, 1);
  for (std::size_t k = 0; k < count; ++k) {
    const auto dims = dims_at(k);
    if (!dims) continue;
    std::int64_t* slot = shape + (ndim - static_cast<int>(dims->size()));
    for (const std::int64_t extent : *dims) {
      if (*slot == 1) *slot = extent;
      else if (extent != 1 && extent != *slot) [[unlikely]] return shapes_disagree(count, dims_at);
      ++slot;
    }
  }
  return {};
}

enum class Verdict : std::uint8_t { kUnknown, kStays, kGoesInside };
Verdict verdict_on(std::int64_t inner, std::int64_t outer) noexcept {
  return outer <= inner ? Verdict::kStays : Verdict::kGoesInside;
}

// The `n` axes of a C-ordered array, the innermost first, with those moved inside of others of which verdict(t, a, b)
// says so for one of the arrays, and for none that `a` stays. Returns whether none was.
template <class F>
bool sort_axes(std::span<const Tensor* const> arrays, int n, std::int8_t (&axes)[kMaxDims], F verdict) {
  for (int k = 0; k < n; ++k) axes[k] = static_cast<std::int8_t>(n - 1 - k);
  const auto compare = [&](std::int8_t a, std::int8_t b) {
    Verdict all = Verdict::kUnknown;
    for (const Tensor* t : arrays) {
      const Verdict one = t == nullptr ? Verdict::kUnknown : verdict(*t, a, b);
      if (one == Verdict::kStays) return one;
      if (one == Verdict::kGoesInside) all = one;
    }
    return all;
  };
  bool plain = true;
  for (int i = 1; i < n; ++i) {
    int place = i;
    for (int j = i - 1; j >= 0; --j) {  // an axis of which nothing is known stands in nobody's way
      const Verdict found = compare(axes[i], axes[j]);
      if (found == Verdict::kStays) break;
      if (found == Verdict::kGoesInside) place = j;
    }
    if (place == i) continue;
    std::rotate(axes + place, axes + i, axes + i + 1);
    plain = false;
  }
  return plain;
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
  const auto dims_at = [=](std::size_t k) {
    return inputs[k] == nullptr ? std::nullopt : std::optional(shape_of(*inputs[k]));
  };
  return broadcast(inputs.size(), dims_at, shape, ndim);
}

Status broadcast_shapes(std::span<const Dims> shapes, std::int64_t (&shape)[kMaxDims], int& ndim) {
  return broadcast(shapes.size(), [=](std::size_t k) { return std::optional(shapes[k]); }, shape, ndim);
}

bool memory_order(std::span<const Tensor* const> inputs, Dims shape, std::int8_t (&axes)[kMaxDims]) {
  const int n = static_cast<int>(shape.size());
  return sort_axes(inputs, n, axes, [n](const Tensor& t, int a, int b) {
    const std::int64_t inner = std::llabs(broadcast_stride(t, a, n)), outer = std::llabs(broadcast_stride(t, b, n));
    return inner == 0 || outer == 0 ? Verdict::kUnknown : verdict_on(inner, outer);
  });
}

bool copied_order(std::span<const Tensor* const> parts, Dims shape, std::int8_t (&axes)[kMaxDims]) {
  const int n = static_cast<int>(shape.size());
  return sort_axes(parts, n, axes, [n](const Tensor& t, int a, int b) {
    const int inner = a - (n - t.dl.ndim), outer = b - (n - t.dl.ndim);
    if (inner < 0 || outer < 0 || t.dl.shape[inner] == 1 || t.dl.shape[outer] == 1) return Verdict::kUnknown;
    return verdict_on(std::llabs(t.dl.strides[inner]), std::llabs(t.dl.strides[outer]));
  });
}

std::string shape_text(Dims shape) {
  std::string text = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) text += (k == 0 ? "" : ", ") + std::to_string(shape[k]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace dlbridge::nd
